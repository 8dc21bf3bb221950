"""`isograd convert`: parse, and one call."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from isograd.cli.convert_builders import BuilderRequest, builder_options
from isograd.cli.inputs import OUTPUT
from isograd.cli.selection import selection_options
from isograd.cli.verb import is_asked_for, text_to_error, verb
from isograd.errors import UsageError

if TYPE_CHECKING:
    from isograd.convert.graph.report import ExportReport
    from isograd.convert.model import ConvertReport
    from isograd.progress import Progress


@verb(
    document="isograd.convert.document:document",
    page="isograd.convert.document:page",
    sarif=True,
)
@click.argument("path", type=OUTPUT, metavar="PATH")
@click.option("-o", "--out", type=OUTPUT, metavar="OUT", help="Where the port appears.")
@click.option("--check", is_flag=True, help="Write nothing; say what would be left to do.")
@click.option("--diff", is_flag=True, help="Show the edits as a unified diff.")
@click.option(
    "--target",
    type=click.Choice(("ops", "mint")),
    default="ops",
    show_default=True,
    help="ops: nn and ops, which run on CPU, GPU and Ascend; mint: mint where there is one.",
)
@click.option("--force", is_flag=True, help="Replace OUT if it is there.")
@click.option("--eager", is_flag=True, help="Leave training loops as they are: no compiled step.")
@selection_options
@builder_options
def command(
    path: Path,
    out: Path | None,
    check: bool,
    diff: bool,
    target: str,
    force: bool,
    eager: bool,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    exclude: tuple[str, ...],
    with_ignored: bool,
    progress: Progress,
    **builders: Any,
) -> ConvertReport | ExportReport:
    """Rewrite PyTorch code for MindSpore.

    PATH is a Python file or a folder; nothing in it is imported or run, and nothing is written to
    it. OUT mirrors it: same files, same names, importable without torch. What is not converted
    keeps a comment `# isograd: …` at its line and is reported. With --verify and --from-export the
    original is imported and run, in a process of its own.

    Exit status: 0 everything was converted, and what was verified is equivalent; 1 a person has to
    finish something; 2 isograd was called wrongly or could not do its work.
    """
    asked = BuilderRequest(**builders)
    if out is None and not (check or diff):
        raise UsageError("no place for the port is given", "Give -o OUT, or --check or --diff.")
    if out is not None and check:
        raise UsageError("--check writes nothing, and -o OUT is given", "Give one of the two.")
    asked.check(path, out, check or diff)
    if asked.exported is not None and out is not None:
        return asked.export(path, out, progress)
    from isograd.convert.conversion import Options
    from isograd.convert.run import convert_path
    from isograd.scan.selection import Selection

    options = Options(
        target,
        force=force,
        keep_texts=diff or is_asked_for("html"),
        progress=progress,
        selection=Selection(select, ignore, exclude, with_ignored),
        eager=eager,
    )
    report = convert_path(path, out, options)
    if asked.verified and out is not None:
        report = replace(report, builders=asked.verify(path, out, progress))
    if diff:
        from isograd.convert.document import diff_text

        click.echo(diff_text(report), nl=False, err=text_to_error())
    return report

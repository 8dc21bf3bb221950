"""`isograd convert`: parse, one call, render, exit status."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from isograd.cli.convert_builders import BuilderRequest, all_equivalent, builder_options
from isograd.cli.outputs import STANDARD_OUTPUT, check_outputs, write_json
from isograd.errors import UsageError
from isograd.files import write_text

if TYPE_CHECKING:
    from isograd.convert.model import ConvertReport
    from isograd.progress import Progress

_FILE = click.Path(path_type=Path)


@click.command()
@click.argument("path", type=_FILE, metavar="PATH")
@click.option("-o", "--out", type=_FILE, metavar="OUT", help="Where the port appears.")
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
@click.option(
    "--json",
    "json_file",
    type=_FILE,
    metavar="FILE",
    help="Write everything as JSON; `-` is standard output and moves the text to standard error.",
)
@click.option(
    "--html",
    "html_file",
    type=_FILE,
    metavar="FILE",
    help="Write one HTML page with original and port side by side, which needs no network.",
)
@builder_options
@click.option("--quiet", is_flag=True, help="Show no progress, and only the last line.")
def command(
    path: Path,
    out: Path | None,
    check: bool,
    diff: bool,
    target: str,
    force: bool,
    json_file: Path | None,
    html_file: Path | None,
    verified: tuple[str, ...],
    exported: str | None,
    inputs: tuple[str, ...],
    seeds: tuple[int, ...],
    preludes: tuple[Path, ...],
    torch_python: str | None,
    quiet: bool,
) -> int:
    """What is this PyTorch code in MindSpore?

    PATH is a Python file or a folder; nothing in it is imported or run, and nothing is written to
    it. OUT mirrors it: same files, same names, importable without torch. What is not converted
    keeps a comment `# isograd: …` at its line and is reported. With --verify and --from-export the
    original is imported and run, in a process of its own.

    Exit status: 0 everything was converted, and what was verified is equivalent; 1 a person has to
    finish something; 2 isograd was called wrongly or could not do its work.
    """
    asked = BuilderRequest(verified, exported, inputs, seeds, preludes, torch_python)
    if out is None and not (check or diff):
        raise UsageError("no place for the port is given", "Give -o OUT, or --check or --diff.")
    if out is not None and check:
        raise UsageError("--check writes nothing, and -o OUT is given", "Give one of the two.")
    check_outputs((path,), {"json": json_file, "html": html_file})
    asked.check(path, out, check or diff)
    if exported is not None and out is not None:
        return asked.export(path, out, json_file, quiet)
    from isograd.convert import Options, convert_path

    keeps = diff or html_file is not None
    with _progress(quiet) as progress:
        options = Options(target, force=force, keep_texts=keeps, progress=progress)
        report = convert_path(path, out, options)
    results = asked.verify(path, out, quiet) if verified and out is not None else ()
    if json_file is not None:
        from isograd.report.convert_builders import with_builders
        from isograd.report.convert_json import render_json

        text = render_json(report)
        write_json(json_file, with_builders(text, results) if results else text)
    if html_file is not None:
        from isograd.report.convert_html import render_html

        write_text(html_file, render_html(report))
    _show(report, quiet, diff, to_error=json_file == STANDARD_OUTPUT)
    if results:
        from isograd.cli.screen import show
        from isograd.report.convert_builders import builders_text

        said = builders_text(results)
        show(lambda width, colour: said, to_error=json_file == STANDARD_OUTPUT)
    return 1 if report.needs_a_person or not all_equivalent(results) else 0


def _show(report: ConvertReport, quiet: bool, diff: bool, *, to_error: bool) -> None:
    from isograd.cli.screen import show
    from isograd.report.convert_text import render_diff, render_line, render_text

    if diff:
        click.echo(render_diff(report), nl=False, err=to_error)
    show(
        lambda width, colour: (
            render_line(report) if quiet else render_text(report, width=width, colour=colour)
        ),
        to_error=to_error or diff,
    )


@contextmanager
def _progress(quiet: bool) -> Iterator[Progress | None]:
    """A line on a terminal while it takes long; nothing elsewhere."""
    if quiet:
        yield None
        return
    import sys

    from isograd.report.screen_progress import ScreenProgress

    with ScreenProgress(sys.stderr, "convert") as line:
        yield line

"""`isograd verify`: parse, one call, render, exit status."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from isograd.errors import UsageError
from isograd.files import prepare_folder, require_writable, write_text
from isograd.model import Verdict, VerifyReport

STANDARD_OUTPUT = Path("-")


@click.command()
@click.argument("case", type=click.Path(path_type=Path), metavar="CASE.toml")
@click.option(
    "--json",
    "json_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the report as JSON; `-` is standard output and moves the text to standard error.",
)
@click.option(
    "--html",
    "html_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the report as one HTML page that needs no network.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Seed of everything that is drawn at random.",
)
@click.option(
    "--keep",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Keep the recordings of both sides in this new or empty folder.",
)
@click.option("--quiet", is_flag=True, help="Show no progress, and only the verdict's line.")
def command(
    case: Path,
    json_file: Path | None,
    html_file: Path | None,
    seed: int,
    keep: Path | None,
    quiet: bool,
) -> int:
    """Is the port equivalent, stage by stage? Where does it first differ, and why?

    CASE.toml names the reference, the port, their inputs, loss and optimizer. Both sides run with
    the same weights and inputs, and every layer is compared against float64.

    Exit status: 0 equivalent; 1 divergent, or incomplete because something could not be compared;
    2 isograd was called wrongly or could not do its work.
    """
    _check(case, json_file, html_file, keep)
    report = _verify(case, seed, keep, quiet)
    _write(report, json_file, html_file)
    _show(report, quiet, to_error=json_file == STANDARD_OUTPUT)
    return 0 if report.verdict is Verdict.EQUIVALENT else 1


def _check(case: Path, json_file: Path | None, html_file: Path | None, keep: Path | None) -> None:
    """Raise UsageError for everything that can be known to fail before the work begins."""
    if not case.is_file():
        what = "is a folder" if case.is_dir() else "does not exist"
        raise UsageError(f"the case file {case} {what}", "Give the path of a case file in TOML.")
    if html_file == STANDARD_OUTPUT:
        raise UsageError("--html cannot write to standard output", "Give the name of a file.")
    seen = {case.resolve()}
    for path in (json_file, html_file):
        if path is None or path == STANDARD_OUTPUT:
            continue
        if path.resolve() in seen:
            raise UsageError(
                f"{path} would be overwritten: it is named twice", "Give each output its own file."
            )
        seen.add(path.resolve())
        require_writable(path)
    if keep is not None:
        prepare_folder(keep)


def _verify(case: Path, seed: int, keep: Path | None, quiet: bool) -> VerifyReport:
    from isograd.verify import verify_case

    if quiet:
        from isograd.progress import SilentProgress

        return verify_case(case, seed=seed, keep=keep, progress=SilentProgress())
    from isograd.report.progress import ReportingProgress

    with ReportingProgress(sys.stderr) as progress:
        return verify_case(case, seed=seed, keep=keep, progress=progress)


def _write(report: VerifyReport, json_file: Path | None, html_file: Path | None) -> None:
    if html_file is not None:
        from isograd.report.html import render_html

        write_text(html_file, render_html(report))
    if json_file is not None:
        from isograd.report.json import render_json

        if json_file == STANDARD_OUTPUT:
            click.echo(render_json(report), nl=False)
        else:
            write_text(json_file, render_json(report))


def _show(report: VerifyReport, quiet: bool, *, to_error: bool) -> None:
    from isograd.cli.screen import show
    from isograd.report.text import render_text, render_verdict

    if quiet:
        show(lambda width, colour: render_verdict(report), to_error=to_error)
    else:
        show(
            lambda width, colour: render_text(report, width=width, colour=colour),
            to_error=to_error,
        )

"""`isograd scan`: parse, one call, render, exit status."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from isograd.cli.outputs import STANDARD_OUTPUT, check_outputs, write_json
from isograd.files import write_text

if TYPE_CHECKING:
    from isograd.scan.model import ScanReport
    from isograd.scan.run import ScanProgress
    from isograd.scan.summary import Summary

_FILE = click.Path(path_type=Path)
_KINDS = ("missing", "differs", "hazard")
#: What a person must act on where nothing else is asked for.
_DEFAULT = ("missing", "hazard")


@click.command()
@click.argument("path", type=_FILE, metavar="PATH")
@click.option(
    "--json",
    "json_file",
    type=_FILE,
    metavar="FILE",
    help="Write everything as JSON; `-` is standard output and moves the text to standard error.",
)
@click.option("--csv", "csv_file", type=_FILE, metavar="FILE", help="Write a table, a row per use.")
@click.option(
    "--sarif", "sarif_file", type=_FILE, metavar="FILE", help="Write SARIF for code scanning."
)
@click.option(
    "--html",
    "html_file",
    type=_FILE,
    metavar="FILE",
    help="Write one HTML page with the source annotated, which needs no network.",
)
@click.option(
    "--fail-on",
    "kinds",
    type=click.Choice(_KINDS),
    multiple=True,
    help="What makes the exit status 1; may be given several times. Default: missing and hazard.",
)
@click.option("--no-cache", is_flag=True, help="Scan again even where nothing has changed.")
@click.option("--quiet", is_flag=True, help="Show no progress, and only the last line.")
def command(
    path: Path,
    json_file: Path | None,
    csv_file: Path | None,
    sarif_file: Path | None,
    html_file: Path | None,
    kinds: tuple[str, ...],
    no_cache: bool,
    quiet: bool,
) -> int:
    """What in this PyTorch code is supported, differs, is missing, or is a hazard?

    PATH is a Python file, a notebook or a folder. Nothing in it is imported or run. Each use of
    torch is named with file, line and column, and what isograd knows of it was executed on both
    frameworks.

    Exit status: 0 nothing of the kinds of --fail-on was found; 1 something was, or a file could not
    be scanned; 2 isograd was called wrongly or could not do its work. Hazards of a single device
    and what is unknown do not fail.
    """
    outputs = {"json": json_file, "csv": csv_file, "sarif": sarif_file, "html": html_file}
    check_outputs((path,), outputs)
    from isograd.scan.run import scan_path
    from isograd.scan.summary import fails, summarize

    with _progress(quiet) as progress:
        report = scan_path(path, progress=progress, use_cache=not no_cache)
    summary = summarize(report)
    _write(report, summary, outputs)
    _show(report, summary, quiet, to_error=STANDARD_OUTPUT in outputs.values())
    return 1 if fails(report, kinds or _DEFAULT) else 0


def _write(report: ScanReport, summary: Summary, outputs: dict[str, Path | None]) -> None:
    if (json_file := outputs["json"]) is not None:
        from isograd.report.scan_json import render_json

        write_json(json_file, render_json(report, summary))
    if (csv_file := outputs["csv"]) is not None:
        from isograd.report.scan_json import render_csv

        write_json(csv_file, render_csv(report))
    if (sarif_file := outputs["sarif"]) is not None:
        from isograd.report.scan_sarif import render_sarif

        write_json(sarif_file, render_sarif(report))
    if (html_file := outputs["html"]) is not None:
        from isograd.report.scan_html import render_html

        write_text(html_file, render_html(report, summary))


def _show(report: ScanReport, summary: Summary, quiet: bool, *, to_error: bool) -> None:
    from isograd.cli.screen import show
    from isograd.report.scan_text import render_line, render_text

    show(
        lambda width, colour: (
            render_line(summary)
            if quiet
            else render_text(report, summary, width=width, colour=colour)
        ),
        to_error=to_error,
    )


@contextmanager
def _progress(quiet: bool) -> Iterator[ScanProgress | None]:
    """A line on a terminal while it takes long; nothing elsewhere."""
    if quiet:
        yield None
        return
    import sys

    from isograd.report.scan_progress import ScanLine

    with ScanLine(sys.stderr) as line:
        yield line

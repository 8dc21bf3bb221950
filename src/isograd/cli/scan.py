"""`isograd scan`: parse, and one call."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from isograd.cli.inputs import OUTPUT
from isograd.cli.selection import selection_options
from isograd.cli.verb import Output, verb

if TYPE_CHECKING:
    from isograd.progress import Progress
    from isograd.scan.model import ScanReport

_KINDS = ("missing", "differs", "hazard")


@verb(
    document="isograd.scan.document:document",
    page="isograd.scan.document:page",
    sarif=True,
    outputs=(Output("csv", "Write a row per use and hazard.", "isograd.scan.data:render_csv"),),
)
@click.argument("path", type=OUTPUT, metavar="PATH")
@click.option(
    "--fail-on",
    "kinds",
    type=click.Choice(_KINDS),
    multiple=True,
    help="What makes the exit status 1; may be given several times. Default: missing and hazard.",
)
@selection_options
@click.option("--no-cache", is_flag=True, help="Scan again even where nothing has changed.")
def command(
    path: Path,
    kinds: tuple[str, ...],
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    exclude: tuple[str, ...],
    with_ignored: bool,
    no_cache: bool,
    progress: Progress,
) -> ScanReport:
    """Find what of a PyTorch project MindSpore supports, changes or lacks, and its hazards.

    PATH is a Python file, a notebook or a folder. Nothing in it is imported or run. Each use of
    torch is named with file, line and column, and what isograd knows of it was executed on both
    frameworks. A comment `# isograd: ignore[CODE]` ignores the findings of its line.

    Exit status: 0 nothing of the kinds of --fail-on was found; 1 something was, or a file could not
    be scanned; 2 isograd was called wrongly or could not do its work. Hazards of a single device
    and what is unknown do not fail.
    """
    from isograd.scan.run import scan_path
    from isograd.scan.selection import Selection

    report = scan_path(
        path,
        progress=progress,
        use_cache=not no_cache,
        selection=Selection(select, ignore, exclude, with_ignored),
    )
    return replace(report, fail_on=kinds) if kinds else report

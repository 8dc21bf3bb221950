"""`isograd params`: parse, one call, render, exit status."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from isograd.cli import outputs
from isograd.files import write_text

if TYPE_CHECKING:
    from isograd.weights.correspondence import ParamsReport

_FILE = click.Path(path_type=Path)


@click.command()
@click.argument("first", metavar="FILE")
@click.argument("second", metavar="[FILE]", required=False)
@click.option(
    "--json",
    "json_file",
    type=_FILE,
    metavar="FILE",
    help="Write the report as JSON; `-` is standard output and moves the text to standard error.",
)
@click.option("--csv", "csv_file", type=_FILE, metavar="FILE", help="Write a row per tensor.")
@click.option(
    "--html",
    "html_file",
    type=_FILE,
    metavar="FILE",
    help="Write the report as one HTML page that needs no network.",
)
@click.option("--names-only", is_flag=True, help="Do not read the numbers.")
@click.option("--quiet", is_flag=True, help="Show no progress, and only the last line.")
def command(
    first: str,
    second: str | None,
    json_file: Path | None,
    csv_file: Path | None,
    html_file: Path | None,
    names_only: bool,
    quiet: bool,
) -> int:
    """What does this checkpoint hold, is it sound, and which tensor is which of another?

    With two files, their tensors are paired by names, layouts and the conventions of both
    frameworks; where most names are the same, what changed between them is listed.

    Exit status: 0 sound, and every tensor has its partner; 1 something needs a person; 2 isograd
    was called wrongly or could not do its work.
    """
    files = {"json": json_file, "csv": csv_file, "html": html_file}
    outputs.check_outputs([Path(path) for path in (first, second) if path], files)
    from isograd.cli.screen import show
    from isograd.report import params_text
    from isograd.weights.run import params_of

    with outputs.bytes_on_screen(quiet, "params") as listener:
        report = params_of(first, second, read=not names_only, listener=listener)
    _write(report, files)
    show(
        lambda width, colour: (
            params_text.sentence(report) + "\n"
            if quiet
            else params_text.render_text(report, width=width, colour=colour)
        ),
        to_error=outputs.STANDARD_OUTPUT in files.values(),
    )
    return 1 if report.needs_action else 0


def _write(report: ParamsReport, files: Mapping[str, Path | None]) -> None:
    from isograd.report.params_json import render_csv, render_json

    if (json_file := files["json"]) is not None:
        outputs.write_json(json_file, render_json(report))
    if (csv_file := files["csv"]) is not None:
        outputs.write_json(csv_file, render_csv(report))
    if (html_file := files["html"]) is not None:
        from isograd.report.params_html import render_html

        write_text(html_file, render_html(report))

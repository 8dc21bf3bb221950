"""`isograd params`: parse, one call, render, exit status."""

from __future__ import annotations

from pathlib import Path

import click

from isograd.cli import outputs
from isograd.files import require_writable


@click.command()
@click.argument("first", metavar="FILE")
@click.argument("second", metavar="[FILE]", required=False)
@click.option(
    "--json",
    "json_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the report as JSON; `-` is standard output and moves the text to standard error.",
)
@click.option("--names-only", is_flag=True, help="Do not read the numbers.")
@click.option("--quiet", is_flag=True, help="Show only the last line.")
def command(
    first: str, second: str | None, json_file: Path | None, names_only: bool, quiet: bool
) -> int:
    """What does this checkpoint hold, is it sound, and which tensor is which of another?

    With two files, their tensors are paired by names, layouts and the conventions of both
    frameworks; where all names are the same, what changed between them is listed.

    Exit status: 0 sound, and every tensor has its partner; 1 something needs a person; 2 isograd
    was called wrongly or could not do its work.
    """
    if json_file is not None and json_file != outputs.STANDARD_OUTPUT:
        require_writable(json_file)
    from contextlib import ExitStack

    from isograd.checkpoints.open import open_source
    from isograd.cli.screen import show
    from isograd.report import params_text
    from isograd.report.params_json import render_json
    from isograd.weights.correspondence import report_of

    with ExitStack() as stack:
        sources = [stack.enter_context(open_source(path)) for path in (first, second) if path]
        report = report_of(*sources, read=not names_only)
    if json_file is not None:
        outputs.write_json(json_file, render_json(report))
    show(
        lambda width, colour: (
            params_text.sentence(report) + "\n"
            if quiet
            else params_text.render_text(report, width=width, colour=colour)
        ),
        to_error=json_file == outputs.STANDARD_OUTPUT,
    )
    return 1 if report.needs_action else 0

"""`isograd init`: parse, and one call."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from isograd.cli.inputs import INPUT, OUTPUT
from isograd.cli.verb import verb

if TYPE_CHECKING:
    from isograd.init.model import InitReport
    from isograd.progress import Progress


@verb(document="isograd.init.document:document")
@click.argument("reference", type=INPUT, metavar="REFERENCE.py")
@click.argument("port", type=INPUT, metavar="PORT.py")
@click.option(
    "-o",
    "--output",
    type=OUTPUT,
    default="case.toml",
    show_default=True,
    metavar="CASE.toml",
    help="The case that is written.",
)
@click.option("--force", is_flag=True, help="Replace files that are there.")
@click.option("--no-run", is_flag=True, help="Only read the files; do not build the networks.")
def command(
    reference: Path, port: Path, output: Path, force: bool, no_run: bool, progress: Progress
) -> InitReport:
    """Write a first case file for a network and its port.

    Both files are read for what builds their networks, their losses, their optimizers, and the
    shapes of their inputs. Both networks are built and run once, which settles inputs and targets
    that are written nowhere. A loss or an optimizer that stands in the middle of a program is
    written into a file beside the case.

    Exit status: 0 the case is written; 1 it is written and does not run yet; 2 isograd was called
    wrongly or could not do its work.
    """
    from isograd.init.run import init

    return init(reference, port, output, force=force, no_run=no_run)

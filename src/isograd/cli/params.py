"""`isograd params`: parse, and one call."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from isograd.cli.verb import Output, verb

if TYPE_CHECKING:
    from isograd.progress import Progress
    from isograd.weights.correspondence import ParamsReport


@verb(
    document="isograd.weights.params_document:document",
    outputs=(Output("csv", "Write a row per tensor.", "isograd.weights.params_data:render_csv"),),
)
@click.argument("first", metavar="FILE")
@click.argument("second", metavar="[FILE]", required=False)
@click.option("--names-only", is_flag=True, help="Do not read the numbers.")
def command(first: str, second: str | None, names_only: bool, progress: Progress) -> ParamsReport:
    """List the tensors of a checkpoint, check them, and pair them with another's.

    With two files, their tensors are paired by names, layouts and the conventions of both
    frameworks; where most names are the same, what changed between them is listed.

    Exit status: 0 sound, and every tensor has its partner; 1 something needs a person; 2 isograd
    was called wrongly or could not do its work.
    """
    from isograd.weights.run import params_of

    listener = partial(progress.advance, unit="bytes")
    return params_of(first, second, read=not names_only, listener=listener)

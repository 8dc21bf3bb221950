"""`isograd data`: parse, one call, render, exit status."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from isograd.cli.verb import verb

if TYPE_CHECKING:
    from isograd.data.model import DataReport
    from isograd.progress import Progress


@verb(document="isograd.data.document:document")
@click.argument("sources", nargs=-1, required=True, metavar="A [B]")
@click.option(
    "--label", metavar="FIELD", help="The field of labels. Default: what the layout says."
)
@click.option("--classes", type=click.IntRange(min=1), help="How many classes there are.")
@click.option("--limit", type=click.IntRange(min=1), help="Read only so many samples.")
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of all choices."
)
def command(
    sources: tuple[str, ...],
    label: str | None,
    classes: int | None,
    limit: int | None,
    seed: int,
    progress: Progress,
) -> DataReport:
    """What does this data set or pipeline yield, and do two of them yield the same?

    A and B are data sets (a folder, a file, a pattern in quotes, a URL) or pipelines, as
    file.py:callable.

    Exit status: 0 sound, or the same; 1 something is unsound, differs, or was not compared; 2
    isograd was called wrongly or could not do its work.
    """
    from isograd.data.run import DataOptions, look

    options = DataOptions(label=label, classes=classes, limit=limit or 0, seed=seed)
    return look(sources[0], options, progress)

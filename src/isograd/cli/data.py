"""`isograd data`: parse, one call, render, exit status."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from isograd.cli.inputs import OUTPUT
from isograd.cli.verb import Output, verb
from isograd.errors import UsageError

if TYPE_CHECKING:
    from isograd.data.model import DataReport
    from isograd.progress import Progress


@verb(
    document="isograd.data.document:document",
    outputs=(
        Output(
            "view",
            "Write a page to look through samples, by label and finding.",
            "isograd.data.view:render_view",
            is_text=False,
        ),
        Output(
            "parquet",
            "Write a row per field and channel, or per field of both sides, as Parquet.",
            "isograd.data.results_table:results_parquet",
            is_text=False,
            check="isograd.data.sources.parquet:pyarrow",
        ),
    ),
)
@click.argument("sources", nargs=-1, required=True, metavar="A [B]")
@click.option("--label", metavar="FIELD", help="The field of labels. Default: the layout's.")
@click.option("--classes", type=click.IntRange(min=1), help="How many classes there are.")
@click.option("--limit", type=click.IntRange(min=1), help="Read only so many samples.")
@click.option(
    "-o",
    "--output",
    type=OUTPUT,
    metavar="DST",
    help="Write A as .tfrecord, .mindrecord, .npz, .parquet or .tar; with --batches a folder.",
)
@click.option(
    "--batches",
    type=click.IntRange(min=1),
    metavar="N",
    help="Store the first N batches of pipeline A in DST, for both trainings and for verify.",
)
@click.option(
    "--against",
    metavar="SPLIT",
    help="Look at A and at this other split of the data set together: what stands in both leaks.",
)
@click.option("--key", metavar="FIELD", help="Pair samples of A and B by this field.")
@click.option(
    "--samples", type=click.IntRange(min=2), default=128, show_default=True, help="Compare so many."
)
@click.option(
    "--draws",
    type=click.IntRange(min=50),
    default=10_000,
    show_default=True,
    help="Draw so often from each random transform.",
)
@click.option("--python-a", metavar="PROGRAM", help="The interpreter for pipeline A.")
@click.option("--python-b", metavar="PROGRAM", help="The interpreter for pipeline B.")
@click.option(
    "--shown",
    type=click.IntRange(min=0),
    default=48,
    show_default=True,
    help="Choose so many samples to look at.",
)
@click.option(
    "--vocabulary",
    type=OUTPUT,
    metavar="FILE",
    help="Show ids as tokens of vocab.txt (a token per line), vocab.json or tokenizer.json.",
)
@click.option(
    "--engine", type=click.Choice(["process", "dask"]), default="process", help="What reads A."
)
@click.option("--jobs", type=click.IntRange(min=0), default=0, help="Dask's workers here.")
@click.option("--scheduler", metavar="ADDRESS", help="Dask's scheduler, as tcp://host:8786.")
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of all choices."
)
def command(
    sources: tuple[str, ...], limit: int | None, progress: Progress, **given: Any
) -> DataReport:
    """Look at a data set or pipeline, or compare two pipelines sample by sample.

    A and B are data sets (a folder, a file, a pattern in quotes, a URL) or pipelines, as
    file.py:callable.

    Exit status: 0 sound, or the same; 1 something is unsound, differs, or was not compared; 2
    isograd was called wrongly or could not do its work.
    """
    from isograd.data.run import data

    if len(sources) > 2:
        raise UsageError(f"{len(sources)} sources are given", "Give A, or A and B.")
    second = sources[1] if len(sources) == 2 else None
    return data(sources[0], second, limit=limit or 0, progress=progress, **given)

"""`isograd tune`: parse, one call, render, exit status."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from isograd.cli.inputs import INPUT
from isograd.cli.verb import verb

if TYPE_CHECKING:
    from isograd.progress import Progress
    from isograd.tune.model import TuneReport


@verb(document="isograd.tune.document:document")
@click.argument("study", type=INPUT, metavar="STUDY.toml")
@click.option(
    "--trials",
    type=click.IntRange(min=0),
    help="End when so many trials have ended, earlier ones counted. 0: report, run none.",
)
@click.option(
    "--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Trials at a time."
)
@click.option(
    "--storage",
    metavar="FILE|URL",
    help="Where the study is kept: a journal file or a database. Default: beside the study.",
)
@click.option("--seed", type=click.IntRange(min=0), help="Seed of the search.")
@click.option(
    "--same-as",
    type=INPUT,
    metavar="STUDY|REPORT|RUN",
    help="Start with the best hyper-parameters of the reference's search or run.",
)
@click.option(
    "--verify", type=INPUT, metavar="CASE.toml", help="Check the port by this case in the end."
)
@click.option(
    "--engine",
    type=click.Choice(["processes", "dask"]),
    default="processes",
    show_default=True,
    help="What runs the trials (extra `dask`).",
)
@click.option("--scheduler", metavar="ADDRESS", help="Dask's scheduler, as tcp://host:8786.")
def command(study: Path, progress: Progress, **given: Any) -> TuneReport:
    """Search the best hyper-parameters of an unchanged training script.

    STUDY is isograd's TOML or MindOptimizer's YAML. The training script is not changed; it gets the
    hyper-parameters by its command line or environment, and its value is found where it leaves it.
    A search that was ended goes on where it stood.

    Exit status: 0 a best trial was found; 1 no trial gave a value, or verify differs; 2 isograd was
    called wrongly or could not do its work.
    """
    from isograd.errors import UsageError
    from isograd.tune.run import tune

    if given["scheduler"] is not None and given["engine"] != "dask":
        raise UsageError("--scheduler is given without --engine dask", "Give both or neither.")
    return tune(study, progress=progress, **given)

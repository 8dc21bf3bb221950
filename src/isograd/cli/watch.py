"""`isograd watch`: parse, one call, render, exit status."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from isograd.cli.inputs import OUTPUT
from isograd.cli.verb import verb
from isograd.errors import UsageError

if TYPE_CHECKING:
    from isograd.progress import Progress
    from isograd.watch.model import WatchReport


@verb(document="isograd.watch.document:document")
@click.argument("run", metavar="RUN")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- ARGS]")
@click.option(
    "--out",
    type=OUTPUT,
    metavar="FOLDER",
    help="RUN is a training script: run it unchanged under watch, into this new folder.",
)
@click.option("--follow", is_flag=True, help="Wait until the run has ended, and say what happens.")
@click.option(
    "--against",
    multiple=True,
    metavar="RUN",
    help="A run of the reference; several are the seeds whose spread is normal.",
)
@click.option(
    "--tensorboard",
    type=OUTPUT,
    metavar="FOLDER",
    help="Write the scalars as TensorBoard events (extra `tensorboard`).",
)
@click.option(
    "--twice",
    type=click.IntRange(min=1),
    is_flag=False,
    flag_value=3,
    metavar="STEPS",
    help="RUN is a script: run its first steps twice (3 by default) and compare them.",
)
def command(
    run: str,
    arguments: tuple[str, ...],
    out: Path | None,
    follow: bool,
    against: tuple[str, ...],
    tensorboard: Path | None,
    twice: int | None,
    progress: Progress,
) -> WatchReport:
    """Judge a training run's health, and find where the first NaN or Inf arose.

    RUN is a folder that a watched training wrote, a loss log, a folder of dumps, a series of
    checkpoints, TensorBoard or MindSpore event files. With --out or --twice it is a script.

    Exit status: 0 healthy; 1 there is an alert, or the training failed; 2 isograd was called
    wrongly or could not do its work.
    """
    if out is not None or twice is not None:
        from isograd.watch.script import watch_script

        if twice is not None:
            from isograd.watch.twice import run_twice

            return run_twice(Path(run), arguments, twice, out)
        assert out is not None
        return watch_script(Path(run), arguments, out)
    if arguments:
        raise UsageError(
            f"{arguments[0]!r} is given beside {run}", "To run a script, give --out FOLDER, too."
        )
    from isograd.watch.reading import read_source

    return read_source(run, against=against, follow=follow, tensorboard=tensorboard)

"""`isograd profile`: parse, one call, render, exit status."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from isograd.cli.inputs import INPUT, OUTPUT
from isograd.cli.verb import Output, verb
from isograd.errors import UsageError

if TYPE_CHECKING:
    from isograd.profile.report import ProfileReport
    from isograd.progress import Progress


@verb(
    document="isograd.profile.document:document",
    page="isograd.profile.document:page",
    outputs=(
        Output(
            "trace",
            "Write the intervals as a Chrome trace that opens in Perfetto, with exact times.",
            "isograd.profile.write_trace:trace_text",
        ),
        Output(
            "parquet",
            "Write the operators as Parquet (extra `sql`).",
            "isograd.profile.write_parquet:operators_parquet",
            is_text=False,
            check="isograd.compare.parquet:require_duckdb",
        ),
    ),
)
@click.option(
    "--out",
    type=OUTPUT,
    metavar="FOLDER",
    help="Record instead: RUN is a script, what follows `--` are its arguments.",
)
@click.option(
    "--steps",
    type=click.IntRange(min=8),
    help="With --out: training steps that are looked at, warm-up included. Default: 30.",
)
@click.option(
    "--try",
    "try_",
    is_flag=True,
    help="With --out: run the script again with one setting changed at a time, and measure.",
)
@click.option(
    "--links",
    type=click.IntRange(min=2),
    metavar="PROCESSES",
    help="Measure what a message between processes costs (torch over gloo), and nothing else.",
)
@click.option(
    "--peak",
    nargs=2,
    type=click.FloatRange(min=0, min_open=True),
    metavar="GFLOPS GBPS",
    help="What the machine reaches, for the roofline. Default: what the recording measured.",
)
@click.argument("run", type=INPUT, required=False, metavar="RUN")
@click.argument("more", nargs=-1, metavar="[RUN]")
def command(
    run: Path | None,
    more: tuple[str, ...],
    out: Path | None,
    steps: int | None,
    try_: bool,
    links: int | None,
    peak: tuple[float, float] | None,
    progress: Progress,
) -> ProfileReport | int:
    """Find where a step's time goes, what limits it, and what would change it.

    RUN is a trace of torch.profiler, a folder of MindSpore's profiler or of MindInsight, or a run
    that isograd recorded. With a second RUN both are shown side by side. With --out, RUN is a
    script that trains a network: it is run unchanged, recorded, and judged.

    Exit status: 0 no time above 5 % of the step could be won; 1 something could; 2 isograd was
    called wrongly or could not do its work.
    """
    from isograd.profile.run import profile_paths, profile_script

    if links is not None:
        return _links(links)
    if run is None:
        raise UsageError("no run is given", "Give a trace, a profiler's folder, or a run.")
    if out is not None:
        if peak is not None:
            raise UsageError("--peak is given with --out", "A recording measures the machine.")
        return profile_script(run, out, more, steps=steps, try_=try_, progress=progress)
    if steps is not None or try_:
        raise UsageError("--steps or --try is given without --out", "They belong to a recording.")
    if len(more) > 1:
        raise UsageError(f"{len(more) + 1} runs are given", "Give one or two.")
    other = Path(more[0]) if more else None
    return profile_paths(run, other, peaks=peak, progress=progress)


def _links(processes: int) -> int:
    from isograd.profile.communication.links import measure_links

    cost = measure_links(processes)
    for size, seconds in zip(cost.size_bytes, cost.seconds, strict=True):
        click.echo(f"{int(size):>12,d} bytes  {seconds * 1e6:10.0f} µs")
    affine = cost.affine
    click.echo(
        f"A message of n bytes between {processes} processes takes about "
        f"{affine.a_s:.3g} s + {affine.b_s_per_byte:.3g} s × n."
    )
    return 0

"""`isograd profile`: parse, one call, render, exit status."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from isograd.cli.verb import INPUT, Output, verb

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
@click.argument("run", type=INPUT, metavar="RUN")
@click.argument("other", type=INPUT, required=False, metavar="[RUN]")
def command(run: Path, other: Path | None, progress: Progress) -> ProfileReport:
    """Where does the time go, what is the bottleneck, what would change it?

    RUN is a trace of torch.profiler, a folder of MindSpore's profiler or of MindInsight, or a run
    that isograd.profile recorded. With a second RUN both are shown side by side.

    Exit status: 0 no time above 5 % of the step could be won; 1 something could; 2 isograd was
    called wrongly or could not do its work.
    """
    from isograd.profile.run import profile_paths

    return profile_paths(run, other, progress=progress)

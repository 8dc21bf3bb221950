"""What `isograd watch` reads: a run, or what other tools left of one."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from isograd.files import require_path
from isograd.runs.reader import is_run
from isograd.watch.model import WatchReport
from isograd.watch.read import read_run


def read_source(
    source: str | Path,
    *,
    against: str | Path | Iterable[str | Path] = (),
    follow: bool = False,
    tensorboard: str | Path | None = None,
) -> WatchReport:
    """The report of a run, or of what else was given.

    against: runs of the reference, one per seed.  follow: wait until the run has ended.
    tensorboard: a folder that gets the scalars as TensorBoard events.
    Raises UsageError or RunError where it cannot be read.
    """
    path = Path(source)
    require_path(path, "Name a run's folder, a log, or a dump.")
    if follow:
        from isograd.watch.follow import wait_until_ended

        wait_until_ended(path)
    if is_run(path):
        report = read_run(path)
    else:
        from isograd.watch.offline.read import read_offline

        report = read_offline(path)
    references = [against] if isinstance(against, (str, Path)) else list(against)
    for one in references:
        require_path(Path(one), "Name the folder of a reference's run.")
    if references:
        from isograd.watch.against import judge_against

        report = judge_against(report, path, [Path(one) for one in references])
    if tensorboard is not None:
        from isograd.watch.tensorboard import write_events

        write_events(path, Path(tensorboard))
    return report

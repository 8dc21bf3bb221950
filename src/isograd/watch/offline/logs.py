"""Loss logs, and event files of TensorBoard and MindSpore."""

from __future__ import annotations

from pathlib import Path

from isograd.compare.files.logs import read_two_logs
from isograd.watch.model import WatchReport
from isograd.watch.observation import StepRecord
from isograd.watch.offline.judging import EMPTY, judged


def judge_log(path: Path) -> WatchReport:
    """The losses of a log; CheckpointError where it is damaged."""
    log, _ = read_two_logs(path, path)
    records = (StepRecord(step, loss) for step, loss in zip(log.steps, log.losses, strict=True))
    return judged(path, f"{log.kind}, series {log.series!r}", EMPTY, records)

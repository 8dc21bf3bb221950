"""Runs of the ranks of one distributed training: they start equal, and their gradients are one."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from isograd.runs.reader import Run, is_run
from isograd.watch.alerts.rule import Severity
from isograd.watch.judge import Alert
from isograd.watch.model import WatchReport
from isograd.watch.read import read_run

_RANK = re.compile(r"rank[_-]?(\d+)", re.IGNORECASE)
#: Reductions add in another order on each rank at most; float32 keeps seven digits.
_TOLERANCE = 1e-4


def rank_folders(folder: Path) -> list[Path]:
    """The runs of ranks below a folder, in the order of their numbers."""
    found = [p for p in folder.iterdir() if _RANK.fullmatch(p.name) and is_run(p)]
    return sorted(found, key=lambda p: int(_RANK.fullmatch(p.name)[1]))  # type: ignore[index]


def judge_ranks(folder: Path, ranks: list[Path]) -> WatchReport:
    """The report of the lowest rank, with what tells the others apart."""
    report = read_run(ranks[0])
    first, others = Run(ranks[0]), [Run(rank) for rank in ranks[1:]]
    alerts = []
    for other in others:
        for prefix, suffix, code, message, advice in _CONDITIONS:
            found = _apart(first, other, prefix, suffix, only_first=code == "rank.starts_apart")
            if found is not None:
                name, step, here, there = found
                alerts.append(
                    _alert(code, name, step, there, here, message.format(other.folder.name), advice)
                )
    known = tuple(path.name for path in ranks)
    return report.with_alerts(
        tuple(alerts),
        source=str(folder),
        randomness={"ranks": list(known), "lines": [a.message for a in alerts]},
    )


_CONDITIONS = (
    (
        "weight/",
        "/norm",
        "rank.starts_apart",
        "{} begins with other weights than the lowest rank",
        "Broadcast the weights of rank 0 before the first step, or seed all ranks alike before the "
        "network is built.",
    ),
    (
        "gradient/",
        "/norm",
        "rank.gradients_apart",
        "the gradients of {} are not those of the lowest rank when the optimizer gets them",
        "Aggregate them: DistributedDataParallel in torch, DistributedGradReducer or "
        "set_auto_parallel_context(gradients_mean=True) in MindSpore.",
    ),
)


def _apart(
    first: Run, other: Run, prefix: str, suffix: str, *, only_first: bool
) -> tuple[str, int, float, float] | None:
    """Name, step and both numbers of the first difference."""
    found: tuple[str, int, float, float] | None = None
    for name in first.statistics.columns:
        if not (name.startswith(prefix) and name.endswith(suffix)):
            continue
        steps, here = first.statistics.series(name)
        other_steps, there = other.statistics.series(name)
        count = min(len(steps), len(other_steps), 1 if only_first else 1_000_000)
        if not count or not np.array_equal(steps[:count], other_steps[:count]):
            continue
        gap = np.abs(here[:count] - there[:count])
        apart = np.flatnonzero(gap > _TOLERANCE * np.abs(here[:count]))
        if apart.size and (found is None or steps[apart[0]] < found[1]):
            at = int(apart[0])
            found = (
                name[len(prefix) : -len(suffix)],
                int(steps[at]),
                float(here[at]),
                float(there[at]),
            )
    return found


def _alert(
    code: str, name: str, step: int, value: float, limit: float, message: str, advice: str
) -> Alert:
    return Alert(
        code=code,
        severity=Severity.ALERT,
        first_step=step,
        last_step=step,
        count=1,
        module=name.rpartition(".")[0],
        tensor=name,
        value=value,
        limit=limit,
        source="data-parallel ranks hold one network",
        message=f"{message}: {name} first, at step {step}",
        advice=advice,
    )

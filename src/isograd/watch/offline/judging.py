"""Steps that were read from files, judged as if they were seen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from isograd.watch.judge import Judge, worst
from isograd.watch.model import Curve, WatchReport, verdict_of
from isograd.watch.observation import Network, StepRecord
from isograd.watch.read import thinned
from isograd.watch.settings import find_settings

EMPTY = Network((), np.empty(0, np.int64), np.empty(0, dtype=bool), np.empty(0, dtype=bool))
_POINTS = 2000


def judged(
    path: Path,
    kind: str,
    network: Network,
    records: Iterable[StepRecord],
    *,
    origin: Mapping[str, Any] | None = None,
    notes: tuple[str, ...] = (),
) -> WatchReport:
    """The report of steps from files.

    kind: what the files are, for people.
    """
    judge = Judge(network, find_settings(Path.cwd()))
    steps: list[int] = []
    losses: list[float] = []
    norms: list[float] = []
    for record in records:
        judge.judge(record)
        steps.append(record.step)
        losses.append(np.nan if record.loss is None else record.loss)
        norms.append(record.total_norm())
    alerts = tuple(worst(judge.alerts))
    return WatchReport(
        source=str(path),
        verdict=verdict_of(alerts, len(steps)),
        run={"name": path.name, "kind": kind},
        steps=len(steps),
        alerts=alerts,
        first_nonfinite=origin,
        curves=tuple(_curves(steps, {"loss": losses, "gradient_norm": norms})),
        notes=(*notes, f"read from {kind}: only what it holds was judged"),
    )


def _curves(steps: list[int], series: Mapping[str, list[float]]) -> Iterable[Curve]:
    for name, values in series.items():
        array = np.array(values)
        if np.isfinite(array).any():
            yield thinned(name, np.array(steps), array, _POINTS)

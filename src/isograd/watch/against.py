"""A run against runs of the reference: where the port's statistics leave what the seeds spread.

Steps are counted by the updates that were applied, so that loss scales that start differently (2^24
in MindSpore, 2^16 in torch) and overflow in the first steps shift nothing.  Numbers are compared on
a logarithmic scale: a departure is a factor.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from isograd.errors import RunError
from isograd.pairing.conventions import canonical_component, place_of_attribute
from isograd.runs.reader import Run
from isograd.runs.table import Table
from isograd.watch.alerts.rule import Severity
from isograd.watch.judge import Alert
from isograd.watch.model import Curve, WatchReport

#: Standard deviations of the seeds, and the factor that is allowed where there is one seed only
#: or all seeds agree; so many comparable steps in a row make a departure.
DEVIATIONS, LEAST_FACTOR, ROW = 6.0, 2.0, 3
_SOURCE = (
    f"the reference's runs: mean ± {DEVIATIONS:g} standard deviations of the logarithm over the "
    f"seeds, at least a factor of {LEAST_FACTOR:g}"
)
_ADVICE = (
    "Run `isograd verify` on this module: it says whether the forward pass, the gradient or the "
    "update differs, and why."
)


@dataclass(frozen=True)
class Departure:
    """A series that leaves the reference: step of the port, its value and the border passed."""

    name: str
    step: int
    last_step: int
    count: int
    value: float
    limit: float


def judge_against(report: WatchReport, path: Path, references: Sequence[Path]) -> WatchReport:
    """The report with an alert where the port departs; RunError where nothing can be paired."""
    port, runs = Run(path), [Run(one) for one in references]
    found = _departures_of_scalars(port, runs)
    paired, more = _departures_of_tensors(port, runs)
    if not paired and not found:
        _require_common(port, runs, references)
    departures = sorted([*found, *more], key=lambda one: one.step)
    alerts = tuple(_alert(one) for one in departures[:20])
    notes = (f"{paired} series of tensors were paired with the reference's",)
    curves = tuple(_with_band(curve, runs) for curve in report.curves)
    return report.with_alerts(alerts, notes=(*report.notes, *notes), curves=curves)


def _require_common(port: Run, runs: Sequence[Run], references: Sequence[Path]) -> None:
    known = set(port.scalars.columns) & {n for run in runs for n in run.scalars.columns}
    if not known:
        raise RunError(
            f"{port.folder} and {references[0]} have no series in common",
            "Watch both trainings in the same way, and give runs of the same network.",
        )


def _departures_of_scalars(port: Run, runs: Sequence[Run]) -> list[Departure]:
    found = []
    for name in ("loss", "gradient_norm"):
        departure = _departure(
            name,
            _applied(port.scalars, name, port),
            [_applied(run.scalars, name, run) for run in runs],
        )
        if departure is not None:
            found.append(departure)
    return found


def _departures_of_tensors(port: Run, runs: Sequence[Run]) -> tuple[int, list[Departure]]:
    names = {_key(name): name for name in port.statistics.columns}
    others = [{_key(name): name for name in run.statistics.columns} for run in runs]
    common = [key for key in names if all(key in other for other in others)]
    if port.statistics.row_count and not common:
        raise RunError(
            f"{port.folder}: none of its parameters corresponds to the reference's",
            "Give runs of the same network; names are paired by the frameworks' conventions.",
        )
    found = []
    for key in common:
        if not key.endswith(("/norm", "/ratio", "/abs_mean")):
            continue
        departure = _departure(
            names[key],
            _applied(port.statistics, names[key], port),
            [_applied(run.statistics, o[key], run) for run, o in zip(runs, others, strict=True)],
        )
        if departure is not None:
            found.append(departure)
    return len(common), found


def _key(column: str) -> str:
    """A column's name with the tensor's name as both frameworks would have it."""
    what, _, rest = column.partition("/")
    name, _, statistic = rest.rpartition("/")
    *path, last = name.split(".")
    inner, attribute = place_of_attribute("", last)
    words = [canonical_component(part) for part in (*path, *inner)]
    return f"{what}/{'.'.join([*words, attribute])}/{statistic}"


Numbered = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]


def _applied(table: Table, name: str, run: Run) -> Numbered:
    """Steps, updates that were applied before each, and values, without steps left out."""
    steps, values = table.series(name)
    overflow_steps, overflow = run.scalars.series("overflow")
    skipped = overflow_steps[overflow > 0.0]
    kept = ~np.isin(steps, skipped)
    steps, values = steps[kept], values[kept]
    return steps, steps - np.searchsorted(skipped, steps), values


def _departure(name: str, port: Numbered, references: Sequence[Numbered]) -> Departure | None:
    steps, updates, values = port
    tables = [dict(zip(u.tolist(), v.tolist(), strict=True)) for _, u, v in references]
    row: list[tuple[int, float, float]] = []
    for step, update, value in zip(steps.tolist(), updates.tolist(), values.tolist(), strict=True):
        known = [table[update] for table in tables if update in table]
        if not known:
            continue
        border = _border(value, known)
        if border is None:
            if len(row) >= ROW:
                break
            row = []
        else:
            row.append((step, value, border))
    if len(row) < ROW:
        return None
    return Departure(name, row[0][0], row[-1][0], len(row), row[0][1], row[0][2])


def _border(value: float, known: Sequence[float]) -> float | None:
    """The border that a value has passed, or None where it is within."""
    if not math.isfinite(value):
        return None if any(not math.isfinite(one) for one in known) else 0.0
    usual = [abs(one) for one in known if math.isfinite(one) and one != 0.0]
    if not usual or value == 0.0:
        return None
    logs = np.log(usual)
    middle, spread = float(logs.mean()), float(logs.std())
    allowed = max(DEVIATIONS * spread, math.log(LEAST_FACTOR))
    distance = math.log(abs(value)) - middle
    if abs(distance) <= allowed:
        return None
    return math.exp(middle + math.copysign(allowed, distance))


def _alert(found: Departure) -> Alert:
    what, _, rest = found.name.partition("/")
    tensor = rest.rpartition("/")[0]
    module = tensor if what == "output" else tensor.rpartition(".")[0]
    factor = found.value / found.limit if found.limit else math.inf
    return Alert(
        code="reference.departs",
        severity=Severity.ALERT,
        first_step=found.step,
        last_step=found.last_step,
        count=found.count,
        module=module,
        tensor=tensor,
        value=found.value,
        limit=found.limit,
        source=_SOURCE,
        message=f"{found.name} is {found.value:.4g}; the reference's runs reach {found.limit:.4g} "
        f"at this step, which is a factor of {factor:.3g}",
        advice=_ADVICE,
    )


def _with_band(curve: Curve, runs: Sequence[Run]) -> Curve:
    """A curve with the least and the greatest of the reference's runs as its band."""
    tables: list[Mapping[int, float]] = []
    for run in runs:
        steps, values = run.scalars.series(curve.name)
        tables.append(dict(zip(steps.tolist(), values.tolist(), strict=True)))
    lows, highs = [], []
    for step in curve.steps.tolist():
        known = [table[step] for table in tables if step in table]
        lows.append(min(known, default=math.nan))
        highs.append(max(known, default=math.nan))
    return dataclasses.replace(curve, low=np.array(lows), high=np.array(highs))

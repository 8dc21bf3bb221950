"""A run against runs of the reference: where the port's statistics leave what the seeds spread.

Steps are counted by the updates that were applied, so that loss scales that start differently (2^24
in MindSpore, 2^16 in torch) and overflow in the first steps shift nothing.  Numbers are compared on
a logarithmic scale: a departure is a factor.
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
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
#: One run that starts otherwise shows no spread, two or three show little of it.  Chosen so that
#: five comparisons of healthy runs of one small network with other seeds say nothing.
FACTOR_OF_FEW = {1: 10.0, 2: 5.0, 3: 3.0}
#: Losses of the first step that are as near show that two runs start with the same weights.
_SAME_START = 1e-3
#: Rounding grows by less than this from one step to the next.
_JUMP = 100.0
#: A gradient or an update below this part of the usual one of its step is what rounding leaves, as
#: of a bias before a normalisation; numbers below are taken for one another.
ROUNDING = 1e-6
_PARAMETERS = ("weight/", "gradient/", "update/")
_KINDS = ("/norm", "/ratio", "/abs_mean")
_SOURCE = (
    f"the reference's runs: mean ± {DEVIATIONS:g} standard deviations of the logarithm over the "
    f"seeds, at least a factor of {LEAST_FACTOR:g} ("
    + ", ".join(f"{factor:g} with {n}" for n, factor in FACTOR_OF_FEW.items())
    + " of other seeds)"
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
    least, said = _least_factor(port, runs)
    found = _departures_of_scalars(port, runs, least)
    keys, of_names = _keys_of([port, *runs])
    paired, more = _departures_of_tensors(port, runs, least, keys)
    if not paired and not found:
        _require_common(port, runs, references)
    departures = sorted([*found, *more], key=lambda one: one.step)
    alerts = tuple(_alert(one) for one in departures[:20])
    notes = (f"{paired} series of tensors were paired with the reference's", *of_names, *said)
    if alerts:
        notes += tuple(_jumps(port, runs))
    curves = tuple(_with_band(curve, runs) for curve in report.curves)
    return report.with_alerts(alerts, notes=(*report.notes, *notes), curves=curves)


def _require_common(port: Run, runs: Sequence[Run], references: Sequence[Path]) -> None:
    known = set(port.scalars.columns) & {n for run in runs for n in run.scalars.columns}
    if not known:
        raise RunError(
            f"{port.folder} and {references[0]} have no series in common",
            "Watch both trainings in the same way, and give runs of the same network.",
        )


def _least_factor(port: Run, runs: Sequence[Run]) -> tuple[float, tuple[str, ...]]:
    """The factor that is allowed at least, and what to say of it."""
    losses = [run.scalars.series("loss")[1][:1] for run in (port, *runs)]
    first = [float(found[0]) for found in losses if found.size]
    is_same = len(first) == len(losses) and all(
        math.isclose(one, first[0], rel_tol=_SAME_START) for one in first
    )
    least = LEAST_FACTOR if is_same else FACTOR_OF_FEW.get(len(runs), LEAST_FACTOR)
    if least == LEAST_FACTOR:
        return least, ()
    text = f"{len(runs)} run{'s' * (len(runs) != 1)} of the reference, with other seeds, show too "
    text += f"little of their spread: only departures by a factor of {least:g} or more count; give "
    return least, (text + f"{max(FACTOR_OF_FEW) + 1} or more to see smaller ones",)


def _jumps(port: Run, runs: Sequence[Run]) -> Iterable[str]:
    """Where losses that agreed differ at once: rounding drifts apart, other batches jump."""
    for run in runs:
        steps, updates, values = _applied(port.scalars, "loss", port)
        _, others, theirs = _applied(run.scalars, "loss", run)
        _, here, there = np.intersect1d(updates, others, return_indices=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            near = np.abs(values[here] / theirs[there] - 1.0)
        apart = np.flatnonzero(~(near <= _SAME_START))
        if not apart.size or not apart[0]:
            continue
        at = int(apart[0])
        if near[at] > _JUMP * max(float(near[:at].max()), _SAME_START / _JUMP):
            yield (
                f"the losses agree with {run.folder} until step {steps[here][at]} and differ there "
                f"at once ({values[here][at]:.4g} for {theirs[there][at]:.4g}): from there the "
                "batches are others, as where each epoch is shuffled in another way, or the "
                "network's mode; give both the same, or alerts behind it may say no more than that"
            )


def _departures_of_scalars(port: Run, runs: Sequence[Run], least: float) -> list[Departure]:
    found = []
    for name in ("loss", "gradient_norm"):
        departure = _departure(
            name,
            _applied(port.scalars, name, port),
            [_applied(run.scalars, name, run) for run in runs],
            least,
        )
        if departure is not None:
            found.append(departure)
    return found


def _departures_of_tensors(
    port: Run, runs: Sequence[Run], least: float, keys: Sequence[Mapping[str, str]]
) -> tuple[int, list[Departure]]:
    names, *others = keys
    common = [key for key in names if all(key in other for other in others)]
    if port.statistics.row_count and not common:
        raise RunError(
            f"{port.folder}: none of its parameters corresponds to the reference's",
            "Give runs of the same network; names are paired by the frameworks' conventions.",
        )
    floors = [_Floors(run) for run in (port, *runs)]
    found = []
    for key in common:
        if not key.endswith(_KINDS):
            continue
        departure = _departure(
            names[key],
            floors[0].applied(names[key]),
            [floor.applied(o[key]) for floor, o in zip(floors[1:], others, strict=True)],
            least,
        )
        if departure is not None:
            found.append(departure)
    return len(common), found


def _keys_of(runs: Sequence[Run]) -> tuple[list[dict[str, str]], tuple[str, ...]]:
    """The columns of each run by their key, and what was done to the names.

    Who watches a network within another (as Model.train puts it beside its loss) has a further name
    before all of its parameters.  It is taken off where no parameter has a partner with it.
    """
    columns = [run.statistics.columns for run in runs]
    plain = [{_key(name): name for name in names} for names in columns]
    prefixes = [_common_prefix(names) for names in columns]
    if _have_parameters(plain) or len(set(prefixes)) == 1:
        return plain, ()
    inner: list[dict[str, str]] = []
    for names, prefix in zip(columns, prefixes, strict=True):
        short = {name: _without(name, prefix) for name in names}
        inner.append({_key(one): name for name, one in short.items() if one is not None})
    if not _have_parameters(inner):
        return plain, ()
    said = ", ".join(f"{prefix!r} in {r.folder}" for r, prefix in zip(runs, prefixes, strict=True))
    return inner, (f"parameters were paired without what stands before all of them: {said}",)


def _have_parameters(keys: Sequence[Mapping[str, str]]) -> bool:
    """Whether some parameter is in all of them."""
    shared = set(keys[0]).intersection(*keys[1:])
    return any(key.startswith(_PARAMETERS) for key in shared)


def _common_prefix(columns: Iterable[str]) -> str:
    """The components that the names of all parameters begin with."""
    names = [c.partition("/")[2].rpartition("/")[0] for c in columns if c.startswith(_PARAMETERS)]
    paths = [name.split(".")[:-1] for name in names]
    shared = []
    for components in zip(*paths, strict=False):
        if len(set(components)) > 1:
            break
        shared.append(components[0])
    return ".".join(shared)


def _without(column: str, prefix: str) -> str | None:
    """A column's name without the components before; None for a tensor that is outside of them."""
    what, _, rest = column.partition("/")
    name, _, statistic = rest.rpartition("/")
    if prefix and name != prefix and not name.startswith((f"{prefix}.", f"{prefix} ")):
        return None
    return f"{what}/{name[len(prefix) :].removeprefix('.')}/{statistic}"


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


class _Floors:
    """What rounding leaves of one run's statistics, by their kind and step."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._usual: dict[tuple[str, str], tuple[NDArray[np.int64], NDArray[np.float64]]] = {}

    def applied(self, name: str) -> Numbered:
        """A series, in which no number but zero is below what rounding leaves."""
        steps, updates, values = _applied(self._run.statistics, name, self._run)
        kind = name.partition("/")[0], name.rpartition("/")[2]
        if kind not in self._usual:
            self._usual[kind] = self._medians(*kind)
        at, usual = self._usual[kind]
        floor = ROUNDING * usual[np.searchsorted(at, steps)]
        is_lower = np.isfinite(floor) & (values != 0.0) & (np.abs(values) < floor)
        return steps, updates, np.where(is_lower, floor, values)

    def _medians(self, what: str, statistic: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Steps, and the median of all tensors' numbers that are neither zero nor unknown."""
        table = self._run.statistics
        names = [
            name
            for name in table.columns
            if name.startswith(f"{what}/") and name.endswith(f"/{statistic}")
        ]
        steps, values = table.matrix(names)
        known = np.where(np.isfinite(values) & (values != 0.0), np.abs(values), np.nan)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # steps at which nothing was measured
            medians = np.nanmedian(known, axis=1)
        order = np.argsort(steps, kind="stable")
        return steps[order], medians[order]


def _departure(
    name: str, port: Numbered, references: Sequence[Numbered], least: float
) -> Departure | None:
    steps, updates, values = port
    tables = [dict(zip(u.tolist(), v.tolist(), strict=True)) for _, u, v in references]
    row: list[tuple[int, float, float]] = []
    for step, update, value in zip(steps.tolist(), updates.tolist(), values.tolist(), strict=True):
        known = [table[update] for table in tables if update in table]
        if not known:
            continue
        border = _border(value, known, least)
        if border is None:
            if len(row) >= ROW:
                break
            row = []
        else:
            row.append((step, value, border))
    if len(row) < ROW:
        return None
    return Departure(name, row[0][0], row[-1][0], len(row), row[0][1], row[0][2])


def _border(value: float, known: Sequence[float], least: float) -> float | None:
    """The border that a value has passed, or None where it is within."""
    if not math.isfinite(value):
        return None if any(not math.isfinite(one) for one in known) else 0.0
    usual = [abs(one) for one in known if math.isfinite(one) and one != 0.0]
    if not usual or value == 0.0:
        return None
    logs = np.log(usual)
    middle, spread = float(logs.mean()), float(logs.std())
    allowed = max(DEVIATIONS * spread, math.log(least))
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

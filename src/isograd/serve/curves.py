"""Curves of runs and event files, thinned so that a browser can draw any number of steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from isograd.errors import IsogradError
from isograd.runs.reader import Run
from isograd.serve.event_index import index_of
from isograd.serve.model import Item, Kind
from isograd.serve.shell import quoted

Steps = NDArray[np.int64]
Values = NDArray[np.float64]


class Axis(Enum):
    """What a curve is drawn over."""

    STEPS = "steps"
    TIMES = "times"


@dataclass(frozen=True)
class Curve:
    """One scalar of one run.

    steps: int64 of shape (points,); values: float64 of shape (points,).  thinned_from: how many
    points it had.  times: seconds since the run's first row, or None where they are not known.
    """

    run: str
    name: str
    steps: Steps
    values: Values
    thinned_from: int
    times: Values | None = None


def has_curves(item: Item) -> bool:
    """Whether an item has scalars over steps."""
    return item.kind in (Kind.RUN, Kind.EVENTS)


def curves_link(item: Item, page: str) -> tuple[tuple[str, str], ...]:
    """The link from an item's page to its curves, below the page of curves of this name."""
    if not has_curves(item):
        return ()
    return (("Its curves", f"{page}?run={quoted(label_of(item))}"),)


def label_of(item: Item) -> str:
    """What the page of curves calls a run or an event file."""
    return item.name if item.kind is Kind.RUN else f"{item.name} ({item.kind.value})"


def names_of(item: Item) -> tuple[str, ...]:
    """The scalars of a run or an event file."""
    try:
        if item.kind is Kind.RUN:
            run = Run(item.path)
            return (*run.scalars.columns, *run.statistics.columns)
        return tuple(index_of(item).scalars)
    except IsogradError:
        return ()


def curve_of(
    item: Item,
    name: str,
    most: int,
    span: tuple[float, float] | None = None,
    axis: Axis = Axis.STEPS,
) -> Curve:
    """One scalar with at most about `most` points, between two places of the axis of a span.

    Raises IsogradError where the item cannot be read.
    """
    times: Values | None = None
    if item.kind is Kind.RUN:
        run = Run(item.path)
        table = run.scalars if name in run.scalars.columns else run.statistics
        steps, values = table.series(name)
        if len(steps) == table.row_count and len(steps):
            times = table.times - table.times[0]
    else:
        points = index_of(item).scalars.get(name, [])
        steps = np.array([step for step, _ in points], np.int64)
        values = np.array([value for _, value in points], np.float64)
    if span is not None:
        places = times if axis is Axis.TIMES and times is not None else steps
        inside = _around(places, span)
        steps, values = steps[inside], values[inside]
        times = times[inside] if times is not None else None
    kept = kept_points(values, most)
    kept_times = None if times is None else times[kept]
    return Curve(item.name, name, steps[kept], values[kept], len(values), kept_times)


def _around(places: Steps | Values, span: tuple[float, float]) -> NDArray[np.bool_]:
    """Which places are in a span or beside one that is, so that lines reach the chart's border.

    places: of shape (points,), in any order: a run that was resumed goes back.
    """
    inside: NDArray[np.bool_] = (places >= span[0]) & (places <= span[1])
    beside = inside.copy()
    beside[1:] |= inside[:-1]
    beside[:-1] |= inside[1:]
    return beside


def kept_points(values: Values, most: int) -> NDArray[np.intp]:
    """Positions of at most about `most` points that keep the curve's shape and its extremes.

    values: float64 of shape (points,).  Of each of most/2 stretches the least and the greatest
    value are kept, and what is not finite first of all, so that no peak and no NaN disappears.
    returns: of shape (kept,), integers in ascending order.
    """
    count = len(values)
    if count <= most:
        return np.arange(count)
    width = -(-count // max(1, most // 2))
    rows = -(-count // width)
    padded = np.full(rows * width, np.nan)
    padded[:count] = values
    table = padded.reshape(rows, width)
    finite = np.isfinite(table)
    starts = np.arange(rows) * width
    least = starts + np.argmin(np.where(finite, table, np.inf), axis=1)
    greatest = starts + np.argmax(np.where(finite, table, -np.inf), axis=1)
    lost = ~finite
    lost.reshape(-1)[count:] = False
    first_lost = (starts + np.argmax(lost, axis=1))[lost.any(axis=1)]
    ends = np.array([0, count - 1])
    kept: NDArray[np.intp] = np.unique(np.concatenate((least, greatest, first_lost, ends)))
    return kept[kept < count]


def curve_data(curves: Iterable[Curve], axis: Axis = Axis.TIMES) -> list[dict[str, object]]:
    """Curves as JSON: a value that is not finite is null, and counted.

    axis: times are left out where only the steps are asked for.
    """
    return [
        {
            "run": one.run,
            "name": one.name,
            "steps": one.steps.tolist(),
            "values": _with_nulls(one.values),
            "nonfinite": int(np.count_nonzero(~np.isfinite(one.values))),
            "times": None
            if one.times is None or axis is Axis.STEPS
            else one.times.round(3).tolist(),
            "thinned_from": one.thinned_from,
        }
        for one in curves
    ]


def _with_nulls(values: Values) -> list[float | None]:
    found: list[float | None] = values.tolist()
    for place in np.flatnonzero(~np.isfinite(values)):
        found[place] = None
    return found


def common_names(items: Sequence[Item]) -> list[str]:
    """The scalars of any of the items, those of most items first."""
    counts: dict[str, int] = {}
    for item in items:
        for name in names_of(item):
            counts[name] = counts.get(name, 0) + 1
    return sorted(counts, key=lambda name: -counts[name])

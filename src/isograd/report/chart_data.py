"""A chart as the data that the page's script draws: aligned, thinned and finite."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from isograd.report.document import Axis, Chart, Series
from isograd.report.words import printable

#: Points of one curve; of a longer one each bin's least and greatest value are kept.
MOST_POINTS = 2000


def chart_json(chart: Chart) -> str:
    """The chart as JSON in ASCII.

    What is not finite, or not above 0 on a logarithmic axis, is null.
    """
    value = {
        "kind": chart.kind.value,
        "x": _axis(chart.x),
        "y": _axis(chart.y),
        "series": [_series(one, chart) for one in chart.series],
        "marks": [
            {
                "at": _finite(mark.at, False),
                "label": printable(mark.label),
                "tone": mark.tone.value,
                "level": mark.is_level,
            }
            for mark in chart.marks
        ],
    }
    return json.dumps(value, allow_nan=False, separators=(",", ":"))


def _axis(axis: Axis) -> dict[str, Any]:
    label = f"{axis.label}, {axis.unit}" if axis.unit else axis.label
    return {
        "label": printable(label),
        "log": axis.is_log,
        "categories": [printable(name) for name in axis.categories],
    }


def _series(series: Series, chart: Chart) -> dict[str, Any]:
    chosen = chosen_positions(series.y)
    found: dict[str, Any] = {
        "name": printable(series.name),
        "x": [_finite(series.x[position], chart.x.is_log) for position in chosen],
    }
    for key, values in (("y", series.y), ("low", series.low), ("high", series.high)):
        if values:
            found[key] = [_finite(values[position], chart.y.is_log) for position in chosen]
    return found


def _finite(value: float | None, is_log: bool) -> float | None:
    if value is None or not math.isfinite(value) or (is_log and value <= 0):
        return None
    number = value.item() if hasattr(value, "item") else value
    assert isinstance(number, (int, float))
    return number


def chosen_positions(values: Sequence[float | None], most: int = MOST_POINTS) -> list[int]:
    """All positions, or of a long curve the least, the greatest and all gaps' ends of each bin."""
    if len(values) <= most:
        return list(range(len(values)))
    width = math.ceil(2 * len(values) / most)
    chosen: set[int] = {0, len(values) - 1}
    for start in range(0, len(values), width):
        finite: list[tuple[float, int]] = []
        gaps: list[int] = []
        for position in range(start, min(start + width, len(values))):
            value = values[position]
            if value is None or not math.isfinite(value):
                gaps.append(position)
            else:
                finite.append((value, position))
        chosen.update(position for group in (gaps[:1], gaps[-1:]) for position in group)
        if finite:
            chosen.update((min(finite)[1], max(finite)[1]))
    return sorted(chosen)

"""A comparison of two loss curves as one HTML page with two plots, safe for any name."""

from __future__ import annotations

import math
from collections.abc import Sequence

from isograd.compare.files.curve_model import LIMIT_PERMILLE, CurvesReport
from isograd.report import compare_curves
from isograd.report.html import page_template
from isograd.version import __version__

#: Size of a plot, in CSS pixels, and points of a line; of longer curves each bin keeps its ends.
WIDTH, HEIGHT = 640, 200
MOST_POINTS = 1200
#: The axis of the relative difference ends here, in powers of ten of ‰.
_LOWEST_POWER, _HIGHEST_POWER = -5, 4

Points = list[tuple[float, float]]


def render_html(report: CurvesReport) -> str:
    """The report as the text of an HTML page."""
    losses = [value for side in (report.reference, report.other) for value in side]
    low, high = _range(losses)
    places = compare_curves.shown_places(report)
    return page_template("compare_curves.html.jinja").render(
        report=report,
        version=__version__,
        sentence=compare_curves.sentence(report),
        notes=compare_curves.notes(report),
        size=(WIDTH, HEIGHT),
        first=_lines(report.steps, report.reference, low, high),
        second=_lines(report.steps, report.other, low, high),
        loss_axis=(f"{high:.4g}", f"{low:.4g}"),
        permille=_lines(report.steps, [_power(value) for value in report.permille], *_POWERS),
        limit=_height(_power(LIMIT_PERMILLE), *_POWERS),
        limit_permille=LIMIT_PERMILLE,
        power_axis=(f"10^{_HIGHEST_POWER} ‰", f"10^{_LOWEST_POWER} ‰"),
        parting=None if report.first_out is None else _across(report.steps, report.first_out),
        rows=[_row(report, place) for place in places],
        not_finite=sum(not math.isfinite(value) for value in losses),
    )


_POWERS = (float(_LOWEST_POWER), float(_HIGHEST_POWER))


def _range(values: Sequence[float]) -> tuple[float, float]:
    finite = [value for value in values if math.isfinite(value)]
    low, high = min(finite, default=0.0), max(finite, default=1.0)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _power(permille: float) -> float:
    """The height of a difference on an axis of powers of ten; a NaN is as far as can be."""
    if not math.isfinite(permille):
        return float(_HIGHEST_POWER)
    if permille <= 0.0:
        return float(_LOWEST_POWER)
    return min(float(_HIGHEST_POWER), max(float(_LOWEST_POWER), math.log10(permille)))


def _across(steps: Sequence[int], place: int) -> float:
    first, last = steps[0], steps[-1]
    return WIDTH * (steps[place] - first) / (last - first) if last > first else WIDTH / 2


def _height(value: float, low: float, high: float) -> float:
    return HEIGHT * (high - value) / (high - low)


def _lines(steps: Sequence[int], values: Sequence[float], low: float, high: float) -> list[str]:
    """The points of SVG polylines; a value that is not finite ends one of them."""
    lines: list[Points] = [[]]
    for place in _chosen(values):
        value = values[place]
        if math.isfinite(value):
            lines[-1].append((_across(steps, place), _height(value, low, high)))
        elif lines[-1]:
            lines.append([])
    return [" ".join(f"{x:.1f},{y:.1f}" for x, y in line) for line in lines if line]


def _chosen(values: Sequence[float]) -> list[int]:
    """All places, or of a long curve the least, the greatest and what is not finite of each bin."""
    if len(values) <= MOST_POINTS:
        return list(range(len(values)))
    width = math.ceil(2 * len(values) / MOST_POINTS)
    chosen: set[int] = {0, len(values) - 1}
    for start in range(0, len(values), width):
        bin_ = range(start, min(start + width, len(values)))
        finite = [place for place in bin_ if math.isfinite(values[place])]
        chosen.update(place for place in bin_ if not math.isfinite(values[place]))
        if finite:
            chosen.add(min(finite, key=values.__getitem__))
            chosen.add(max(finite, key=values.__getitem__))
    return sorted(chosen)


def _row(report: CurvesReport, place: int) -> dict[str, object]:
    value = report.permille[place]
    return {
        "step": f"{report.steps[place]:,}",
        "first": f"{report.reference[place]:.6g}",
        "second": f"{report.other[place]:.6g}",
        "permille": f"{value:.3f}",
        "is_out": not value <= LIMIT_PERMILLE,
    }

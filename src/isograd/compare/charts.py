"""What a page draws of a comparison: a cell per tensor, measures by layer, and histograms."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from isograd.compare.files.model import FilesReport, TensorComparison
from isograd.report.document import (
    Axis,
    Chart,
    ChartKind,
    Group,
    HeatMap,
    Lazy,
    Medium,
    Mosaic,
    Section,
    Series,
)
from isograd.report.levels import LEVELS

#: Rows of the heat map, and histograms of single tensors.
MOST_LAYERS = 400
MOST_HISTOGRAMS = 40
#: Relative error of the first level of colour above "identical"; each further level is ten times.
_FIRST_LEVEL = -7
_MEASURES = (
    "relative error", "greatest ÷ size", "1 − cosine", "unequal", "outside", "ulps of 99 %",
)  # fmt: skip


def charts(report: FilesReport) -> Iterator[Section]:
    """The sections of a page that show all tensors at once."""
    order = "execution order" if report.knows_order else "the order of the first file"
    yield Mosaic(
        f"All tensors in {order}",
        Lazy(report.comparisons, lambda found: (_hover(found), _level(found))),
        medium=Medium.PAGE,
        note="Green is identical; the redder, the greater the relative error (10⁻⁷ to 1 and more); "
        "grey has no partner, another shape, or could not be read.",
    )
    yield from _heat_map(report, order)
    yield from _histograms(report)


def pair_name(found: TensorComparison) -> str:
    """Both names where they differ."""
    if found.reference and found.other and found.reference != found.other:
        return f"{found.reference} ↔ {found.other}"
    return found.name


def _hover(found: TensorComparison) -> str:
    error = "" if found.difference is None else f" {found.difference.relative_error:.3g}"
    return f"{pair_name(found)}: {found.verdict.value}{error}"


def _level(found: TensorComparison) -> int | None:
    """The colour of a tensor: 0 identical, 1 to 8 by its relative error, None without one."""
    difference = found.difference
    if difference is None:
        return None
    if difference.is_identical:
        return 0
    if difference.pattern_mismatches:
        return LEVELS
    return _decade(difference.relative_error, _FIRST_LEVEL) if difference.relative_error else 1


def _decade(value: float | None, first: int) -> int | None:
    """The level of a value: one for each power of ten from `first` on."""
    if value is None:
        return None
    if value <= 0.0:
        return 0
    if not math.isfinite(value):
        return LEVELS
    return min(LEVELS, max(1, math.floor(math.log10(value)) - first + 1))


def _heat_map(report: FilesReport, order: str) -> Iterator[HeatMap]:
    shown = [found for found in report.comparisons if found.difference is not None]
    if not shown:
        return
    values = [_measures(found) for found in shown[:MOST_LAYERS]]
    firsts = (_FIRST_LEVEL,) * (len(_MEASURES) - 1) + (0,)
    levels = [[_decade(one, first) for one, first in zip(row, firsts)] for row in values]  # noqa: B905
    yield HeatMap(
        f"Measures by layer, in {order}",
        [pair_name(found) for found in shown[:MOST_LAYERS]],
        _MEASURES,
        values,
        levels=levels,
        medium=Medium.PAGE,
        more=max(0, len(shown) - MOST_LAYERS),
        note="Colours step by powers of ten. Size is the root mean square of the first set's "
        "elements; unequal and outside are shares of all elements.",
    )


def _measures(found: TensorComparison) -> tuple[float | None, ...]:
    """One row of the heat map: a number for each measure."""
    difference = found.difference
    assert difference is not None
    size = difference.reference_norm / math.sqrt(difference.finite) if difference.finite else 0.0
    typical = difference.greatest_absolute / size if size else math.inf
    total = max(1, difference.total)
    return (
        difference.relative_error,
        0.0 if difference.is_identical else typical,
        None if difference.cosine is None else 1.0 - difference.cosine,
        difference.unequal / total,
        difference.outside / total,
        None if difference.ulps is None else float(difference.ulps[2]),
    )


def _histograms(report: FilesReport) -> Iterator[Group]:
    counted = [
        (pair_name(found), found.difference.histogram)
        for found in report.comparisons
        if found.difference is not None and found.difference.histogram
    ]
    if not counted:
        return
    sums: dict[int, int] = {}
    for _, histogram in counted:
        for power, count in histogram:
            sums[power] = sums.get(power, 0) + count
    charts = [_bars("all tensors that are not identical", sorted(sums.items()))]
    charts += [_bars(name, histogram) for name, histogram in counted[:MOST_HISTOGRAMS]]
    yield Group(
        "Absolute differences by powers of two",
        charts,
        medium=Medium.PAGE,
        more=max(0, len(counted) - MOST_HISTOGRAMS),
        note="A bar counts the elements that differ by 2ⁿ to 2ⁿ⁺¹; equal elements are left out.",
    )


def _bars(name: str, histogram: Sequence[tuple[int, int]]) -> Chart:
    powers = [float(power) for power, _ in histogram]
    counts = [float(count) for _, count in histogram]
    return Chart(
        name,
        ChartKind.BARS,
        Axis("difference", "powers of 2"),
        Axis("elements", is_log=True),
        [Series("elements", powers, counts)],
        is_small=True,
    )

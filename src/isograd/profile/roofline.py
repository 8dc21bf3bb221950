"""The roofline: which operators reach what the machine can compute, and which wait for bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from isograd.profile.analyse.analysis import Analysis
from isograd.profile.analyse.rates import Rate, rates
from isograd.profile.model import Peaks
from isograd.report.document import (
    Axis,
    Chart,
    ChartKind,
    Column,
    Facts,
    Medium,
    Section,
    Series,
    Table,
)

#: Operators of the chart, those with most arithmetic; the table holds MOST_ROWS.
MOST_POINTS = 12
MOST_ROWS = 50


def summary(analysis: Analysis) -> Iterator[Section]:
    """One line: arithmetic per step, and what share of the machine's peak it reaches."""
    found = rates(analysis.profile, analysis.operators)
    if not found or not analysis.is_per_step or not analysis.step_s > 0:
        return
    flops = sum(one.flops * one.operator.calls for one in found)
    seconds = sum(one.operator.self_s for one in found)
    text = (
        f"{flops / 1e9:.3g} GFLOP per step in operators whose arithmetic is known, at "
        f"{flops / seconds / 1e9:.3g} GFLOP/s"
    )
    if (peaks := analysis.profile.peaks) is not None:
        text += f" ({flops / seconds / peaks.flops_per_s:.0%} of the peak, {peaks.source})"
    yield Facts("Arithmetic", [("rate", text)])


def roofline(analysis: Analysis) -> Iterator[Section]:
    """Chart and table of the page."""
    found, peaks = rates(analysis.profile, analysis.operators), analysis.profile.peaks
    if not found:
        return
    yield Chart(
        "Roofline",
        ChartKind.LINE,
        Axis("arithmetic intensity", "FLOP per byte", is_log=True),
        Axis("rate", "GFLOP/s", is_log=True),
        [*_roof(found, peaks), *(_point(one) for one in found[:MOST_POINTS])],
        note=_note(peaks),
        medium=Medium.PAGE,
    )
    columns = (
        Column("operator", is_code=True),
        Column("shapes", is_code=True),
        Column("arithmetic", "GFLOP per step", is_number=True, format=".3f"),
        Column("intensity", "FLOP per byte", is_number=True, format=".1f"),
        Column("rate", "GFLOP/s", is_number=True, format=".1f"),
        Column("of the roof", is_number=True, format=".0%", has_bar=True),
    )
    rows = [
        (
            one.operator.name,
            one.operator.shapes,
            one.flops * one.operator.calls / 1e9,
            one.intensity,
            one.flops_per_s / 1e9,
            None if peaks is None else one.flops_per_s / one.bound(peaks),
        )
        for one in found[:MOST_ROWS]
    ]
    more = max(len(found) - MOST_ROWS, 0)
    yield Table("Arithmetic of operators", columns, rows, more=more, medium=Medium.PAGE)


def _note(peaks: Peaks | None) -> str:
    if peaks is None:
        return "The machine's peak is not known: record with isograd, or give it with --peak."
    return (
        f"The roof: {peaks.flops_per_s / 1e9:.4g} GFLOP/s and {peaks.bytes_per_s / 1e9:.4g} GB/s, "
        f"{peaks.source}. An operator at the slope waits for bytes, one at the level for "
        "arithmetic; one far below both is too small or of a shape that its kernel does not like."
    )


def _roof(found: Sequence[Rate], peaks: Peaks | None) -> Iterator[Series]:
    if peaks is None:
        return
    ridge = peaks.flops_per_s / peaks.bytes_per_s
    known = [one.intensity for one in found]
    x = np.geomspace(min(*known, ridge) / 4, max(*known, ridge) * 4, 60)
    x = np.sort(np.append(x, ridge))
    y = np.minimum(peaks.flops_per_s, x * peaks.bytes_per_s) / 1e9
    yield Series("roof", x.tolist(), y.tolist())


def _point(one: Rate) -> Series:
    name = f"{one.operator.name} {one.operator.shapes}"
    return Series(name, [one.intensity], [one.flops_per_s / 1e9])


def roofline_data(analysis: Analysis) -> dict[str, Any] | None:
    """The same for JSON; None where no operator's arithmetic is known."""
    found, peaks = rates(analysis.profile, analysis.operators), analysis.profile.peaks
    if not found:
        return None
    return {
        "peak": None
        if peaks is None
        else {
            "flops_per_s": peaks.flops_per_s,
            "bytes_per_s": peaks.bytes_per_s,
            "source": peaks.source,
        },
        "operators": [
            {
                "operator": one.operator.name,
                "shapes": one.operator.shapes,
                "calls": one.operator.calls,
                "flops": one.flops,
                "bytes": one.size_bytes,
                "intensity": one.intensity,
                "flops_per_s": one.flops_per_s,
            }
            for one in found[:MOST_ROWS]
        ],
    }

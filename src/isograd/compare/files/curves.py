"""Two loss curves step by step, and what the first step that differs says.

The rule is the migration guide's: a first step that is off points at the forward pass, a second at
the backward pass or the update.  Later than that, correct code parts as well, because training is
chaotic: we measured 2.3 ‰ at step 50 of a correct port (docs/thresholds.md).
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

from isograd.compare.files.curve_model import (
    LIMIT_PERMILLE,
    CurvesReport,
    CurveVerdict,
    LossLog,
)
from isograd.compare.files.logs import read_two_logs
from isograd.errors import UsageError

_WORDS = {
    CurveVerdict.FORWARD: (
        "the first step is off, before any update: look at weights, data and the forward pass"
    ),
    CurveVerdict.UPDATE: (
        "the first step agrees and the second is off: look at the backward pass and the update"
    ),
    CurveVerdict.LATER: (
        "the first two steps agree: a drift of the update, or chaos, which parts correct code as "
        "well (2.3 ‰ at step 50 was measured); `isograd verify` tells these apart"
    ),
    CurveVerdict.NONFINITE: "the steps before agree",
    CurveVerdict.UNKNOWN: (
        "the logs do not show the first steps one by one, so that the step at which the curves "
        "part is not known; log every step"
    ),
    CurveVerdict.INCOMPLETE: "all common steps agree, but some steps stand in one log only",
    CurveVerdict.AGREE: f"all steps agree within {LIMIT_PERMILLE:g} ‰",
}


#: First and last step, both included; None for an open end.
Span = tuple[int, "int | None"]


def compare_logs(
    first: Path, second: Path, span: Span | None = None, series: str | None = None
) -> CurvesReport:
    """Compare the losses of two logs; raises UsageError where they have no step in common.

    series: the column or tag, where it is not the one that is most surely the loss.
    """
    mine, its = read_two_logs(first, second, series)
    return compare_curves(mine, its, span)


def compare_curves(first: LossLog, second: LossLog, span: Span | None = None) -> CurvesReport:
    """Compare two curves, aligned by step."""
    notes = []
    if first.series != second.series:
        notes.append(f"{first.series!r} of the first is compared with {second.series!r}")
    first, second, aligned = _aligned(first, second)
    notes += aligned
    if span is not None:
        first, second = (_within(log, span) for log in (first, second))
    losses, others = _by_step(first), _by_step(second)
    steps = tuple(step for step in first.steps if step in others)
    if not steps:
        raise UsageError(
            f"{first.path} and {second.path} have no step in common",
            "Log the same steps." if span is None else "Choose other --steps.",
        )
    reference = tuple(losses[step] for step in steps)
    other = tuple(others[step] for step in steps)
    permille = tuple(_permille(here, there) for here, there in zip(reference, other, strict=True))
    outside = (place for place, value in enumerate(permille) if not value <= LIMIT_PERMILLE)
    first_out = next(outside, None)
    only_first, only_second = len(losses) - len(steps), len(others) - len(steps)
    verdict = _verdict(steps, first_out, only_first + only_second > 0)
    said, place = _nonfinite(steps, reference, other)
    if verdict is CurveVerdict.LATER and place == first_out:
        verdict = CurveVerdict.NONFINITE
    return CurvesReport(
        first=first,
        second=second,
        steps=steps,
        reference=reference,
        other=other,
        permille=permille,
        first_out=first_out,
        only_first=only_first,
        only_second=only_second,
        verdict=verdict,
        explanation=_WORDS[verdict] + said,
        notes=tuple(notes),
    )


def _nonfinite(
    steps: tuple[int, ...], reference: tuple[float, ...], other: tuple[float, ...]
) -> tuple[str, int | None]:
    """What to say of the first step at which one side alone is not finite, and its position."""
    for place, (here, there) in enumerate(zip(reference, other, strict=True)):
        if math.isfinite(here) != math.isfinite(there):
            side = "B" if math.isfinite(here) else "A"
            text = (
                f"; at step {steps[place]:,} the loss of {side} is not finite, which is no drift: "
            )
            return f"{text}`isograd watch` finds where the first such value arises", place
    return "", None


def _by_step(log: LossLog) -> dict[int, float]:
    return dict(zip(log.steps, log.losses, strict=True))


def _within(log: LossLog, span: Span) -> LossLog:
    first, last = span
    kept = [
        (step, loss)
        for step, loss in zip(log.steps, log.losses, strict=True)
        if step >= first and (last is None or step <= last)
    ]
    return replace(
        log, steps=tuple(step for step, _ in kept), losses=tuple(loss for _, loss in kept)
    )


def _aligned(first: LossLog, second: LossLog) -> tuple[LossLog, LossLog, list[str]]:
    """Both with steps that mean the same: counted where one has none, from one where one from 0."""
    if first.has_steps != second.has_steps:
        counted = tuple(range(1, len(first.steps) + 1)), tuple(range(1, len(second.steps) + 1))
        note = "one log does not number its steps, so that both are counted line by line"
        return replace(first, steps=counted[0]), replace(second, steps=counted[1]), [note]
    starts = first.steps[0], second.steps[0]
    if sorted(starts) == [0, 1] and len(first.steps) == len(second.steps):
        note = "one log counts from 0 and the other from 1; their first steps are taken for one"
        log = first if starts[0] == 0 else second
        moved = replace(log, steps=tuple(step + 1 for step in log.steps))
        return (moved, second, [note]) if log is first else (first, moved, [note])
    return first, second, []


def _permille(reference: float, other: float) -> float:
    if reference == other or (math.isnan(reference) and math.isnan(other)):
        return 0.0
    if not (math.isfinite(reference) and math.isfinite(other)):
        return math.nan
    gap = abs(other - reference)
    return 1000.0 * gap / abs(reference) if reference else math.inf


def _verdict(steps: tuple[int, ...], first_out: int | None, is_partial: bool) -> CurveVerdict:
    if first_out is None:
        return CurveVerdict.INCOMPLETE if is_partial else CurveVerdict.AGREE
    starts_early = steps[0] in (0, 1)
    if first_out == 0:
        return CurveVerdict.FORWARD if starts_early else CurveVerdict.UNKNOWN
    is_dense = starts_early and steps[1] == steps[0] + 1
    if not is_dense:
        return CurveVerdict.UNKNOWN
    return CurveVerdict.UPDATE if first_out == 1 else CurveVerdict.LATER

"""Which steps are slow, how regularly, and in which phase."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isograd.profile.model import PHASES, Phase, Steps
from isograd.profile.spans import Ints

#: A step is slow from this multiple of the median on, if it also stands out of the spread.
SLOW = 1.25
#: Median absolute deviations that a slow step lies above the median (Iglewicz and Hoaglin, 1993).
DEVIATIONS = 3.5
_MAD_OF_NORMAL = 1.4826


@dataclass(frozen=True)
class Jitter:
    """spread: median absolute deviation over the median, scaled to a standard deviation.

    slow: numbers of slow steps. extra_s: mean seconds that they are above the median. period: in
    steps, where they come regularly, else 0. phase: where most of the extra time lies, or None.
    """

    spread: float
    slow: tuple[int, ...] = ()
    extra_s: float = 0.0
    period: int = 0
    phase: Phase | None = None

    def per_step_s(self, steps: int) -> float:
        """The slow steps' extra time, spread over all steps."""
        return self.extra_s * len(self.slow) / max(steps, 1)


def find_jitter(steps: Steps) -> Jitter:
    """The slow steps of a run; needs at least five steps."""
    seconds = steps.seconds
    if seconds.size < 5:
        return Jitter(float("nan"))
    median = float(np.median(seconds))
    spread = float(np.median(np.abs(seconds - median))) * _MAD_OF_NORMAL
    limit = max(median * SLOW, median + DEVIATIONS * spread)
    slow = np.flatnonzero(seconds > limit)
    relative = spread / median if median > 0 else float("nan")
    if not slow.size:
        return Jitter(relative)
    extra = float(np.mean(seconds[slow])) - median
    return Jitter(
        relative,
        tuple(int(number) for number in steps.number[slow]),
        extra,
        _period(steps.number[slow]),
        _phase(steps, slow, extra),
    )


def _period(numbers: Ints) -> int:
    gaps = np.diff(numbers)
    if gaps.size < 2 or gaps.min() < 2:
        return 0
    period = int(np.median(gaps))
    return period if bool(np.all(np.abs(gaps - period) <= 0)) else 0


def _phase(steps: Steps, slow: Ints, extra: float) -> Phase | None:
    """The phase that holds more than half of what the slow steps take longer."""
    normal = np.setdiff1d(np.arange(len(steps)), slow)
    if not normal.size or extra <= 0:
        return None
    phases = np.nan_to_num(steps.phases_s)
    rest = np.maximum(steps.seconds - phases.sum(axis=1), 0.0)
    phases = phases.copy()
    phases[:, PHASES.index(Phase.OTHER)] += rest
    more = phases[slow].mean(axis=0) - np.median(phases[normal], axis=0)
    best = int(more.argmax())
    return PHASES[best] if more[best] > extra / 2 else None

"""Which hypothesis explains a difference: fitted on some samples, proved on others.

A candidate is proved where it predicts B's values on samples that it was not fitted on, within the
rounding of the dtype (or the candidate's own levels of integers).  Of several the simplest is
named; where two of different causes explain all samples equally simply, the first in the library is
named and the others are its alternatives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from isograd.data.compare.equality import ROUNDINGS, greatest
from isograd.data.hypotheses.base import Candidate, Hypothesis, Numbers, Observation
from isograd.tensors import UNIT_ROUNDOFF

#: Share of elements that a candidate must predict where it cannot say all of them.
_LEAST_KNOWN = 0.5
#: What may come before a change of numbers.
_REARRANGING = ("data.layout", "data.channel_order", "data.flip")
#: A candidate with levels must leave less than this share of the difference.
_LEFT = 0.35


@dataclass(frozen=True)
class Decision:
    """The cause that was chosen; proved: on `checked` samples that it was not fitted on.

    also: a second cause that comes after it; alternatives: causes that explain as much as simply.
    """

    id: str
    candidate: Candidate
    proved: bool
    checked: int
    also: str = ""
    alternatives: tuple[str, ...] = ()


def decide(observations: Sequence[Observation]) -> Decision | None:
    """The simplest hypothesis that explains every sample; None where none does."""
    from isograd.data.hypotheses.library import HYPOTHESES

    usable = [one for one in observations if not _is_equal(one)]
    if not usable:
        return None
    fitted, held_out = _split(observations, usable)
    found = list(_explaining(HYPOTHESES, fitted, held_out))
    if not found:
        found = list(_combined(HYPOTHESES, fitted, held_out))
    if not found:
        return None
    best = min(found, key=lambda one: one.candidate.complexity)
    others = {
        one.id
        for one in found
        if one.candidate.complexity == best.candidate.complexity and one.id != best.id
    }
    return replace(best, alternatives=tuple(sorted(others)))


def _is_equal(one: Observation) -> bool:
    return (
        one.a.shape == one.b.shape and one.a.dtype == one.b.dtype and np.array_equal(one.a, one.b)
    )


def _split(
    observations: Sequence[Observation], usable: Sequence[Observation]
) -> tuple[list[Observation], list[Observation]]:
    """Samples to fit on (which differ) and others to prove on; at least one of each."""
    if len(observations) == 1:
        return list(observations), []
    fitted = list(usable[: max(1, len(usable) // 2)])
    chosen = {id(one) for one in fitted}
    return fitted, [one for one in observations if id(one) not in chosen]


def _explaining(
    hypotheses: Sequence[Hypothesis],
    fitted: Sequence[Observation],
    held_out: Sequence[Observation],
) -> Iterator[Decision]:
    for hypothesis in hypotheses:
        for candidate in hypothesis.propose(fitted):
            if not all(predicts(candidate, one) for one in fitted):
                continue
            differing = [one for one in held_out if not _is_equal(one)]
            if all(predicts(candidate, one) for one in held_out):
                yield Decision(hypothesis.id, candidate, bool(differing), len(differing))
                break


def _combined(
    hypotheses: Sequence[Hypothesis],
    fitted: Sequence[Observation],
    held_out: Sequence[Observation],
) -> Iterator[Decision]:
    """Two hypotheses, one after the other: the first rearranges, the second changes numbers."""
    rearranging = [
        h for h in hypotheses if h.id in ("data.layout", "data.channel_order", "data.flip")
    ]
    for first in rearranging:
        for candidate in first.propose(fitted):
            after = [_after(candidate, one) for one in fitted]
            later = [_after(candidate, one) for one in held_out]
            if any(one is None for one in (*after, *later)):
                continue
            rest = [h for h in hypotheses if h not in rearranging]
            moved = [one for one in after if one is not None]
            proving = [one for one in later if one is not None]
            for second in _explaining(rest, moved, proving):
                yield replace(
                    second,
                    id=first.id,
                    candidate=replace(
                        second.candidate,
                        text=f"{candidate.text}; and {second.candidate.text}",
                        reference=candidate.reference,
                        port=candidate.port,
                        fix=_both_fixes(first.id, candidate, second),
                        complexity=candidate.complexity + second.candidate.complexity,
                    ),
                    also=second.id,
                )


def _both_fixes(first: str, candidate: Candidate, second: Decision) -> str:
    """What to do about both; channels that were exchanged before a mean are one fault, not two."""
    if (first, second.id) == ("data.channel_order", "data.normalize"):
        return f"{candidate.fix} Means and deviations may follow from it: compare again after that."
    return f"{candidate.fix} {second.candidate.fix}".strip()


def _after(candidate: Candidate, one: Observation) -> Observation | None:
    found = candidate.apply(one)
    if found is None or np.isnan(found.astype(np.float64)).any():
        return None
    return replace(one, a=found, x=None)


def predicts(candidate: Candidate, one: Observation) -> bool:
    """Whether a candidate yields what B yields of one sample."""
    found = candidate.apply(one)
    if found is None or found.shape != one.b.shape:
        return False
    if found.size == 0:
        return True
    wide, wanted = found.astype(np.float64), one.b.astype(np.float64)
    known = ~np.isnan(wide) | np.isnan(wanted)
    if known.mean() < _LEAST_KNOWN:
        return False
    with np.errstate(invalid="ignore"):
        apart = np.atleast_1d(np.abs(wide - wanted))
    apart[np.atleast_1d(np.isnan(wide) & np.isnan(wanted))] = 0.0
    apart = apart[np.atleast_1d(known)]
    if candidate.levels:
        return _within_levels(candidate, one, apart)
    return float(apart.max(initial=0.0)) <= _allowed(found, one)


def _allowed(found: Numbers, one: Observation) -> float:
    """Rounding of the coarser of both sides' dtypes; integers allow nothing."""
    if one.b.dtype.kind in "biu":
        return 0.0
    roundoff = max(
        UNIT_ROUNDOFF.get(str(x.dtype), 2.0**-53) for x in (one.a, one.b) if x.dtype.kind == "f"
    )
    return 2 * ROUNDINGS * roundoff * max(1e-30, greatest(one.b), greatest(found))


def _within_levels(candidate: Candidate, one: Observation, apart: Numbers) -> bool:
    """Nearly everywhere within the levels, and much nearer than A is."""
    unit = 1.0 if one.b.dtype.kind in "iu" else _unit(one.b)
    if float(np.quantile(apart, 0.999)) > candidate.levels * unit:
        return False
    if one.a.shape != one.b.shape:
        return True
    before = np.abs(one.a.astype(np.float64) - one.b.astype(np.float64))
    return float(apart.mean()) <= _LEFT * float(before.mean())


def _unit(values: Numbers) -> float:
    """The step of 8 bits in an array of floats: 1, or 1/255 where it lies within 0 and 1."""
    return 1 / 255 if greatest(values) <= 1.001 else 1.0

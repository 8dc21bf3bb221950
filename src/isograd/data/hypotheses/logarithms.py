"""Logarithms of values that were scaled before: spectra of audio in other units."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from isograd.data.hypotheses.base import Candidate, Numbers, Observation, number, same_shape

#: Logarithms of spectra, with what makes a natural logarithm of them.
_LOGARITHMS = (
    ("natural logarithm", 1.0),
    ("log10", float(np.log(10))),
    ("decibels", float(np.log(10)) / 10),
)
#: Of a value below this multiple of the floor that was added to it, too few digits are left.
_FLOOR = 4.0


def propose_scale_of_logarithms(observations: Sequence[Observation]) -> Iterator[Candidate]:
    """exp(B) is a multiple of exp(A) and a constant: values were scaled before log(x + floor)."""
    if not _are_floats(observations) or all(one.a.size < 8 for one in observations):
        return
    a = np.concatenate([one.a.reshape(-1) for one in observations]).astype(np.float64)
    b = np.concatenate([one.b.reshape(-1) for one in observations]).astype(np.float64)
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        return
    for name, base in _LOGARITHMS:
        factor, shift = _factor_and_floor(base * a, base * b)
        if factor > 0 and abs(np.log(factor)) > 1e-3:
            root = float(np.sqrt(max(factor, 1 / factor)))
            said = f" (the square of {number(root)})" if abs(root - round(root)) < 1e-3 else ""
            yield Candidate(
                f"B takes the {name} of values × {number(factor)}{said}",
                _scaled_logarithm(base, float(factor), float(shift)),
                "× 1",
                f"× {number(factor)}",
                "Scale the signal by the same factor in both (16-bit audio is divided by 32768).",
                complexity=3,
            )


def _factor_and_floor(a: Numbers, b: Numbers) -> tuple[float, float]:
    """factor and shift of exp(b) = factor · exp(a) + shift; factor 0 where there are none.

    a, b: shape (values,), float64. Fitted to what stands out of the floor, which is known better
    after each round.
    """
    factor, shift = 0.0, 0.0
    used = a >= np.quantile(a, 0.3)
    for _ in range(3):
        with np.errstate(all="ignore"):
            rows = np.stack([np.exp(a - b), np.exp(-b)], axis=1)[used]
        if len(rows) < 2 or not np.isfinite(rows).all():
            return 0.0, 0.0
        factor, shift = map(float, np.linalg.lstsq(rows, np.ones(len(rows)), rcond=None)[0])
        with np.errstate(all="ignore"):
            used = factor * np.exp(a) >= -_FLOOR * shift
    return factor, shift


def _scaled_logarithm(base: float, factor: float, shift: float) -> Callable[[Observation], Numbers]:
    """NaN where a floor that is taken off leaves too few digits."""

    def apply(one: Observation) -> Numbers:
        with np.errstate(all="ignore"):
            value = factor * np.exp(base * one.a.astype(np.float64))
            found = np.log(value + shift) / base
        return np.where(value < -_FLOOR * shift, np.nan, found)

    return apply


def _are_floats(observations: Sequence[Observation]) -> bool:
    kinds = {array.dtype.kind for one in observations for array in (one.a, one.b)}
    return same_shape(observations) and kinds == {"f"}

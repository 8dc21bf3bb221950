"""The noise envelope: how far a correct implementation may be from float64.

The reference's network is run again under float32 variants that an equally correct
implementation could have used: other kernels, inputs moved to neighbouring numbers, every
operator's result moved by its rounding error.  A tensor's envelope is the largest error of any
variant against float64, and never less than the cost of storing the tensor.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from isograd.frameworks.base import Arithmetic, Tensors
from isograd.metrics import as_float64, difference, patterns, rounding_floor
from isograd.model import Evidence
from isograd.tensors import Array, TensorValue

#: Below this ratio nothing is reported, so the elements are not looked at one by one.
_WORTH_EVIDENCE = 2.0
#: Error over envelope above which a module that was replayed alone diverges (docs/thresholds.md).
ISOLATED_THRESHOLD = 5.0
#: The same for whole passes, whose noise has heavier tails.
END_TO_END_THRESHOLD = 10.0

#: The float32 runs whose largest error is the envelope of an isolated replay.
ISOLATED_VARIANTS = (
    Arithmetic(),
    Arithmetic(alternative_kernels=True),
    Arithmetic(input_noise=True, operator_noise=True, seed=1),
    Arithmetic(input_noise=True, operator_noise=True, alternative_kernels=True, seed=2),
    Arithmetic(operator_noise=True, biased=True, seed=3),
    Arithmetic(input_noise=True, operator_noise=True, seed=4),
)
#: The same for whole passes; the amplified runs make kinks (ReLU, max pooling) flip that a
#: single run would meet only now and then.
END_TO_END_VARIANTS = (
    *ISOLATED_VARIANTS,
    Arithmetic(input_noise=True, operator_noise=True, amplitude=8.0, seed=5),
    Arithmetic(input_noise=True, operator_noise=True, amplitude=8.0, seed=6),
)
#: Beyond this ratio a whole pass does not return into an envelope of more runs.
MOST_TO_RETURN = 10.0 * END_TO_END_THRESHOLD
#: Further runs of a whole pass, where something has left the envelope of those above.
SECOND_LOOK_VARIANTS = tuple(
    Arithmetic(input_noise=True, operator_noise=True, amplitude=amplitude, seed=seed)
    for seed, amplitude in enumerate((1.0, 2.0, 4.0, 8.0) * 4, start=7)
)


@dataclass(frozen=True)
class Measured:
    """A float64 result with its envelope.

    values: float64, or integers; dtype: that of the native result.
    allowed: Frobenius norm; unreliable: elements that are not finite in a native run although
    they are in float64.
    """

    values: Array
    dtype: str
    allowed: float
    unreliable: int = 0


@dataclass(frozen=True)
class Comparison:
    """The judgement of one tensor: ratio is error over envelope."""

    ratio: float
    evidence: Evidence

    def exceeds(self, threshold: float) -> bool:
        return not self.ratio <= threshold


def errors_against(reference: Tensors, runs: Iterable[Tensors]) -> dict[str, list[Any]]:
    """For each tensor: float64 value, native dtype, largest error of any run, unreliable count."""
    allowed = dict.fromkeys(reference, 0.0)
    unreliable = dict.fromkeys(reference, 0)
    dtypes = {key: value.dtype for key, value in reference.items()}
    for position, run in enumerate(runs):
        for key, value in reference.items():
            other = run.get(key)
            if other is None or other.shape != value.shape:
                continue
            if position == 0:
                dtypes[key] = other.dtype
            if not value.is_floating:
                continue
            found = difference(value.values, other.values)
            allowed[key] = max(allowed[key], found.error)
            unreliable[key] = max(unreliable[key], found.pattern_mismatches)
    return {
        key: [value, dtypes[key], allowed[key], unreliable[key]] for key, value in reference.items()
    }


def measured(raw: dict[str, list[Any]]) -> dict[str, Measured]:
    """What `errors_against` sent over the pipe, with the rounding floor of each tensor."""
    result = {}
    for key, (value, dtype, allowed, unreliable) in raw.items():
        own = difference(value.values, value.values)
        floor = rounding_floor(own.size, max(1, own.finite), dtype)
        result[key] = Measured(value.values, dtype, max(allowed, floor), unreliable)
    return result


def compare(name: str, reference: Measured, port: TensorValue) -> Comparison:
    """Judge a port's tensor against a float64 reference and its envelope; shapes must agree."""
    first, second = reference.values, port.values
    if first.shape != second.shape:
        raise ValueError(f"{name}: shapes {first.shape} and {second.shape}")
    exact = not np.issubdtype(reference.values.dtype, np.floating) and not np.iscomplexobj(
        reference.values
    )
    found = difference(first, second)
    mismatches = max(0, found.pattern_mismatches - reference.unreliable)
    if exact:
        wrong = int(np.count_nonzero(first != second))
        ratio = math.sqrt(wrong / max(1, first.size)) * 2.0**24
        allowed = 0.0
    else:
        allowed = reference.allowed
        ratio = found.error / allowed if allowed > 0 else (math.inf if found.error else 0.0)
        if mismatches:
            ratio = max(ratio, math.sqrt(mismatches / max(1, found.total)) * 2.0**24)
    if ratio <= _WORTH_EVIDENCE:
        scale = found.size or 1.0
        brief = Evidence(name, 0, found.total, None, found.error / scale, allowed / scale)
        return Comparison(ratio, brief)
    wide = as_float64(first), as_float64(second)
    return Comparison(ratio, _evidence(name, *wide, found.error, found.size, allowed))


def _evidence(
    name: str, first: Array, second: Array, error: float, size: float, allowed: float
) -> Evidence:
    pattern_first = patterns(np.asarray(first, np.float64))
    pattern_second = patterns(np.asarray(second, np.float64))
    with np.errstate(invalid="ignore", over="ignore"):
        gap = np.abs(np.asarray(first, np.float64) - np.asarray(second, np.float64))
    both_odd = (pattern_first != 0) & (pattern_first == pattern_second)
    gap = np.where(both_odd, 0.0, np.where(np.isnan(gap), np.inf, gap))
    limit = ISOLATED_THRESHOLD * allowed / math.sqrt(max(1, gap.size))
    outside = gap > limit
    count = int(np.count_nonzero(outside))
    index = _index(int(np.argmax(outside)), gap.shape) if count else None
    greatest = _index(int(np.argmax(gap)), gap.shape) if gap.size else None
    scale = size if size > 0 else 1.0
    notes = []
    for code, word in ((1, "NaN"), (2, "+Inf"), (3, "masked")):
        counts = (np.count_nonzero(pattern_first == code), np.count_nonzero(pattern_second == code))
        if counts[0] != counts[1]:
            notes.append(f"{word}: {counts[0]} in the reference, {counts[1]} in the port")
    return Evidence(
        name,
        count,
        int(gap.size),
        index,
        error / scale,
        allowed / scale,
        greatest,
        float(first[greatest]) if greatest is not None else None,
        float(second[greatest]) if greatest is not None else None,
        "; ".join(notes),
    )


def _index(position: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(position, shape))

"""The noise envelope: how far a correct implementation may be from float64.

The reference's network is run again under float32 variants that an equally correct
implementation could have used: other kernels, inputs moved to neighbouring numbers, every
operator's result moved by its rounding error.  A tensor's envelope is the largest error of any
variant against float64, and never less than the cost of storing the tensor.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

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


@dataclass(frozen=True)
class Errors:
    """A float64 result and what the native runs made of it, before the rounding floor.

    value: of the float64 run; dtype: of the native runs; greatest: the largest Frobenius norm of
    any run's error; unreliable: as in `Measured`.
    """

    value: TensorValue
    dtype: str
    greatest: float = 0.0
    unreliable: int = 0

    def beside(self, run: TensorValue) -> Errors:
        """With one more run.

        run: the shape of the float64 result, any dtype.
        """
        if not self.value.is_floating:
            return self
        found = difference(self.value.values, run.values)
        greatest = max(self.greatest, found.error)
        return replace(
            self, greatest=greatest, unreliable=max(self.unreliable, found.pattern_mismatches)
        )


def errors_against(reference: Tensors, runs: Iterable[Tensors]) -> dict[str, Errors]:
    """The errors of native runs against a float64 one, tensor by tensor.

    A run that lacks a tensor, or has one of another shape, says nothing about it.

    reference, runs: tensors by name: any shape, float64 in the reference and any dtype in the runs.
    """
    found = {key: Errors(value, value.dtype) for key, value in reference.items()}
    for position, run in enumerate(runs):
        for key, errors in found.items():
            other = run.get(key)
            if other is None or other.shape != errors.value.shape:
                continue
            if position == 0:
                errors = replace(errors, dtype=other.dtype)
            found[key] = errors.beside(other)
    return found


def measured(errors: Mapping[str, Errors]) -> dict[str, Measured]:
    """The envelope of each tensor: the greatest error, and at least the rounding floor."""
    result = {}
    for key, one in errors.items():
        own = difference(one.value.values, one.value.values)
        floor = rounding_floor(own.size, max(1, own.finite), one.dtype)
        result[key] = Measured(
            one.value.values, one.dtype, max(one.greatest, floor), one.unreliable
        )
    return result


def compare(name: str, reference: Measured, port: TensorValue) -> Comparison:
    """Judge a port's tensor against a float64 reference and its envelope.

    port: the shape of the reference, any dtype.
    Raises ValueError where the shapes differ.
    """
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

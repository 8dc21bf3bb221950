"""How much arithmetic operators do per second and per byte: the numbers of a roofline.

S. Williams, A. Waterman, D. Patterson: Roofline, CACM 52 (2009): an operator of intensity I FLOP
per byte runs at no more than min(peak, I × bandwidth).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from isograd.profile.analyse.work import dense_flops, tensors
from isograd.profile.model import Operator, Peaks, Profile

_BYTES = {"64": 8, "32": 4, "16": 2, "8": 1, "double": 8, "long": 8, "half": 2, "bool": 1}
_CONVOLUTIONS = ("aten::convolution", "Conv2D")
_GRADIENT = "aten::convolution_backward"
_ATTENTION = "aten::_scaled_dot_product_"
#: Name, shapes and dtypes of an operator.
_Call = tuple[str, str, str]


@dataclass(frozen=True)
class Rate:
    """One operator with one combination of shapes: per call, and what it reaches."""

    operator: Operator
    flops: float
    size_bytes: float

    @property
    def intensity(self) -> float:
        """FLOP per byte that must be moved: inputs read and the result written once."""
        return self.flops / self.size_bytes

    @property
    def flops_per_s(self) -> float:
        """What it reaches."""
        return self.flops * self.operator.calls / self.operator.self_s

    def bound(self, peaks: Peaks) -> float:
        """FLOP per second that the machine allows at this intensity."""
        return min(peaks.flops_per_s, self.intensity * peaks.bytes_per_s)


def rates(profile: Profile, operators: Sequence[Operator]) -> tuple[Rate, ...]:
    """Operators whose arithmetic is known, those with most arithmetic per step first.

    Matrix products and attention by their shapes; convolutions by the shape of their result, which
    a recorded run knows. Where a device computes, the host's times say nothing and are left out.
    """
    is_on_device = profile.device not in ("CPU", "")
    results = {
        (one.name, one.shapes, one.dtypes): one.result_shapes for one in profile.source_operators
    }
    found: dict[object, Rate] = {}
    for operator in operators:
        if operator.self_s <= 0 or operator.device != is_on_device:
            continue
        call = _convolution_of(operator, results)
        work = _work(operator, results) if call is None else _convolved(call, results)
        if work is not None and work[0] > 0 and work[1] > 0:
            # Of the operators that make up a convolution, the longest does the arithmetic.
            key = operator if call is None else call
            if key not in found or found[key].operator.self_s < operator.self_s:
                found[key] = Rate(operator, *work)
    return tuple(sorted(found.values(), key=lambda one: -one.flops * one.operator.calls))


def _convolution_of(operator: Operator, results: dict[_Call, str]) -> _Call | None:
    """The convolution that an operator is or is called by, where its result is known."""
    calls = [(operator.name, operator.shapes, operator.dtypes), *operator.callers]
    return next((one for one in calls if one[0] in _CONVOLUTIONS and one in results), None)


def _convolved(call: _Call, results: dict[_Call, str]) -> tuple[float, float] | None:
    made = tensors(results[call])
    return _convolution(tensors(call[1]), made[0], _width(call[2]), 1) if made else None


def _work(operator: Operator, results: dict[_Call, str]) -> tuple[float, float] | None:
    """FLOP and bytes of one call that is no convolution; None where they are not known."""
    given, width = tensors(operator.shapes), _width(operator.dtypes)
    flops = dense_flops(operator.name, operator.shapes)
    if flops is not None:
        read = sum(math.prod(shape) for shape in given)
        left, right = given[-2:]
        written = math.prod(left) // max(left[-1], 1) * right[-1]
        return flops, float((read + written) * width)
    if operator.name.startswith(_ATTENTION):
        return _attention(operator.name, given, width)
    if operator.name == _GRADIENT and given:
        made = tensors(results.get((_GRADIENT, operator.shapes, operator.dtypes), ""))
        times = sum(len(shape) == len(given[0]) for shape in made)
        return _convolution(given, given[0], width, times or 2)
    return None


def _convolution(
    given: Sequence[tuple[int, ...]], result: tuple[int, ...], width: int, times: int
) -> tuple[float, float] | None:
    """times: gradients of input and weight are two products of the forward pass' size."""
    weights = [shape for shape in given if len(shape) == len(result)]
    if len(weights) < 2 or len(result) < 3:
        return None
    flops = 2.0 * math.prod(result) * math.prod(weights[-1][1:]) * times
    moved = sum(math.prod(shape) for shape in given) + (math.prod(result) if times == 1 else 0)
    return flops, float(moved * width)


def _attention(
    name: str, given: Sequence[tuple[int, ...]], width: int
) -> tuple[float, float] | None:
    """softmax(Q Kᵀ) V: two products forward, five backward (with QKᵀ made again)."""
    is_gradient = "backward" in name
    parts = [shape for shape in given if len(shape) == 4][int(is_gradient) :][:3]
    if len(parts) < 3:
        return None
    query, key, value = parts
    product = 2.0 * math.prod(query) * key[2]
    flops = product * (5 if is_gradient else 2)
    moved = sum(map(math.prod, (query, key, value))) + math.prod(query)
    return flops, float(moved * width * (2 if is_gradient else 1))


def _width(dtypes: str) -> int:
    """Bytes of an element of the first dtype; 4 where no dtype is known (float32)."""
    first = dtypes.split(",")[0].strip().lower()
    digits = re.search(r"(64|32|16|8)$", first)
    word = digits.group(1) if digits else first
    return _BYTES.get(word, 4)

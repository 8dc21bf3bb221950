"""Whether two frameworks' results agree: plain values in, the first disagreement in words out.

Tolerances are relative to the greatest element.  float32's 1e-4 lets MindSpore's roughest right
CPU kernels through (tanh is off by up to 1e-4, exp by 1e-5) and stops the wrong ones (tanh's GELU
for erf's is off by 4e-4 at 1, bicubic by 0.2); the greatest error is recorded for each entry.
float64 is often computed through float32 constants; half types have three digits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

TOLERANCE = {
    "float64": 1e-6, "complex128": 1e-6, "float32": 1e-4, "complex64": 1e-4, "float16": 2e-3,
    "bfloat16": 1.6e-2,
}  # fmt: skip
#: Gradients add up what the forward pass rounds.
GRADIENT_FACTOR = 3.0
#: The two-sample Kolmogorov-Smirnov bound at about 1 in 100,000.
_KOLMOGOROV = 2.4


class Array:
    """A tensor's values with its dtype's name, from either framework."""

    def __init__(self, values: Any, dtype: str) -> None:
        self.values = values
        self.dtype = dtype


class Outcome:
    """The first disagreement in words (empty: none) and the greatest error seen."""

    def __init__(self) -> None:
        self.detail = ""
        self.error = 0.0

    def fail(self, text: str) -> None:
        """Keep the first disagreement."""
        self.detail = self.detail or text


def compare(reference: Any, port: Any, how: str, outcome: Outcome, where: str = "result") -> None:
    """Compare two plain results, nested in tuples, lists and dicts, into `outcome`."""
    if isinstance(reference, Array):
        if not isinstance(port, Array):
            outcome.fail(f"{where}: a tensor in torch, {type(port).__name__} in MindSpore")
            return
        _compare_arrays(reference, port, how, outcome, where)
    elif isinstance(reference, (tuple, list)):
        if not isinstance(port, (tuple, list)) or len(reference) != len(port):
            count = len(port) if isinstance(port, (tuple, list)) else 1
            outcome.fail(f"{where}: {len(reference)} parts in torch, {count} in MindSpore")
            return
        for number, (first, second) in enumerate(zip(reference, port, strict=True)):
            compare(first, second, how, outcome, f"{where}[{number}]")
    elif isinstance(reference, dict):
        if not isinstance(port, dict) or set(reference) != set(port):
            outcome.fail(f"{where}: other keys")
            return
        for key in reference:
            compare(reference[key], port[key], how, outcome, f"{where}[{key!r}]")
    else:
        _compare_plain(reference, port, outcome, where)


def _compare_plain(reference: Any, port: Any, outcome: Outcome, where: str) -> None:
    if isinstance(reference, float) and isinstance(port, float):
        both = np.array(reference, np.float64), np.array(port, np.float64)
        _compare_arrays(Array(both[0], "float32"), Array(both[1], "float32"), "", outcome, where)
    elif type(reference) is not type(port) or reference != port:
        outcome.fail(f"{where}: {reference!r} in torch, {port!r} in MindSpore"[:200])


def _compare_arrays(reference: Array, port: Array, how: str, outcome: Outcome, where: str) -> None:
    first, second = np.asarray(reference.values), np.asarray(port.values)
    if where.startswith("gradient") and first.ndim + 1 == second.ndim:
        second = second.squeeze(2) if second.shape[2:3] == (1,) else second  # Conv1d's kernels
    if first.shape != second.shape:
        outcome.fail(f"{where}: shape {first.shape} in torch, {second.shape} in MindSpore")
    elif reference.dtype != port.dtype:
        outcome.fail(f"{where}: dtype {reference.dtype} in torch, {port.dtype} in MindSpore")
    elif how == "shape" or first.size == 0:
        return
    elif how == "distribution":
        _compare_distributions(first, second, outcome, where)
    else:
        _compare_values(first, second, reference.dtype, outcome, where)


def _compare_distributions(first: Any, second: Any, outcome: Outcome, where: str) -> None:
    # Rounded, so that two frameworks' last digits do not part equal numbers.
    scale = max(float(np.abs(first).max()), 1e-30)
    first, second = (np.round(part.astype(np.float64) / scale, 5) for part in (first, second))
    both = np.sort(np.concatenate([first.reshape(-1), second.reshape(-1)]))
    ranks = [
        np.searchsorted(np.sort(part.reshape(-1)), both, side="right") / part.size
        for part in (first, second)
    ]
    distance = float(np.abs(ranks[0] - ranks[1]).max())
    if distance > _KOLMOGOROV * np.sqrt(2 / first.size):
        outcome.fail(f"{where}: another distribution (greatest distance {distance:.2g})")


def _compare_values(first: Any, second: Any, dtype: str, outcome: Outcome, where: str) -> None:
    kind = np.complex128 if "complex" in dtype else np.float64
    if dtype not in TOLERANCE:
        if not np.array_equal(first, second):
            different = int(np.sum(first != second))
            outcome.fail(f"{where}: {different} of {first.size} elements differ")
        return
    a, b = first.astype(kind), second.astype(kind)
    finite = np.isfinite(a)
    if not np.array_equal(finite, np.isfinite(b)) or not np.array_equal(
        a[~finite], b[~finite], equal_nan=True
    ):
        outcome.fail(f"{where}: nan or infinity in other places")
        return
    if not finite.any():
        return
    scale = max(float(np.abs(a[finite]).max()), 1e-3)
    error = float(np.abs(a - b)[finite].max()) / scale
    outcome.error = max(outcome.error, error)
    factor = GRADIENT_FACTOR if where.startswith("gradient") else 1.0
    if error > TOLERANCE[dtype] * factor:
        outcome.fail(f"{where}: error {error:.1e} of the greatest element")

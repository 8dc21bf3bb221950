"""A value between two transforms: its numbers, and the container in which the next one takes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isograd.data.hypotheses.base import channels_last
from isograd.tensors import TensorValue, tensor_value

#: Relative error within which values before the end count as equal.
_NEAR = 1e-5


@dataclass(frozen=True)
class Value:
    """container: as `pipelines/values.py` names it; numbers: None for a text or an object."""

    container: str
    numbers: NDArray[Any] | None
    text: str = ""

    @classmethod
    def of(cls, found: dict[str, Any]) -> Value:
        """What the worker's `wire` gave."""
        value = found.get("array")
        array = value.values if isinstance(value, TensorValue) else value
        return cls(found["container"], array, found.get("text", ""))

    def wired(self) -> dict[str, Any]:
        """For the worker's `unwire`."""
        if self.numbers is None:
            return {"container": self.container, "text": self.text}
        return {"container": self.container, "array": tensor_value(self.numbers)}


def equivalent(a: Value, b: Value) -> bool:
    """Whether two values are one but for container, layout, dtype and the range 0..1 or 0..255."""
    if a.numbers is None or b.numbers is None:
        return a.numbers is b.numbers and a.text == b.text
    if "bytes" in (a.container, b.container) and a.container != b.container:
        return False
    second = in_layout(b.numbers, a.numbers)
    if second is None or second.shape != a.numbers.shape:
        return False
    x, y = _in_unit(a.numbers), _in_unit(second)
    scale = max(float(np.abs(x).max(initial=0.0)), float(np.abs(y).max(initial=0.0)), 1e-30)
    if np.isnan(x).any() or np.isnan(y).any():
        return bool(np.array_equal(np.isnan(x), np.isnan(y)))
    return bool(np.abs(x - y).max(initial=0.0) <= _NEAR * scale)


def _in_unit(values: NDArray[Any]) -> NDArray[np.float64]:
    wide = values.astype(np.float64)
    return wide / 255 if values.dtype == np.uint8 else wide


def in_layout(values: NDArray[Any], example: NDArray[Any]) -> NDArray[Any] | None:
    """An array with its axes as an example has them; None where that cannot be.

    values, example: (H, W), (H, W, C) or (C, H, W), any dtype.
    returns: a view with the axes of the example's shape, the dtype of values.
    """
    if values.ndim == 3 and example.ndim == 2 and 1 in (values.shape[0], values.shape[2]):
        return values[0] if values.shape[0] == 1 else values[..., 0]
    if values.ndim == 2 and example.ndim == 3:
        return values[..., None] if channels_last(example) else values[None]
    if values.ndim != example.ndim:
        return None
    if values.ndim != 3 or values.shape == example.shape:
        return values
    is_last, wanted = channels_last(values), channels_last(example)
    if is_last is None or wanted is None or is_last == wanted:
        return values
    return values.transpose(2, 0, 1) if is_last else values.transpose(1, 2, 0)


def as_like(value: Value, example: Value) -> Value | None:
    """A value in the container, layout, dtype and range of an example; None where that fails."""
    if value.numbers is None or example.numbers is None:
        return value if value.container == example.container else None
    if example.container == "bytes" and value.container != "bytes":
        return None
    found = in_layout(value.numbers, example.numbers)
    if found is None:
        return None
    wanted = example.numbers.dtype
    if wanted == np.uint8 and found.dtype.kind == "f":
        high, low = float(found.max(initial=0.0)), float(found.min(initial=0.0))
        if low < 0 or high > 255.5:
            return None
        found = np.rint(found * (255 if high <= 1.001 else 1)).astype(np.uint8)
    elif wanted.kind == "f" and found.dtype == np.uint8:
        is_unit = float(example.numbers.max(initial=0.0)) <= 1.001
        found = (found / np.float32(255) if is_unit else found).astype(wanted)
    elif wanted.kind == "f" and found.dtype.kind == "f":
        found = found.astype(wanted)
    return Value(example.container, found)


def all_equivalent(a: Sequence[Value], b: Sequence[Value]) -> bool:
    """Whether values of several samples are equivalent pairwise."""
    return all(equivalent(x, y) for x, y in zip(a, b, strict=True))

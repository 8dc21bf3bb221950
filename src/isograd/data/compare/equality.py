"""When two fields count as equal: integers and texts exactly, floats within their rounding.

The allowance is 16 · u · scale: u the unit roundoff of the coarser dtype, scale the greatest
magnitude in the field.  A conversion to 0..1, a subtraction and a division by deviations round
three times, which the division enlarges to less than 4 · u · scale for ImageNet's (measured:
2.7 · 10⁻⁷ at a scale of 2.6); 16 leaves room for other orders of the same steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isograd.data.compare.side import numbers
from isograd.data.sources.base import Value
from isograd.data.sources.media import kind_of
from isograd.tensors import UNIT_ROUNDOFF

ROUNDINGS = 16.0


@dataclass(frozen=True)
class Gap:
    """How far two values are apart: the greatest absolute difference, and what was allowed.

    is_structural: shapes, kinds or dtypes differ in a way that no number says.
    is_unread: both are images or sounds that cannot be decoded, so nothing is known of them.
    """

    greatest: float
    allowed: float
    is_structural: bool = False
    is_unread: bool = False

    @property
    def is_same(self) -> bool:
        """Whether the values count as equal."""
        is_known = not self.is_structural and not self.is_unread
        return is_known and self.greatest <= self.allowed


STRUCTURAL = Gap(math.inf, 0.0, is_structural=True)


def allowance(a: NDArray[Any], b: NDArray[Any]) -> float:
    """The allowed absolute difference of two arrays of one shape.

    a, b: one shape; 0 where neither dtype is a float.
    """
    roundoff = max(
        (UNIT_ROUNDOFF.get(str(x.dtype), 0.0) for x in (a, b) if x.dtype.kind == "f"),
        default=0.0,
    )
    if roundoff == 0.0:
        return 0.0
    return ROUNDINGS * roundoff * max(greatest(a), greatest(b))


def greatest(values: NDArray[Any]) -> float:
    """The greatest finite magnitude; 0 where there is none.

    values: any shape and real dtype.
    """
    if values.size == 0:
        return 0.0
    wide = np.abs(values.astype(np.float64))
    return float(np.max(wide, initial=0.0, where=np.isfinite(wide)))


def gap(a: Value, b: Value) -> Gap:
    """How far two fields are apart."""
    if isinstance(a, str) or isinstance(b, str):
        return Gap(0.0, 0.0) if a == b else STRUCTURAL
    first, second = numbers(a), numbers(b)
    if first is None or second is None:
        if _is_unread(a, first) and _is_unread(b, second):
            return Gap(0.0, 0.0, is_unread=True)
        is_equal = isinstance(a, bytes) and isinstance(b, bytes) and a == b
        return Gap(0.0, 0.0) if is_equal else STRUCTURAL
    return array_gap(first, second)


def _is_unread(value: Value, decoded: NDArray[Any] | None) -> bool:
    """Whether a value is an image or a sound by its first bytes, and no whole one."""
    return decoded is None and isinstance(value, bytes) and kind_of(value) is not None


def array_gap(a: NDArray[Any], b: NDArray[Any]) -> Gap:
    """How far two arrays are apart; integers and floats are of different kinds.

    a, b: any shape and real dtype; other shapes are a structural difference.
    """
    if a.shape != b.shape:
        return STRUCTURAL
    if (a.dtype.kind == "f") != (b.dtype.kind == "f"):
        return STRUCTURAL
    if a.size == 0:
        return Gap(0.0, 0.0)
    if a.dtype.kind in "biu" and b.dtype.kind in "biu" and np.array_equal(a, b):
        return Gap(0.0, 0.0)
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    nans = np.isnan(wide_a)
    if not np.array_equal(nans, np.isnan(wide_b)):
        return STRUCTURAL
    with np.errstate(invalid="ignore"):
        apart = np.where(nans | (wide_a == wide_b), 0.0, np.abs(wide_a - wide_b))
    return Gap(float(apart.max()), allowance(a, b))

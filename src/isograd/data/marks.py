"""What tells one sample from another: a digest of its values, and a sketch that survives less.

Both are made where the values are, in the worker of a pipeline too, so that they alone cross the
pipe.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isograd.data.hypotheses.base import channels_last
from isograd.data.sources.base import Value, digest
from isograd.data.sources.media import UndecodableError, decode_image, kind_of

_CELLS = 8


@dataclass(frozen=True)
class Mark:
    """digest: equal where values are, whatever their dtypes; sketch: (n,) float64 of length 1.

    sketch is None for what has no content: a text, or fewer than four numbers.
    """

    digest: bytes
    sketch: NDArray[np.float64] | None


def mark(value: Value, array: NDArray[Any] | None) -> Mark:
    """The mark of a field; array: its numbers, None where it has none."""
    if array is None:
        return Mark(digest({"": value}), None)
    return Mark(digest({"": array.astype(np.float64)}), sketch(array))


def mark_before_draw(value: Value) -> Mark:
    """The mark of what enters a random transform: of a picture its pixels, channels last."""
    array = value if isinstance(value, np.ndarray) and value.dtype.kind in "biufc" else None
    if isinstance(value, bytes) and kind_of(value) == "image":
        with contextlib.suppress(UndecodableError):
            array = decode_image(value)
    if array is not None and array.ndim == 3 and channels_last(array) is False:
        array = array.transpose(1, 2, 0)
    return mark(value, array)


def sketch(array: NDArray[Any]) -> NDArray[np.float64] | None:
    """A unit vector that survives small changes of an array; None for fewer than four numbers."""
    if array.dtype.kind in "iu" and array.ndim == 1 and array.size >= 4:
        return _unit(_hashed(array.astype(np.int64)))
    wide = np.nan_to_num(array.astype(np.float64), posinf=0.0, neginf=0.0)
    if wide.ndim == 3:
        wide = wide.mean(axis=0 if wide.shape[0] <= 4 else 2)
    if wide.ndim == 2 and min(wide.shape) >= _CELLS:
        rows = np.array_split(wide, _CELLS, axis=0)
        cells = [c.mean() for row in rows for c in np.array_split(row, _CELLS, axis=1)]
        return _unit(np.asarray(cells))
    flat = wide.reshape(-1)
    if flat.size < 4:
        return None
    parts = min(_CELLS * _CELLS, flat.size)
    return _unit(np.asarray([part.mean() for part in np.array_split(flat, parts)]))


def _hashed(tokens: NDArray[np.int64]) -> NDArray[np.float64]:
    """Counts of tokens in 64 bins, so that places do not matter."""
    mixed = (tokens.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(58)
    return np.bincount(mixed.astype(np.int64), minlength=64).astype(np.float64)


def _unit(values: NDArray[np.float64]) -> NDArray[np.float64]:
    centred = values - values.mean()
    norm = float(np.linalg.norm(centred))
    found: NDArray[np.float64] = centred / norm if norm > 0 else centred
    return found

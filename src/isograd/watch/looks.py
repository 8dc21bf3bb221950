"""Statistics of arrays for a look, the same for both frameworks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from isograd.recording.statistics import Row, measure
from isograd.watch.observation import Activations, TensorTable

Numbers = np.ndarray[Any, np.dtype[Any]]

#: Elements from which the mean of magnitudes, zeros and updates are estimated.
SAMPLE = 1 << 14
#: Modules whose output is zero where their input is negative.
RECTIFIERS = frozenset(("ReLU", "ReLU6", "Threshold"))
#: The kind of what goes into a layer, told where more than this share of it is zero: a rectifier
#: that is a function and no module.
INPUT, MOSTLY_ZERO = "input", 0.5
#: Borders beyond which float32 holds nothing but the limit: tanh(±8.8), σ(±16.2) (MindInsight).
_TANH = math.tanh(8.8)
_SIGMOID = 1.0 / (1.0 + math.exp(-16.2))
SATURATION = {"Tanh": (-_TANH, _TANH), "Sigmoid": (1.0 - _SIGMOID, _SIGMOID)}


def sample_of(values: Numbers) -> Numbers:
    """At most `SAMPLE` elements at even distances, as an array of one axis.

    values: any shape and dtype.
    returns: 1-d of the same dtype.
    """
    flat = values.reshape(-1)
    # A copy, because each pass over elements far apart costs as many cache lines.
    return flat[:: max(1, -(-flat.size // SAMPLE))].copy()


def extended_row(values: Numbers) -> list[float]:
    """The row of a `TensorTable`: (count, NaN, infinities, min, max, mean, |mean|, norm, zeros).

    values: any shape and dtype.
    """
    return sampled_row(measure(values), sample_of(values))


def sampled_row(measured: Row, sample: Numbers) -> list[float]:
    """The row of a `TensorTable` from what all elements yield, and a sample of them.

    sample: shape (sample,), any dtype.
    """
    count, nans, infinities, low, high, mean, norm = measured
    finite = sample[np.isfinite(sample)] if nans or infinities else sample
    magnitude = _mean_magnitude(finite)
    zeros = np.count_nonzero(sample == 0) / sample.size if sample.size else math.nan
    return [count, nans, infinities, low, high, mean, magnitude, norm, zeros]


def _mean_magnitude(values: Numbers) -> float:
    if not values.size:
        return math.nan
    return float(np.add.reduce(np.abs(values), axis=None, dtype=np.float64)) / values.size


def fast_norm(values: Numbers) -> float:
    """Root of the sum of squares; NaN or infinite where, and only where, an element is not finite.

    One pass in the array's own precision; where that overflows it is asked again in float64.

    values: any shape and dtype.
    """
    flat = values.reshape(-1)
    with np.errstate(over="ignore", invalid="ignore"):
        squares = float(np.dot(flat, flat).real)
        if np.isfinite(squares):
            return math.sqrt(squares)
        if np.isfinite(flat).all():
            return math.sqrt(float(np.square(flat, dtype=np.float64).sum()))
    return math.nan


def change_of(before: Numbers, after: Numbers) -> float:
    """The update ratio: mean |change| / mean |weight|, NaN where the weights are all zero.

    before, after: one shape, any float dtype.
    """
    size = float(np.abs(before).mean()) if before.size else 0.0
    if size <= 0.0:
        return math.nan
    return float(np.abs(after - before).mean()) / (size + 1e-9)


def dead_share(values: Numbers) -> float:
    """The share of channels that are zero throughout.

    Channels are axis 1 of images and the last axis of rows; of three axes the smaller share of
    both counts.

    values: any shape and dtype.
    """
    if values.ndim < 2 or not values.size:
        return math.nan
    axes = {2: (1,), 3: (1, 2)}.get(values.ndim, (1,))
    shares = []
    for axis in axes:
        others = tuple(a for a in range(values.ndim) if a != axis)
        shares.append(float((~values.any(axis=others)).mean()))
    return min(shares)


def inside_share(values: Numbers, borders: tuple[float, float]) -> float:
    """The share of elements strictly between two borders.

    values: any shape and real dtype.
    """
    sample = sample_of(values)
    low, high = borders
    return float(((sample > low) & (sample < high)).mean()) if sample.size else math.nan


class ActivationRows:
    """Gathers outputs of modules in the order of their calls; the last call of a module counts."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[str, list[float], float, float]] = {}

    def add(self, name: str, kind: str, row: list[float], dead: float, inside: float) -> None:
        """Add a module's output."""
        self._found[name] = (kind, row, dead, inside)

    def leave_out(self, name: str) -> None:
        """Take back what was added under a name."""
        self._found.pop(name, None)

    def activations(self) -> Activations | None:
        """All that was added, or None."""
        if not self._found:
            return None
        kinds, rows, dead, inside = zip(*self._found.values(), strict=True)
        table = TensorTable(tuple(self._found), np.array(rows))
        return Activations(table, kinds, np.array(dead), np.array(inside))

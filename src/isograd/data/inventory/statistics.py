"""Statistics of a field in one pass: values are collected into blocks and measured together.

Means and deviations are merged by Chan, Golub and LeVeque's formula (1979).  Quantiles of integers
of one byte come from their exact histogram; of all else from a uniform sample of 8,192 values that
is drawn by Vitter's algorithm R over blocks: the standard error of a rank is at most
0.5 / √8192 = 0.55 %.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isograd.data.model import Statistics
from isograd.tensors import Array

QUANTILES = (0.01, 0.25, 0.5, 0.75, 0.99)
_RESERVOIR = 8192
#: Elements that a block may add to the sample: the rest is thinned evenly.
_MOST_DRAWN = 4096
#: numpy draws hypergeometric numbers of fewer things only; of more it is a binomial one.
_MOST_EXACT = 10**9
#: An axis of at most so many entries, first or last of three, is that of channels.
MAX_CHANNELS = 4


def channel_axis(shape: tuple[int, ...]) -> int | None:
    """The axis of channels of an image's shape: the last or the first of three; else None."""
    if len(shape) != 3:
        return None
    if shape[-1] <= MAX_CHANNELS:
        return 2
    return 0 if shape[0] <= MAX_CHANNELS else None


def drawn_of_first(first: int, second: int, room: int, generator: np.random.Generator) -> int:
    """How many of `room` things that are drawn from `first` and `second` come from the first."""
    if first + second < _MOST_EXACT:
        return int(generator.hypergeometric(first, second, room))
    return int(generator.binomial(room, first / (first + second)))


class ChannelTally:
    """The running statistics of one channel or column."""

    def __init__(self, name: str, seed: int) -> None:
        self.name = name
        self.count = 0
        self.nans = 0
        self.infinities = 0
        self._mean = 0.0
        self._squares = 0.0
        self._minimum = np.inf
        self._maximum = -np.inf
        self._histogram: NDArray[np.int64] | None = None
        self._kept: NDArray[np.float64] = np.zeros(0)
        self._seen = 0
        self._generator = np.random.default_rng((seed, 9))

    def add(self, values: NDArray[Any]) -> None:
        """Add the elements of a block.

        values: any shape and dtype.
        """
        flat = values.reshape(-1)
        if flat.dtype == np.uint8:
            counts = np.bincount(flat, minlength=256)
            self._histogram = counts if self._histogram is None else self._histogram + counts
            return
        if flat.dtype.kind in "fc":
            finite = np.isfinite(flat)
            if not finite.all():
                nans = int(np.isnan(flat).sum())
                self.nans += nans
                self.infinities += int(flat.size - finite.sum()) - nans
                flat = flat[finite]
        if flat.size and flat.dtype.kind in "biuf":
            self._merge(flat)
            self._draw(flat)

    def join(self, other: ChannelTally) -> None:
        """Add what another tally counted; the order does not matter but to the drawn values."""
        self.nans += other.nans
        self.infinities += other.infinities
        if other._histogram is not None:
            own = self._histogram
            self._histogram = other._histogram if own is None else own + other._histogram
        if other.count:
            self._join(other.count, other._mean, other._squares, other._minimum, other._maximum)
            self._join_drawn(other)

    def _join_drawn(self, other: ChannelTally) -> None:
        """One uniform sample of two: how many come from each is hypergeometric."""
        room = min(_RESERVOIR, self._kept.size + other._kept.size)
        own = drawn_of_first(self._seen, other._seen, room, self._generator)
        own = min(max(own, room - other._kept.size), self._kept.size)
        first = self._generator.permutation(self._kept)[:own]
        second = self._generator.permutation(other._kept)[: room - own]
        self._kept = np.concatenate((first, second))
        self._seen += other._seen

    def _merge(self, flat: NDArray[Any]) -> None:
        count = flat.size
        mean = float(np.mean(flat, dtype=np.float64))
        squares = float(np.var(flat, dtype=np.float64)) * count
        self._join(count, mean, squares, float(flat.min()), float(flat.max()))

    def _join(
        self, count: int, mean: float, squares: float, minimum: float, maximum: float
    ) -> None:
        total = self.count + count
        step = mean - self._mean
        self._squares += squares + step * step * self.count * count / total
        self._mean += step * count / total
        self._minimum = min(self._minimum, minimum)
        self._maximum = max(self._maximum, maximum)
        self.count = total

    def _draw(self, flat: NDArray[Any]) -> None:
        stride = -(-flat.size // _MOST_DRAWN)
        offset = int(self._generator.integers(stride)) if stride > 1 else 0
        drawn = flat[offset::stride].astype(np.float64)
        room = _RESERVOIR - self._kept.size
        if room > 0:
            self._kept = np.concatenate((self._kept, drawn[:room]))
            self._seen += min(room, drawn.size)
            drawn = drawn[room:]
        if drawn.size:
            places = self._generator.integers(np.arange(drawn.size) + self._seen + 1)
            chosen = places < _RESERVOIR
            self._kept[places[chosen]] = drawn[chosen]
            self._seen += drawn.size

    def result(self) -> Statistics:
        """The statistics so far."""
        if self._histogram is not None and self.count == 0:
            return self._of_bytes(self._histogram)
        if self.count == 0:
            return Statistics(
                self.name, 0, None, None, None, None, nans=self.nans, infinities=self.infinities
            )
        quantiles = np.quantile(self._kept, QUANTILES) if self._kept.size else ()
        deviation = float(np.sqrt(self._squares / self.count))
        return Statistics(
            self.name,
            self.count,
            self._minimum,
            self._maximum,
            self._mean,
            deviation,
            tuple(float(q) for q in quantiles),
            self.nans,
            self.infinities,
        )

    def _of_bytes(self, histogram: NDArray[np.int64]) -> Statistics:
        count = int(histogram.sum())
        levels = np.arange(256.0)
        mean = float((histogram * levels).sum() / count)
        deviation = float(np.sqrt((histogram * (levels - mean) ** 2).sum() / count))
        present = np.flatnonzero(histogram)
        ranks = np.searchsorted(np.cumsum(histogram), np.asarray(QUANTILES) * count)
        quantiles = tuple(float(q) for q in ranks)
        return Statistics(
            self.name, count, float(present[0]), float(present[-1]), mean, deviation, quantiles
        )


class BlockTally:
    """Statistics of arrays that come one at a time: equal ones are stacked before measuring.

    `is_constant` and `nonfinite` are answered for a whole block, with the positions of samples.
    """

    _BLOCK_SAMPLES = 512
    _BLOCK_BYTES = 1 << 23

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._channels: dict[str, ChannelTally] = {}
        self._waiting: dict[tuple[str, tuple[int, ...]], tuple[list[int], list[Array]]] = {}
        self.constant: list[int] = []
        self.nonfinite: list[int] = []
        self.constant_count = 0
        self.nonfinite_count = 0

    def add(self, position: int, values: Array) -> None:
        """Add the array of one sample.

        values: any shape and dtype.
        """
        key = (values.dtype.str, values.shape)
        places, arrays = self._waiting.setdefault(key, ([], []))
        places.append(position)
        arrays.append(values)
        size = len(arrays) * max(1, values.nbytes)
        if len(arrays) >= self._BLOCK_SAMPLES or size >= self._BLOCK_BYTES:
            self._measure(*self._waiting.pop(key))
        elif len(self._waiting) > 16:  # many shapes: the one that waits longest is measured
            self._measure(*self._waiting.pop(next(iter(self._waiting))))

    def finish(self) -> tuple[Statistics, ...]:
        """Measure what waits, and return the statistics."""
        for places, arrays in self._waiting.values():
            self._measure(places, arrays)
        self._waiting.clear()
        return tuple(channel.result() for channel in self._channels.values())

    def join(self, other: BlockTally, shift: int) -> None:
        """Add what another tally counted, whose first sample is at position `shift`."""
        self.finish()
        other.finish()
        for name, channel in other._channels.items():
            self._channel(name).join(channel)
        self.constant_count += other.constant_count
        self.nonfinite_count += other.nonfinite_count
        for own, more in ((self.constant, other.constant), (self.nonfinite, other.nonfinite)):
            if len(own) < 32:
                own += [position + shift for position in more]

    def _measure(self, places: list[int], arrays: list[Array]) -> None:
        block = np.stack(arrays)
        if block.dtype.kind not in "biuf" or block.size == 0:
            return
        shape = block.shape[1:]
        self._note_samples(block.reshape(len(places), -1), np.asarray(places))
        axis = channel_axis(shape)
        if axis is None:
            self._channel("").add(block)
            return
        for number in range(shape[axis]):
            self._channel(str(number)).add(np.take(block, number, axis=axis + 1))

    def _note_samples(self, rows: Any, places: NDArray[np.int64]) -> None:
        if rows.shape[1] > 1:
            # compared with the first element, which is quicker than two extrema
            same = (rows == rows[:, :1]).all(axis=1)
            self.constant_count += int(same.sum())
            self.constant += [int(p) for p in places[same][:32]] if len(self.constant) < 32 else []
        if rows.dtype.kind == "f":
            bad = ~np.isfinite(rows).all(axis=1)
            self.nonfinite_count += int(bad.sum())
            self.nonfinite += [int(p) for p in places[bad][:32]] if len(self.nonfinite) < 32 else []

    def _channel(self, name: str) -> ChannelTally:
        if name not in self._channels:
            self._channels[name] = ChannelTally(name, self._seed + len(self._channels))
        return self._channels[name]

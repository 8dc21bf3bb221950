"""The best cut of a backward pass into AllReduce segments, exact.

Gradients become ready one after the other; one channel sends whole segments in that order. With
`ready[j]` rising and `size[j]` bytes, the time at which the first j gradients are sent is

    f(j) = min over i < j of  max(f(i), ready[j-1]) + cost(S[j] - S[i]),   S = running sum of size.

cost(n) = a + b n: O(L), because f never falls; any other non-decreasing cost: O(L^2). Not covered:
overlap with the next forward pass, several channels, compute that slows down while sending.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isograd.errors import UsageError

Floats = npt.NDArray[np.float64]
Cost = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Affine:
    """Seconds of a message of n bytes: a_s + b_s_per_byte * n."""

    a_s: float
    b_s_per_byte: float

    def __call__(self, size_bytes: Floats) -> Floats:
        """Seconds of each size, any shape."""
        return np.asarray(self.a_s + self.b_s_per_byte * size_bytes)


@dataclass(frozen=True)
class Segments:
    """ends: number of gradients sent after each segment, the last one all. finish_s: when."""

    ends: tuple[int, ...]
    finish_s: float

    @property
    def indices(self) -> tuple[int, ...]:
        """Last gradient of each segment, from 0, as `all_reduce_fusion_config` counts."""
        return tuple(end - 1 for end in self.ends)


def finish(ends: Sequence[int], ready_s: Floats, size_bytes: Floats, cost: Cost) -> float:
    """When the last segment is sent. Shapes (L,); seconds and bytes.

    ready_s, size_bytes: shape (L,), float64.
    """
    total = np.concatenate([[0.0], np.cumsum(size_bytes)])
    now, begin = 0.0, 0
    for end in ends:
        size = total[end] - total[begin]
        now = max(now, float(ready_s[end - 1])) + float(cost(np.asarray([size]))[0])
        begin = end
    return now


def best_segments(ready_s: Floats, size_bytes: Floats, cost: Cost) -> Segments:
    """The cut that finishes first. Shapes (L,); raise UsageError for malformed input.

    ready_s, size_bytes: shape (L,), float64.
    """
    ready_s, size_bytes = _checked(ready_s, size_bytes)
    if isinstance(cost, Affine):
        return _linear(ready_s, size_bytes, cost)
    return _quadratic(ready_s, size_bytes, cost)


def fewest_segments(
    ready_s: Floats, size_bytes: Floats, cost: Cost, slack: float = 0.05
) -> Segments:
    """The fewest segments whose exposed tail is within `slack` of the best finish.

    The tail is the time after the last gradient is ready; the slack is a share of it.

    ready_s, size_bytes: shape (L,), float64.
    """
    ready_s, size_bytes = _checked(ready_s, size_bytes)
    best = best_segments(ready_s, size_bytes, cost)
    last = float(ready_s[-1])
    allowed = last + (best.finish_s - last) * (1.0 + slack)
    count = ready_s.size
    total = np.concatenate([[0.0], np.cumsum(size_bytes)])
    done = np.full(count + 1, np.inf)
    done[0] = 0.0
    back: list[npt.NDArray[np.int64]] = []
    for _ in range(len(best.ends)):
        done, choice = _one_more(done, ready_s, total, cost)
        back.append(choice)
        if done[count] <= allowed * (1 + 1e-12):
            return Segments(_trace(back, count), float(done[count]))
    return best


def _one_more(
    done: Floats, ready_s: Floats, total: Floats, cost: Cost
) -> tuple[Floats, npt.NDArray[np.int64]]:
    """f with one segment more, for every number of gradients, and where that segment begins."""
    count = ready_s.size
    after = np.full(count + 1, np.inf)
    choice = np.zeros(count + 1, dtype=np.int64)
    for end in range(1, count + 1):
        times = np.maximum(done[:end], ready_s[end - 1]) + cost(total[end] - total[:end])
        choice[end] = int(np.argmin(times))
        after[end] = times[choice[end]]
    return after, choice


def _trace(back: list[npt.NDArray[np.int64]], count: int) -> tuple[int, ...]:
    ends, at = [], count
    for choice in reversed(back):
        ends.append(at)
        at = int(choice[at])
    return tuple(reversed(ends))


def _quadratic(ready_s: Floats, size_bytes: Floats, cost: Cost) -> Segments:
    count = ready_s.size
    total = np.concatenate([[0.0], np.cumsum(size_bytes)])
    done = np.zeros(count + 1)
    begin = np.zeros(count + 1, dtype=np.int64)
    for end in range(1, count + 1):
        times = np.maximum(done[:end], ready_s[end - 1]) + cost(total[end] - total[:end])
        begin[end] = int(np.argmin(times))
        done[end] = times[begin[end]]
    return Segments(_ends(begin), float(done[count]))


def _linear(ready_s: Floats, size_bytes: Floats, cost: Affine) -> Segments:
    """A pointer to the last i with f(i) <= ready, and a window's minimum of f(i) - b S_i beyond."""
    a, b, count = cost.a_s, cost.b_s_per_byte, ready_s.size
    total = [0.0, *np.cumsum(size_bytes).tolist()]
    done, begin = [0.0] * (count + 1), [0] * (count + 1)
    window: deque[int] = deque()
    pointer = 0
    for end in range(1, count + 1):
        new, now = end - 1, float(ready_s[end - 1])
        key = done[new] - b * total[new]
        while window and done[window[-1]] - b * total[window[-1]] >= key:
            window.pop()
        window.append(new)
        while pointer + 1 < end and done[pointer + 1] <= now:
            pointer += 1
        best, start = float("inf"), pointer
        if done[pointer] <= now:
            best = now + a + b * (total[end] - total[pointer])
        while window and done[window[0]] <= now:
            window.popleft()
        if window:
            first = window[0]
            other = done[first] + a + b * (total[end] - total[first])
            if other < best:
                best, start = other, first
        done[end], begin[end] = best, start
    return Segments(_ends(begin), done[count])


def _ends(begin: Sequence[int] | npt.NDArray[np.int64]) -> tuple[int, ...]:
    ends, at = [], len(begin) - 1
    while at > 0:
        ends.append(at)
        at = int(begin[at])
    return tuple(reversed(ends))


def _checked(ready_s: Floats, size_bytes: Floats) -> tuple[Floats, Floats]:
    ready_s = np.asarray(ready_s, dtype=np.float64)
    size_bytes = np.asarray(size_bytes, dtype=np.float64)
    if ready_s.ndim != 1 or ready_s.shape != size_bytes.shape or not ready_s.size:
        raise UsageError(
            f"{ready_s.size} ready times and {size_bytes.size} sizes are given",
            "Give one ready time and one size for each gradient.",
        )
    if not (np.isfinite(ready_s).all() and np.isfinite(size_bytes).all()):
        raise UsageError("a ready time or a size is not finite", "Give seconds and bytes.")
    if (np.diff(ready_s) < 0).any() or (size_bytes < 0).any():
        raise UsageError(
            "ready times fall or a size is negative",
            "Give the gradients in the order in which the backward pass makes them.",
        )
    return ready_s, size_bytes

"""Intervals with names as columns: what operators, kernels and marks of a trace are kept as.

Times are integers of nanoseconds since the earliest event of the source. A missing number is -1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]

NONE = -1


class Strings:
    """Text by number: equal texts have one number."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        """The text's number; a new text gets the next one."""
        return self.numbers.setdefault(text, len(self.numbers))

    def texts(self) -> tuple[str, ...]:
        """All texts, in the order of their numbers."""
        return tuple(self.numbers)


@dataclass(frozen=True)
class Track:
    """A thread or a stream of a device. process: its name, else its number; pid: its number."""

    process: str
    thread: str
    name: str = ""
    is_device: bool = False
    pid: str = ""


@dataclass(frozen=True)
class Launches:
    """Rows of kernels in rising order, the host's call that launched each, and when that ended.

    All of shape (kernels,), int64. call: -1 where that row was left out.
    """

    kernel: Ints
    call: Ints
    ended_ns: Ints

    def rows(self, chosen: npt.NDArray[np.bool_]) -> Launches:
        """Those of the spans that are kept. chosen: shape (rows,), bool."""
        place = np.where(chosen, np.cumsum(chosen) - 1, NONE)
        kept = chosen[self.kernel]
        call = self.call[kept]
        return Launches(
            place[self.kernel[kept]],
            np.where(call == NONE, NONE, place[call]),
            self.ended_ns[kept],
        )


@dataclass(frozen=True)
class Spans:
    """Intervals with names; row i of each column is one interval, ordered by track, then start.

    name, category, shapes, dtypes: numbers into `texts`; -1 where shapes or dtypes are unknown.
    track: number into `tracks`. start_ns, duration_ns: integers. launches: of kernels, where the
    trace says which launch is whose. sequence: rows and their autograd sequence numbers, which a
    call and its gradient share. owner: the operator that launched each kernel, -1 in all other
    rows; None where it was not looked for (`analyse/kernels.py`).
    """

    texts: tuple[str, ...]
    tracks: tuple[Track, ...]
    name: Codes
    category: Codes
    track: Codes
    start_ns: Ints
    duration_ns: Ints
    shapes: Codes
    dtypes: Codes
    launches: Launches | None = None
    sequence: tuple[Ints, Ints] | None = None
    owner: Codes | None = None

    def __len__(self) -> int:
        return int(self.name.size)

    @property
    def is_on_device(self) -> npt.NDArray[np.bool_]:
        """Which rows are a device's, shape (rows,), bool."""
        is_device = np.asarray([track.is_device for track in self.tracks], dtype=bool)
        return np.asarray(is_device[self.track])

    def rows(self, chosen: npt.NDArray[np.bool_]) -> Spans:
        """Some of the spans. chosen: shape (rows,), bool."""
        names = ("name", "category", "track", "start_ns", "duration_ns", "shapes", "dtypes")
        return Spans(
            self.texts,
            self.tracks,
            **{name: getattr(self, name)[chosen] for name in names},
            launches=None if self.launches is None else self.launches.rows(chosen),
            sequence=_kept(self.sequence, chosen),
        )

    def blocking(self) -> Launches:
        """The launches whose call ended after the kernel: the host waited, as for pageable copies.

        returns: those of them whose call is known.
        """
        if self.launches is None:
            none = np.zeros(0, dtype=np.int64)
            return Launches(none, none, none)
        kernel, call, ended = self.launches.kernel, self.launches.call, self.launches.ended_ns
        waited = (call != NONE) & (ended >= self.start_ns[kernel] + self.duration_ns[kernel])
        return Launches(kernel[waited], call[waited], ended[waited])

    def launch_ns(self, rows: Ints) -> Ints:
        """When the host had launched these kernels; their start where that is not known.

        Where the host waited for the kernel, when its call began.

        rows: shape (kernels,), int64.
        returns: shape (kernels,), int64.
        """
        known = self.start_ns[rows]
        if self.launches is None or not self.launches.kernel.size or not rows.size:
            return known
        kernels, at = self.launches.kernel, self.launches.ended_ns
        place = np.minimum(np.searchsorted(kernels, rows), kernels.size - 1)
        found = np.where(kernels[place] == rows, np.minimum(at[place], known), known)
        waited = self.blocking()
        if waited.kernel.size:
            place = np.minimum(np.searchsorted(waited.kernel, rows), waited.kernel.size - 1)
            began = self.start_ns[waited.call[place]]
            found = np.where(waited.kernel[place] == rows, np.minimum(began, found), found)
        return np.asarray(found)

    def numbers_of(self, texts: Sequence[str]) -> Codes:
        """The numbers of those texts that occur.

        returns: shape (found,), int32.
        """
        wanted = set(texts)
        found = [number for number, text in enumerate(self.texts) if text in wanted]
        return np.asarray(found, dtype=np.int32)


def _kept(
    numbered: tuple[Ints, Ints] | None, chosen: npt.NDArray[np.bool_]
) -> tuple[Ints, Ints] | None:
    if numbered is None:
        return None
    rows, numbers = numbered
    place = np.cumsum(chosen) - 1
    return np.asarray(place[rows[chosen[rows]]], dtype=np.int64), numbers[chosen[rows]]

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
class Spans:
    """Intervals with names; row i of each column is one interval, ordered by track, then start.

    name, category, shapes, dtypes: numbers into `texts`; -1 where shapes or dtypes are unknown.
    track: number into `tracks`. start_ns, duration_ns: integers. launches: rows of kernels in
    rising order, and when the host had launched each, where the trace says which launch is whose.
    sequence: rows and their autograd sequence numbers, which a call and its gradient share.
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
    launches: tuple[Ints, Ints] | None = None
    sequence: tuple[Ints, Ints] | None = None

    def __len__(self) -> int:
        return int(self.name.size)

    def rows(self, chosen: npt.NDArray[np.bool_]) -> Spans:
        """Some of the spans. chosen: shape (rows,), bool."""
        names = ("name", "category", "track", "start_ns", "duration_ns", "shapes", "dtypes")
        return Spans(
            self.texts,
            self.tracks,
            **{name: getattr(self, name)[chosen] for name in names},
            launches=_kept(self.launches, chosen),
            sequence=_kept(self.sequence, chosen),
        )

    def launch_ns(self, rows: Ints) -> Ints:
        """When the host had launched these kernels; their start where that is not known.

        rows: shape (kernels,), int64.
        returns: shape (kernels,), int64.
        """
        known = self.start_ns[rows]
        if self.launches is None or not rows.size:
            return known
        kernels, at = self.launches
        place = np.minimum(np.searchsorted(kernels, rows), kernels.size - 1)
        return np.asarray(np.where(kernels[place] == rows, np.minimum(at[place], known), known))

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

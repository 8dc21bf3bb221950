"""What a source of samples promises, whichever format it reads.

A source is opened without reading samples, and read in one stream, as often as it is asked.  An
item that cannot be read is yielded as a `Problem` with its name and does not end the stream.
Nothing in a file is ever executed, and no link is followed out of the folder that was named.
"""

from __future__ import annotations

import copy
import hashlib
import itertools
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypeVar

import numpy as np

from isograd.errors import DataError
from isograd.tensors import Array, contiguous

#: One field of a sample: numbers, an encoded image, sound or other bytes, or a text.
Value: TypeAlias = "Array | bytes | str"
_T = TypeVar("_T")


@dataclass(frozen=True)
class Sample:
    """One sample.

    key: its name within the source, unique there; fields: by name, in the order of the source;
    split: the part of the data set it belongs to, where the layout says so.
    """

    key: str
    fields: dict[str, Value]
    split: str = ""


@dataclass(frozen=True)
class Problem:
    """An item that could not be read: its name, and why."""

    key: str
    what: str
    split: str = ""


Item: TypeAlias = "Sample | Problem"


@dataclass(frozen=True)
class Labels:
    """What a layout says of its labels: the field, the number of classes, their names."""

    field: str | None = None
    classes: int | None = None
    names: tuple[str, ...] = ()


class SampleSource(ABC):
    """A data set in files; `samples` may be called again and then begins anew."""

    #: The name of the format, as the report prints it.
    format: str = ""

    def __init__(self, address: str) -> None:
        self.address = address
        self.labels = Labels()
        #: What else the report says of it, in sentences.
        self.notes: list[str] = []
        #: What was left out and is no problem, and how often: "files without … were left out".
        self.left_out: Counter[str] = Counter()
        self._part = (0, 1)
        self._stretch: tuple[int, int] | None = None

    @property
    def is_divisible(self) -> bool:
        """Whether `part` reads fewer files: the source reads several, each for itself."""
        return False

    def part(self, number: int, count: int) -> SampleSource:
        """The same source without the files of other parts; the keys are the same.

        number: of the part, from 0 to count - 1; parts follow one another in the source's order.
        """
        twin = copy.copy(self)
        twin.left_out = Counter()
        twin._part = (number, count)
        return twin

    def window(self, start: int, size: int) -> Iterator[Item]:
        """Up to `size` items from the one at `start` on; those before it are read and left out."""
        return itertools.islice(self.samples(), start, start + size)

    def _of_files(self, start: int, stop: int) -> SampleSource:
        """The same source with some of its files alone, for one in which each is a sample."""
        twin = copy.copy(self)
        twin.left_out = Counter()
        twin._stretch = (start, stop)
        return twin

    def _own(self, files: Callable[[], Iterable[_T]]) -> Iterable[_T]:
        """The files of this part."""
        if self._stretch is not None:
            return itertools.islice(files(), *self._stretch)
        number, count = self._part
        if count == 1:
            return files()
        size = sum(1 for _ in files())
        return itertools.islice(files(), size * number // count, size * (number + 1) // count)

    @abstractmethod
    def samples(self) -> Iterator[Item]:
        """Every sample in the order of the source, with problems in their places."""

    def count(self) -> int | None:
        """How many samples there are, where that is known without reading them."""
        return None

    def close(self) -> None:  # noqa: B027 - most sources hold nothing open
        """Let go of what is open; safe to call again."""


def refuse(address: str | Path, what: str, advice: str) -> DataError:
    """The error for a source that cannot be opened at all."""
    return DataError(f"{address}: {what}", advice)


def inside(path: Path, root: Path) -> bool:
    """Whether a path, with its links followed, lies within a folder that is already resolved."""
    try:
        return path.resolve().is_relative_to(root)
    except (OSError, RuntimeError):
        return False


def as_bytes(value: Value) -> bytes:
    """The bytes of a value in digests: its kind, dtype and shape, then its content.

    value: an array of any shape and dtype, bytes or a text.
    """
    if isinstance(value, str):
        return b"text:" + value.encode("utf-8", errors="surrogatepass")
    if isinstance(value, bytes):
        return b"bytes:" + value
    head = f"{value.dtype.str}{value.shape}:".encode()
    return head + contiguous(value).tobytes()


def digest(fields: dict[str, Value]) -> bytes:
    """16 bytes that two samples share if and only if names and values are equal.

    fields: arrays of any shape and dtype, bytes and texts by name.
    """
    found = hashlib.blake2b(digest_size=16)
    for name in sorted(fields):
        content = as_bytes(fields[name])
        found.update(f"{len(name.encode())}:{name}:{len(content)}:".encode())
        found.update(content)
    return found.digest()


def scalar(value: bool | int | float) -> Array:
    """A Python number as a 0-d array: int64, float64 or bool."""
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        return np.asarray(float(value))
    return np.asarray(value)

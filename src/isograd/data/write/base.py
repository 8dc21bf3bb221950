"""What a writer of samples promises, and what all of them share."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isograd.data.sources.base import Value
from isograd.errors import DataError

Fields = dict[str, Value]


class Writer(ABC):
    """Writes samples to one file, which the caller renames when `finish` has returned."""

    #: What the format could not keep, in sentences.
    notes: list[str]

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notes = []
        self._names: list[str] | None = None

    @abstractmethod
    def write(self, fields: Fields) -> None:
        """Append one sample; DataError where the format cannot hold it."""

    @abstractmethod
    def finish(self) -> list[Path]:
        """Complete the files, and name those that belong beside the first."""

    def note(self, text: str) -> None:
        """Say once what is not kept."""
        if text not in self.notes:
            self.notes.append(text)

    def require_same(self, fields: Fields, position: int) -> None:
        """DataError where a sample has other fields than the first."""
        if self._names is None:
            self._names = list(fields)
        elif list(fields) != self._names:
            raise DataError(
                f"sample {position:,} has the fields {', '.join(fields)}, the first has "
                f"{', '.join(self._names)}",
                "Give all samples the same fields.",
            )


def canonical(fields: Fields) -> bytes:
    """16 bytes that stay the same while no value changes, whichever dtype holds it."""
    found = hashlib.blake2b(digest_size=16)
    for name in sorted(fields):
        found.update(f"{len(name)}:{name}:".encode())
        value = fields[name]
        if isinstance(value, str):
            found.update(b"t" + value.encode("utf-8", errors="surrogatepass"))
        elif isinstance(value, bytes):
            found.update(b"b" + value)
        else:
            found.update(f"{value.shape}".encode())
            found.update(np.ascontiguousarray(_wide(value)).tobytes())
    return found.digest()


def _wide(values: NDArray[Any]) -> NDArray[Any]:
    if values.dtype.kind in "biu" and values.dtype != np.uint64:
        return values.astype(np.int64)
    return values.astype(np.float64) if values.dtype.kind == "f" else values


def cannot(name: str, what: str) -> DataError:
    """The error for a field that a format cannot hold."""
    return DataError(f"field {name!r}: {what}", "Choose npz or Parquet, or leave the field out.")

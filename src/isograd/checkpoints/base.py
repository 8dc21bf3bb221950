"""One interface for every file or folder of named tensors.

A source knows the names, dtypes and shapes of all its tensors as soon as it is open, and reads one
tensor at a time.  It executes nothing that it reads, never follows a name out of its own folder,
and never reserves memory for a size that the file merely announces.
"""

from __future__ import annotations

import abc
import math
import mmap
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np

from isograd.checkpoints.dtypes import KNOWN, decoded, holder, item_size_bytes
from isograd.errors import CheckpointError
from isograd.tensors import Array, TensorValue

if TYPE_CHECKING:
    from typing_extensions import Self

MAX_DIMENSIONS = 32
#: Files up to this size are read at once, which takes less time than mapping them.
_SMALL_BYTES = 32 * 1024
_ADVICE = "The file is damaged or of another kind; copy it again, or name another one."


@dataclass(frozen=True)
class TensorInfo:
    """What a file says about one tensor, without reading it.

    dtype: numpy's name, or one of `dtypes.FOREIGN`.
    trainable: None where the file does not say.
    order: the place in execution order, or None where the file knows none.
    tied_to: the first name of the same storage region, or None.
    part: what of a checkpoint the tensor belongs to beside the network's own state, such as
    `optimizer`; empty for the network itself.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    size_bytes: int
    trainable: bool | None = None
    order: int | None = None
    tied_to: str | None = None
    part: str = ""


@dataclass(frozen=True)
class RawTensor:
    """The bits of a tensor, in C order; a view of the mapped file where that is possible.

    bits: uint16 for bfloat16, uint8 for the 8-bit floats, else of the dtype itself.
    """

    bits: Array
    dtype: str


class TensorSource(abc.ABC):
    """Named tensors on disk.

    Every method that meets a damaged file raises CheckpointError, which names the file.
    Reading is safe from several threads at once.
    """

    #: What the source is, for people: `safetensors`, `torch (zip)`, …
    kind: str = ""

    def __init__(self, path: Path) -> None:
        self.path = path

    @abc.abstractmethod
    def names(self) -> tuple[str, ...]:
        """All names in the order of the file; each occurs once."""

    @abc.abstractmethod
    def info(self, name: str) -> TensorInfo:
        """What the file says about a tensor; CheckpointError where there is none of this name."""

    @abc.abstractmethod
    def raw(self, name: str) -> RawTensor:
        """The bits of one tensor; read-only views of the file where that is possible."""

    def stored(self, name: str) -> RawTensor:
        """The bits as they lie there: like `raw`, but not copied where they are not aligned."""
        return self.raw(name)

    def read(self, name: str) -> TensorValue:
        """The values of one tensor.

        Returns any shape; float32 for the dtypes that numpy lacks, else the dtype of the file.
        Raises CheckpointError for an unknown name or a damaged file.
        """
        found = self.raw(name)
        return decoded(found.bits, found.dtype)

    @property
    def metadata(self) -> Mapping[str, str]:
        """What else the file says about itself."""
        return {}

    @property
    def skipped(self) -> Mapping[str, str]:
        """What lies there and is no tensor that can be read, each with its reason."""
        return {}

    def verify(self) -> bool:
        """Check the file's checksums; False where it has none, CheckpointError where one fails."""
        return False

    def forget(self) -> None:
        """Let go of the pages that were read, so that memory holds one tensor at a time."""
        return

    def close(self) -> None:
        """Release the file; arrays that were read from a map stay valid."""
        return

    def __iter__(self) -> Iterator[TensorInfo]:
        return (self.info(name) for name in self.names())

    def __len__(self) -> int:
        return len(self.names())

    def __contains__(self, name: object) -> bool:
        return name in self.names()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def refusal(self, what: str, advice: str = _ADVICE) -> CheckpointError:
        """The error of this file."""
        return CheckpointError(f"{self.path}: {what}", advice)


#: Opens a file or a folder by its content, as `open_source` does; sources of files are given it.
Opener = Callable[[Path], TensorSource]


class IndexedSource(TensorSource):
    """A source whose table of tensors is a dictionary, filled when it is opened."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._infos: dict[str, TensorInfo] = {}

    def names(self) -> tuple[str, ...]:
        return tuple(self._infos)

    def info(self, name: str) -> TensorInfo:
        try:
            return self._infos[name]
        except KeyError:
            raise self.refusal(f"has no tensor {name!r}", "Ask for one of its names.") from None

    def __contains__(self, name: object) -> bool:
        return name in self._infos

    def add(self, info: TensorInfo) -> None:
        """Put a tensor into the table; a name that occurs twice is refused."""
        if info.name in self._infos:
            raise self.refusal(f"holds the name {info.name!r} twice")
        self._infos[info.name] = info


def map_file(path: str | Path) -> memoryview:
    """The bytes of a file, mapped where it is not small; empty for an empty file.

    Raises CheckpointError where it is no regular file or cannot be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe must not make it wait
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise _no_file(path)
            if found.st_size <= _SMALL_BYTES:
                with open(descriptor, "rb", closefd=False) as file:
                    return memoryview(file.read())
            return memoryview(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ))
        finally:
            os.close(descriptor)
    except FileNotFoundError as error:
        raise _no_file(path) from error
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path}: cannot be read ({error})", _ADVICE) from error


def _no_file(path: str | Path) -> CheckpointError:
    return CheckpointError(f"{path}: is no regular file", "Name a file or a folder that exists.")


def drop_pages(data: memoryview) -> None:
    """Let the system take back the pages of a mapped file; they are read again when needed."""
    mapped = data.obj
    if isinstance(mapped, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


def size_in_bytes(dtype: str, shape: tuple[int, ...]) -> int:
    """Bytes of a tensor; ValueError for a dtype or shape that no tensor has."""
    if dtype not in KNOWN:
        raise ValueError(f"the dtype {dtype!r} is not known")
    if len(shape) > MAX_DIMENSIONS or any(type(n) is not int or n < 0 for n in shape):
        raise ValueError(f"the shape {shape!r:.100} is none")
    size = math.prod(shape) * item_size_bytes(dtype)
    if size >= 1 << 62:
        raise ValueError(f"the shape {shape!r:.100} is beyond any memory")
    return size


def view(
    data: memoryview, start: int, dtype: str, shape: tuple[int, ...], *, aligned: bool = True
) -> Array:
    """An array over mapped bytes; copied where they are not aligned and that is asked for.

    Raises ValueError where the bytes end before the array.

    returns: of the given shape; the dtype is the one that holds the named dtype's bits.
    """
    size = size_in_bytes(dtype, shape)
    if start < 0 or start + size > len(data):
        raise ValueError(f"{size:,} bytes at {start:,} lie beyond its end")
    values: Array = np.frombuffer(data[start : start + size], np.uint8).view(holder(dtype))
    if aligned and not values.flags.aligned:
        values = values.copy()
    return values.reshape(shape)

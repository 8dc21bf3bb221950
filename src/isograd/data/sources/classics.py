"""The layouts of MNIST (IDX files) and CIFAR-10/100 (binary version), by their own headers."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from isograd.data.limits import MAX_RECORD_BYTES
from isograd.data.sources.base import Item, Labels, Problem, Sample, SampleSource, Value, refuse
from isograd.errors import DataError
from isograd.tensors import Array

_ADVICE = "Download it again."
_IDX_DTYPES = {8: "u1", 9: "i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}


def read_idx(path: Path) -> Array:
    """The array of an IDX file, also gzipped.

    Returns the shape and the dtype (big-endian) that its header names. Raises DataError where the
    file is damaged.
    """
    with path.open("rb") as file:
        is_gzip = file.read(2) == b"\x1f\x8b"
    try:
        with gzip.open(path) if is_gzip else path.open("rb") as stream:
            head = stream.read(4)
            axes = head[3] if len(head) == 4 else 0
            if head[:2] != b"\0\0" or head[2] not in _IDX_DTYPES or not 1 <= axes <= 8:
                raise refuse(path, "is no IDX file", _ADVICE)
            shape = struct.unpack(f">{axes}I", stream.read(4 * axes))
            dtype = np.dtype(_IDX_DTYPES[head[2]])
            size = dtype.itemsize
            for extent in shape:
                size *= extent
            if size > 4 * MAX_RECORD_BYTES:
                raise refuse(path, f"announces {size:,} bytes", _ADVICE)
            content = stream.read(size + 1)
    except (OSError, EOFError, struct.error) as error:
        raise refuse(path, f"is damaged ({error})", _ADVICE) from error
    if len(content) != size:
        raise refuse(path, f"holds not the {size:,} bytes that its header announces", _ADVICE)
    return np.frombuffer(content, dtype).reshape(shape).astype(dtype.newbyteorder("="))


def is_idx(path: Path) -> bool:
    """Whether a file begins as an IDX file of some axes does."""
    try:
        with path.open("rb") as file:
            head = file.read(4)
        if head[:2] == b"\x1f\x8b":
            with gzip.open(path) as stream:
                head = stream.read(4)
    except (OSError, EOFError):
        return False
    return len(head) == 4 and head[:2] == b"\0\0" and head[2] in _IDX_DTYPES and 1 <= head[3] <= 8


class Mnist(SampleSource):
    """Images and labels of MNIST's layout: `PREFIX-images-idx3-ubyte` and `PREFIX-labels-…`."""

    format = "MNIST"

    def __init__(self, folder: Path, address: str) -> None:
        super().__init__(address)
        self._pairs = idx_pairs(folder)
        self.labels = Labels("label", 10)

    def samples(self) -> Iterator[Item]:
        for images_path, labels_path in self._pairs:
            split = images_path.name.partition("-images")[0]
            try:
                images = read_idx(images_path)
                labels = read_idx(labels_path)
                if len(images) != len(labels):
                    raise DataError(
                        f"{labels_path}: has {len(labels):,} labels for {len(images):,} images",
                        _ADVICE,
                    )
            except DataError as error:
                yield Problem(images_path.name, error.what.rpartition(": ")[2], split)
                continue
            for number, (image, label) in enumerate(zip(images, labels, strict=True)):
                fields: dict[str, Value] = {"image": image, "label": np.asarray(label, np.int64)}
                yield Sample(f"{split}#{number}", fields, split)


def idx_pairs(folder: Path) -> list[tuple[Path, Path]]:
    """Files of images with their files of labels."""
    found = []
    for images in sorted(folder.glob("*-images*idx*")):
        name = images.name.replace("-images", "-labels").replace("idx3", "idx1")
        labels = images.with_name(name)
        if labels.is_file():
            found.append((images, labels))
    return found


class Cifar(SampleSource):
    """Rows of the binary version: 1 label (CIFAR-10) or 2 (CIFAR-100), then 3 × 32 × 32 bytes."""

    format = "CIFAR"
    _PIXELS = 3 * 32 * 32

    def __init__(self, paths: list[Path], address: str) -> None:
        super().__init__(address)
        self._paths = paths
        sizes = {path.stat().st_size for path in paths}
        remainders = {n: all(size % (self._PIXELS + n) == 0 for size in sizes) for n in (1, 2)}
        # both may divide a size; then the count is a round number in the right one
        self._labels = 2 if remainders[2] and not remainders[1] else 1
        self.format = "CIFAR-100" if self._labels == 2 else "CIFAR-10"
        self.labels = Labels("label", 100 if self._labels == 2 else 10)

    def samples(self) -> Iterator[Item]:
        size = self._PIXELS + self._labels
        for path in self._own(lambda: self._paths):
            split = "test" if path.name.startswith("test") else "train"
            with path.open("rb") as file:
                number = 0
                while row := file.read(size):
                    key = f"{path.name}#{number}"
                    number += 1
                    if len(row) < size:
                        yield Problem(key, "is cut off", split)
                        break
                    yield Sample(key, self._fields(row), split)

    @property
    def is_divisible(self) -> bool:
        return len(self._paths) > 1

    def _fields(self, row: bytes) -> dict[str, Value]:
        pixels = np.frombuffer(row, np.uint8, offset=self._labels).reshape(3, 32, 32)
        fields: dict[str, Value] = {"image": pixels.transpose(1, 2, 0)}
        if self._labels == 2:
            fields["coarse_label"] = np.asarray(row[0], np.int64)
        fields["label"] = np.asarray(row[self._labels - 1], np.int64)
        return fields


def cifar_files(folder: Path) -> list[Path]:
    """The binary files of CIFAR in a folder."""
    names = ["data_batch_*.bin", "test_batch.bin", "train.bin", "test.bin"]
    return [path for name in names for path in sorted(folder.glob(name)) if path.is_file()]


def is_cifar(path: Path) -> bool:
    """Whether a file has a name and a size of CIFAR's binary version."""
    size = path.stat().st_size
    has_name = path.suffix == ".bin" and path.name.startswith(("data_batch", "test", "train"))
    return has_name and any(size % (3072 + labels) == 0 for labels in (1, 2))

"""One .npz: a field of equal shapes as one array, others end to end with offsets and shapes."""

from __future__ import annotations

import io
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from isograd.data.sources.arrays import DATA, OFFSETS, SHAPES, TEXT
from isograd.data.sources.base import Value
from isograd.data.write.base import Fields, Writer, cannot


class _Column:
    """One field on its way: its bytes in a temporary file, the ends and shapes in memory."""

    def __init__(self, name: str, value: Value, folder: Path, number: int) -> None:
        self.name = name
        self.kind = type(value)
        self.dtype = value.dtype if isinstance(value, np.ndarray) else np.dtype(np.uint8)
        self.file: BinaryIO = (folder / str(number)).open("w+b")
        self.ends: list[int] = [0]
        self.shapes: list[tuple[int, ...]] = []

    def add(self, value: Value) -> None:
        if type(value) is not self.kind:
            raise cannot(self.name, "is of another kind in the first sample")
        if isinstance(value, np.ndarray):
            if value.dtype != self.dtype or value.dtype.kind not in "biuf":
                raise cannot(self.name, f"is {value.dtype}, and {self.dtype} in the first sample")
            content, size = np.ascontiguousarray(value).tobytes(), value.size
            self.shapes.append(value.shape)
        else:
            is_text = isinstance(value, str)
            content = value.encode("utf-8", errors="surrogatepass") if is_text else value  # type: ignore[union-attr, assignment]
            size = len(content)
        self.file.write(content)
        self.ends.append(self.ends[-1] + size)

    def write(self, archive: zipfile.ZipFile) -> None:
        self.file.seek(0)
        count = len(self.ends) - 1
        if self.shapes and len(set(self.shapes)) == 1:
            self._stream(archive, self.name, (count, *self.shapes[0]))
            return
        self._stream(archive, self.name + DATA, (self.ends[-1],))
        _small(archive, self.name + OFFSETS, np.asarray(self.ends, np.int64))
        if self.shapes:
            axes = max(map(len, self.shapes))
            table = np.full((count, axes), -1, np.int64)
            for row, shape in zip(table, self.shapes, strict=True):
                row[: len(shape)] = shape
            _small(archive, self.name + SHAPES, table)
        elif self.kind is str:
            _small(archive, self.name + TEXT, np.asarray(1, np.uint8))

    def _stream(self, archive: zipfile.ZipFile, name: str, shape: tuple[int, ...]) -> None:
        with archive.open(f"{name}.npy", "w", force_zip64=True) as target:
            target.write(_header(self.dtype, shape))
            shutil.copyfileobj(self.file, target, 1 << 20)


class NpzWriter(Writer):
    """One .npz file, members stored so that they can be mapped."""

    def __init__(self, path: Path, name: str) -> None:
        super().__init__(path)
        self._folder = tempfile.TemporaryDirectory(dir=path.parent, prefix=".isograd-")
        self._columns: dict[str, _Column] = {}
        self._count = 0

    def write(self, fields: Fields) -> None:
        self.require_same(fields, self._count)
        for number, (name, value) in enumerate(fields.items()):
            if name not in self._columns:
                self._columns[name] = _Column(name, value, Path(self._folder.name), number)
            self._columns[name].add(value)
        self._count += 1

    def finish(self) -> list[Path]:
        with zipfile.ZipFile(self.path, "w", zipfile.ZIP_STORED) as archive:
            for column in self._columns.values():
                column.write(archive)
                column.file.close()
        self._folder.cleanup()
        return []


def _header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    stream = io.BytesIO()
    description = {"descr": dtype.str, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, description)  # type: ignore[no-untyped-call]
    return stream.getvalue()


def _small(archive: zipfile.ZipFile, name: str, values: np.ndarray[Any, Any]) -> None:
    archive.writestr(f"{name}.npy", _header(values.dtype, values.shape) + values.tobytes())

"""Arrays of numpy: one sample per row of .npy or .npz files, or one per file of a folder.

A `.npz` that `isograd data -o` wrote holds, for a field of varying shapes, its elements end to end
beside offsets and shapes (`NAME.data`, `NAME.offsets`, `NAME.shapes`); such fields come back whole.
Pickled arrays are never loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from isograd.checkpoints.numpy_files import NpyFile, NpzFile
from isograd.data.limits import MAX_RECORD_BYTES
from isograd.data.sources.base import Item, Labels, Problem, Sample, SampleSource, Value, refuse
from isograd.errors import CheckpointError
from isograd.tensors import Array

#: The endings under which a field of varying shapes, of bytes or of texts is stored.
DATA, OFFSETS, SHAPES, TEXT = ".data", ".offsets", ".shapes", ".text"
_ADVICE = "Save plain numbers with numpy.save or numpy.savez."


class ArrayRows(SampleSource):
    """Rows along the first axis of arrays of equal length."""

    format = "npz"

    def __init__(self, path: Path, address: str) -> None:
        super().__init__(address)
        self._source = NpyFile(path) if path.suffix == ".npy" else NpzFile(path)
        self.format = path.suffix.lstrip(".") or "npz"
        skipped = getattr(self._source, "skipped", {})
        self._refused = {str(name): str(why) for name, why in skipped.items()}
        self._columns = self._opened(path)

    def _opened(self, path: Path) -> dict[str, tuple[int, Callable[[int], Value]]]:
        names = list(self._source.names())
        for name in names:
            size = self._source.info(name).size_bytes
            if size > MAX_RECORD_BYTES * 64:
                raise refuse(path, f"{name!r} announces {size:,} bytes", _ADVICE)
        found: dict[str, tuple[int, Callable[[int], Value]]] = {}
        stored = set(names)
        for name in names:
            base = name.removesuffix(DATA)
            if name.endswith(DATA) and base + OFFSETS in stored:
                found[base] = self._ragged(path, base, stored)
            elif not name.endswith((OFFSETS, SHAPES, TEXT)):
                values = self._source.raw(name).bits
                if values.ndim:
                    found[name] = (len(values), _rows(values))
                else:
                    self.notes.append(f"{name!r} is one number and no column")
        if len({length for length, _ in found.values()}) != 1:
            lengths = ", ".join(f"{name!r} {length:,}" for name, (length, _) in found.items())
            raise refuse(
                path,
                f"its arrays have different lengths ({lengths})" if found else "holds no array",
                "Give arrays with one row per sample.",
            )
        return found

    def _ragged(
        self, path: Path, name: str, stored: set[str]
    ) -> tuple[int, Callable[[int], Value]]:
        data = self._source.raw(name + DATA).bits
        offsets = self._source.raw(name + OFFSETS).bits.astype(np.int64)
        is_sound = offsets.ndim == 1 and len(offsets) and offsets[0] == 0
        if not is_sound or (np.diff(offsets) < 0).any() or offsets[-1] != data.size:
            raise refuse(path, f"the offsets of {name!r} do not fit its data", "Write it again.")
        shapes = self._source.raw(name + SHAPES).bits if name + SHAPES in stored else None
        is_text = name + TEXT in stored

        def row(number: int) -> Value:
            part = data[offsets[number] : offsets[number + 1]]
            if is_text:
                return part.tobytes().decode("utf-8", errors="replace")
            if shapes is None:
                return part.tobytes()
            return part.reshape([int(extent) for extent in shapes[number] if extent >= 0])

        return len(offsets) - 1, row

    def count(self) -> int | None:
        return next(iter(self._columns.values()))[0]

    def samples(self) -> Iterator[Item]:
        for name, why in self._refused.items():
            yield Problem(name, why)
        for number in range(self.count() or 0):
            try:
                fields = {name: row(number) for name, (_, row) in self._columns.items()}
            except ValueError as error:
                yield Problem(f"#{number}", f"has a shape that does not fit ({error})")
                continue
            yield Sample(f"#{number}", fields)


def _rows(values: Array) -> Callable[[int], Value]:
    return lambda number: np.asarray(values[number])


class ArrayFolder(SampleSource):
    """A folder of .npy or .npz files: each file is one sample."""

    format = "npy folder"

    def __init__(self, path: Path, address: str) -> None:
        super().__init__(address)
        self._root = path
        self._files = sorted(p for p in path.rglob("*") if p.suffix in (".npy", ".npz"))
        tops = sorted({p.relative_to(path).parts[0] for p in self._files if p.parent != path})
        self._classes = {name: number for number, name in enumerate(tops)}
        if tops:
            self.labels = Labels("label", len(tops), tuple(tops))

    def count(self) -> int | None:
        return len(self._files)

    @property
    def is_divisible(self) -> bool:
        return True

    def window(self, start: int, size: int) -> Iterator[Item]:
        return self._of_files(start, start + size).samples()

    def samples(self) -> Iterator[Item]:
        root = self._root.resolve()
        for path in self._own(lambda: self._files):
            relative = path.relative_to(self._root)
            key = str(relative)
            if path.is_symlink() and not path.resolve().is_relative_to(root):
                yield Problem(key, "is a link that leads out of the folder")
                continue
            try:
                source = NpyFile(path) if path.suffix == ".npy" else NpzFile(path)
                names = list(source.names())
                if sum(source.info(name).size_bytes for name in names) > MAX_RECORD_BYTES:
                    yield Problem(key, "announces more bytes than a sample may have")
                    continue
                fields: dict[str, Value] = {
                    "array" if path.suffix == ".npy" else name: source.raw(name).bits
                    for name in names
                }
            except CheckpointError as error:
                yield Problem(key, error.what.partition(": ")[2] or error.what)
                continue
            if len(relative.parts) > 1:
                fields["label"] = np.asarray(self._classes[relative.parts[0]], np.int64)
            yield Sample(key, fields)

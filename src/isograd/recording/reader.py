"""Reads recordings: tables at once, tensors one at a time, on a machine without any framework.

Nothing in a recording is trusted: names are never used as paths, numbers are checked against the
tables that they point into, and every refusal names the file.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from isograd.errors import RecordingError
from isograd.frameworks.base import Structure
from isograd.recording import format as layout
from isograd.recording.statistics import Statistics
from isograd.recording.tensor_file import TensorFile
from isograd.recording.writer import value_key
from isograd.tensors import TensorValue

_STEP_NAME = re.compile(r"[0-9]{6,18}")
_FILE_NAME = re.compile(r"tensors-[0-9]{3,9}\.safetensors")
_ADVICE = "The file is damaged or no recording of isograd's; record it again."
_MALFORMED = (ValueError, TypeError, KeyError, AttributeError, OverflowError)


class RecordedStep:
    """One complete step of a recording."""

    def __init__(self, folder: Path) -> None:
        """Read and check the step's tables.

        Raises RecordingError where they are malformed.
        """
        self.folder = folder
        path = folder / layout.STEP
        data = layout.read_json(path)
        try:
            self.info = layout.step_from_json(data)
        except _MALFORMED as error:
            raise RecordingError(f"{path}: is malformed ({error})", _ADVICE) from error
        for value in self.info.values:
            if value.file is not None and not _FILE_NAME.fullmatch(str(value.file)):
                raise RecordingError(f"{path}: names the file {value.file!r}", _ADVICE)
        self._files: dict[str, TensorFile] = {}

    @property
    def number(self) -> int:
        """The step's number, from 0."""
        return self.info.number

    @property
    def calls(self) -> tuple[layout.Call, ...]:
        """Calls of modules and operations, in the order of their starts."""
        return self.info.calls

    @property
    def loss(self) -> float | None:
        """The loss that `step(loss)` was given."""
        return self.info.loss

    @functools.cached_property
    def _rows(self) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
        path = self.folder / layout.STATISTICS
        values = self._open(layout.STATISTICS).tensor("statistics").values
        if values.shape != (len(self.info.values), 7) or values.dtype != np.float64:
            raise RecordingError(f"{path}: does not fit the step's values", _ADVICE)
        return values

    def statistics(self, value: int) -> Statistics | None:
        """Statistics of a value, or None where it could not be read when it was recorded."""
        row = self._rows[value]
        if self.info.values[value].missing:
            return None
        return Statistics.from_row(tuple(float(cell) for cell in row))

    def tensor(self, value: int) -> TensorValue:
        """Elements of a value; read from the file when asked for.

        Raises RecordingError where only statistics were recorded, or the file is damaged.

        returns: the recorded shape and dtype; float32 values for bfloat16.
        """
        info = self.info.values[value]
        if info.file is None:
            raise RecordingError(
                f"{self.folder}: the elements of value {value} were not recorded "
                f"({info.missing or 'statistics only'})",
                'Record with tensors="full".',
            )
        found = self._open(info.file).tensor(value_key(value))
        values = found.values
        if info.dtype == "complex128" and found.dtype == "float64":
            values = np.ascontiguousarray(values).view(np.complex128).reshape(values.shape[:-1])
        if values.shape != info.shape:
            raise RecordingError(
                f"{self.folder / info.file}: value {value} has the shape {values.shape}, "
                f"and {layout.STEP} says {info.shape}",
                _ADVICE,
            )
        return TensorValue(values, info.dtype)

    def named(self, role: str) -> dict[str, int]:
        """Values of the parameters and buffers in a role: before, gradient, after, loss."""
        return dict(self.info.named.get(role, {}))

    def gradient_of(self, value: int) -> int | None:
        """The gradient of the loss with respect to a value; the last one if there were several."""
        return self._gradients.get(value)

    @functools.cached_property
    def _gradients(self) -> dict[int, int]:
        return dict(self.info.gradients)

    def _open(self, name: str) -> TensorFile:
        if name not in self._files:
            path = self.folder / name
            if path.is_symlink():
                raise RecordingError(f"{path}: is a link", "Copy the recording with its files.")
            opened = TensorFile(path)
            size = path.stat().st_size
            if size != self.info.files.get(name):
                raise RecordingError(
                    f"{path}: has {size:,} bytes, and {layout.STEP} says "
                    f"{self.info.files.get(name)}",
                    _ADVICE,
                )
            self._files[name] = opened
        return self._files[name]


class Recording:
    """A recording on disk; holds no tensors in memory."""

    def __init__(self, path: str | Path) -> None:
        """Open a recording.

        Raises RecordingError where there is none, or its schema is not known.
        """
        self.path = Path(path)
        manifest = self.path / layout.MANIFEST
        data = layout.read_json(manifest)
        try:
            self.manifest = layout.manifest_from_json(data)
        except _MALFORMED as error:
            raise RecordingError(f"{manifest}: is malformed ({error})", _ADVICE) from error

    @functools.cached_property
    def structure(self) -> Structure:
        """The network's modules, parameters and buffers."""
        path = self.path / layout.STRUCTURE
        data = layout.read_json(path)
        try:
            return layout.structure_from_json(data)
        except _MALFORMED as error:
            raise RecordingError(f"{path}: is malformed ({error})", _ADVICE) from error

    @property
    def step_numbers(self) -> tuple[int, ...]:
        """Numbers of the complete steps, ascending."""
        folder = self.path / layout.STEPS
        try:
            names = [entry.name for entry in folder.iterdir()]
        except OSError as error:
            raise RecordingError(f"{folder}: cannot be read ({error})", _ADVICE) from error
        return tuple(sorted(int(name) for name in names if _STEP_NAME.fullmatch(name)))

    def step(self, number: int) -> RecordedStep:
        """Read one step's tables.

        Raises RecordingError where the step is not there or is damaged.
        """
        if number not in self.step_numbers:
            raise RecordingError(
                f"{self.path}: has no step {number}",
                f"It has these: {', '.join(map(str, self.step_numbers)) or 'none'}.",
            )
        return RecordedStep(self.path / layout.STEPS / f"{number:06d}")

    def __iter__(self) -> Iterator[RecordedStep]:
        return (self.step(number) for number in self.step_numbers)

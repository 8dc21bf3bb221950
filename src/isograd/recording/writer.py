"""Writes recordings: steps are gathered in memory and written by one thread behind a short queue.

A step is written into a hidden folder and renamed when it is complete, so a reader never sees half
of one.  The memory in flight is bounded: four buffers of 32 MiB, for which recording waits when
the disk is slower.
"""

from __future__ import annotations

import dataclasses
import json
import os
import queue
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from isograd.errors import RecordingError
from isograd.frameworks.base import Structure
from isograd.recording import format as layout
from isograd.recording.statistics import MISSING_ROW, Row, measure
from isograd.recording.tensor_file import (
    CODES,
    Entry,
    item_size_bytes,
    page_buffer,
    write_tensor_file,
    write_tensor_file_past_cache,
)
from isograd.tensors import Array, TensorValue, bfloat16_to_bits

CHUNK_BYTES = 32 * 1024 * 1024
CHUNKS = 4

Task = Callable[[], None]

_RESERVED = layout.ValueInfo("", (), None, "the step ended before it was read")


def value_key(number: int) -> str:
    """Name of a value in its tensor file."""
    return f"value_{number:06d}"


@dataclass
class _Chunk:
    """Tensors on their way into one file."""

    file: str
    buffer: NDArray[np.uint8]
    entries: list[Entry] = field(default_factory=list)
    used: int = 0


class StepBuilder:
    """A step that is being recorded; `RecordingWriter.begin` makes one."""

    def __init__(self, writer: RecordingWriter, number: int, folder: Path) -> None:
        self.number = number
        self.loss: float | None = None
        self.folder = folder
        self.files: dict[str, int] = {}
        self.rows: list[Row] = []
        self._writer = writer
        self._started_s = time.perf_counter()
        self._chunk: _Chunk | None = None
        self._chunks = 0
        self._values: list[layout.ValueInfo] = []
        self._calls: list[layout.Call] = []
        self._occurrences: dict[tuple[str, str], int] = {}
        self._gradients: list[tuple[int, int]] = []
        self._named: dict[str, dict[str, int]] = {}

    @property
    def call_count(self) -> int:
        """Calls so far."""
        return len(self._calls)

    def add(self, values: Array, dtype: str) -> int:
        """Add a tensor and return its number; arguments as in `fill`.

        values: any shape and dtype.
        """
        number = self.reserve()
        self.fill(number, values, dtype)
        return number

    def reserve(self) -> int:
        """Number a tensor that `fill` or `fill_missing` will add before the step is completed."""
        self._values.append(_RESERVED)
        self.rows.append(MISSING_ROW)
        return len(self._values) - 1

    def fill(self, number: int, values: Array, dtype: str) -> None:
        """Add a numbered tensor.

        values: any shape and layout, of that dtype, or for "bfloat16" its bits as uint16; copied if
        kept.
        """
        self.rows[number] = measure(values, dtype == "bfloat16")
        file = self._keep(number, values, dtype) if self._writer.is_full else None
        self._values[number] = layout.ValueInfo(dtype, values.shape, file)

    def fill_missing(self, number: int, dtype: str, shape: tuple[int, ...], why: str) -> None:
        """Say of a numbered tensor why it could not be read."""
        self._values[number] = layout.ValueInfo(dtype, shape, None, why)

    def add_value(self, value: TensorValue) -> int:
        """Add a tensor in the form that crosses isograd's protocols, and return its number.

        value: any shape and dtype.
        """
        if value.dtype == "bfloat16":
            return self.add(bfloat16_to_bits(value.values), "bfloat16")
        return self.add(value.values, value.dtype)

    def add_missing(self, dtype: str, shape: tuple[int, ...], why: str) -> int:
        """Add a tensor that could not be read, with the reason, and return its number."""
        number = self.reserve()
        self.fill_missing(number, dtype, shape, why)
        return number

    def row(self, number: int) -> Row:
        """The statistics of a value of this step."""
        return self.rows[number]

    def begin_call(
        self, kind: str, name: str, parent: int | None, inputs: tuple[layout.Slot, ...]
    ) -> int:
        """Add a call and return its index; `end_call` adds its outputs."""
        occurrence = self._occurrences.get((kind, name), 0)
        self._occurrences[kind, name] = occurrence + 1
        self._calls.append(layout.Call(kind, name, occurrence, parent, inputs, ()))
        return len(self._calls) - 1

    def end_call(self, index: int, outputs: tuple[layout.Slot, ...]) -> None:
        """Give a call its outputs."""
        begun = self._calls[index]
        self._calls[index] = layout.Call(
            begun.kind, begun.name, begun.occurrence, begun.parent, begun.inputs, outputs
        )

    def set_gradient(self, value: int, gradient: int) -> None:
        """Say that one value is the gradient of the loss with respect to another."""
        self._gradients.append((value, gradient))

    def set_named(self, role: str, name: str, value: int) -> None:
        """Give a parameter's or buffer's value in a role of `format.ROLES`."""
        self._named.setdefault(role, {})[name] = value

    def info(self) -> layout.StepInfo:
        """The step's tables as they stand."""
        return layout.StepInfo(
            number=self.number,
            loss=self.loss,
            elapsed_s=time.perf_counter() - self._started_s,
            calls=tuple(self._calls),
            values=tuple(self._values),
            gradients=tuple(self._gradients),
            named=self._named,
            files=self.files,
        )

    def flush(self) -> None:
        """Hand the last tensors to the writer."""
        if self._chunk is not None:
            self._writer.write_chunk(self, self._chunk)
            self._chunk = None

    def _keep(self, number: int, values: Array, dtype: str) -> str:
        """Copy a tensor into the current chunk and return the chunk's file name."""
        if dtype == "complex128":  # safetensors has no name for it
            values = np.ascontiguousarray(values).reshape(*values.shape, 1).view(np.float64)
            dtype = "float64"
        elif dtype not in CODES:
            dtype = str(values.dtype)
        size_bytes = values.size * item_size_bytes(dtype)
        chunk = self._chunk
        if chunk is None or chunk.used + size_bytes > len(chunk.buffer):
            self.flush()
            name = f"tensors-{self._chunks:03d}.safetensors"
            self._chunks += 1
            chunk = self._chunk = _Chunk(name, self._writer.take_buffer(size_bytes))
        end = chunk.used + size_bytes
        if size_bytes:
            target: Array = np.ndarray(values.shape, values.dtype, chunk.buffer, offset=chunk.used)
            np.copyto(target, values)
        key = value_key(number)
        chunk.entries.append(Entry(key, dtype, values.shape, chunk.used, end))
        chunk.used = end
        return chunk.file


class RecordingWriter:
    """Writes one recording; not for use from several threads at once."""

    def __init__(self, path: Path, manifest: layout.Manifest, structure: Structure) -> None:
        """Make the folder and write what does not change.

        Raises RecordingError if the folder exists and is not empty, or cannot be written.
        """
        self.path = path
        self.manifest = manifest
        self.is_full = manifest.tensors == "full"
        self._failure: BaseException | None = None
        self._tasks: queue.Queue[Task | None] = queue.Queue(maxsize=16)
        self._buffers: queue.SimpleQueue[NDArray[np.uint8]] = queue.SimpleQueue()
        self._buffers_made = 0
        try:
            if path.exists() and (not path.is_dir() or any(path.iterdir())):
                raise RecordingError(
                    f"{path}: exists and is not empty", "Give a folder that does not exist yet."
                )
            (path / layout.STEPS).mkdir(parents=True)
            _write_json(path / layout.STRUCTURE, layout.structure_to_json(structure))
            _write_json(path / layout.MANIFEST, dataclasses.asdict(manifest))
        except OSError as error:
            raise _refusal(path, error) from error
        self._thread = threading.Thread(target=self._run, name="isograd-writer", daemon=True)
        self._thread.start()

    def begin(self, number: int) -> StepBuilder:
        """Begin a step.

        Raises RecordingError if writing an earlier one has failed.
        """
        self._check()
        folder = self.path / layout.STEPS / f".{number:06d}.partial"
        return StepBuilder(self, number, folder)

    def complete(self, step: StepBuilder) -> None:
        """Queue a step's last tensors and its tables; then it becomes visible to readers."""
        step.flush()
        info, rows = step.info(), step.rows
        self._put(lambda: _finish_step(step.folder, info, rows))

    def abandon(self, step: StepBuilder) -> None:
        """Drop a step that did not end."""
        step.flush()
        self._put(lambda: shutil.rmtree(step.folder, ignore_errors=True))

    def close(self, changes: Mapping[str, object]) -> None:
        """Write what is queued and the manifest with these changes, and stop the thread.

        Raises RecordingError if anything could not be written.
        """
        self._tasks.put(None)
        self._thread.join()
        if self._failure is not None:
            changes = {**changes, "status": "failed", "reason": str(self._failure)}
        self.manifest = dataclasses.replace(self.manifest, **changes)  # type: ignore[arg-type]
        try:
            _write_json(self.path / layout.MANIFEST, dataclasses.asdict(self.manifest))
        except OSError as error:
            raise _refusal(self.path, error) from error
        self._check()

    def take_buffer(self, size_bytes: int) -> NDArray[np.uint8]:
        """Take a buffer of at least this size, waiting for the disk where all are in use.

        returns: of shape (bytes,), uint8.
        """
        if size_bytes > CHUNK_BYTES:
            return page_buffer(size_bytes)
        if self._buffers_made < CHUNKS and self._buffers.empty():
            self._buffers_made += 1
            return page_buffer(CHUNK_BYTES)
        return self._buffers.get()

    def write_chunk(self, step: StepBuilder, chunk: _Chunk) -> None:
        """Queue a chunk."""
        step.files[chunk.file] = 0
        self._put(lambda: self._write_chunk(step, chunk))

    def _write_chunk(self, step: StepBuilder, chunk: _Chunk) -> None:
        try:
            if self._failure is None:
                step.folder.mkdir(exist_ok=True)
                step.files[chunk.file] = write_tensor_file_past_cache(
                    step.folder / chunk.file, chunk.entries, chunk.buffer, chunk.used
                )
        finally:
            if len(chunk.buffer) == CHUNK_BYTES:
                self._buffers.put(chunk.buffer)

    def _put(self, task: Task) -> None:
        self._tasks.put(task)

    def _check(self) -> None:
        if self._failure is not None:
            raise _refusal(self.path, self._failure) from self._failure

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            self._try(task)

    def _try(self, task: Task) -> None:
        try:
            task()
        except BaseException as error:  # reported at the next step, and on exit
            self._failure = self._failure or error


def _finish_step(folder: Path, info: layout.StepInfo, rows: list[Row]) -> None:
    folder.mkdir(exist_ok=True)
    table = np.array(rows, np.float64).reshape(len(rows), 7)
    entry = Entry("statistics", "float64", table.shape, 0, table.nbytes)
    with (folder / layout.STATISTICS).open("wb") as file:
        size = write_tensor_file(file, [entry], table.reshape(-1).view(np.uint8).data)
    info.files[layout.STATISTICS] = size
    _write_json(folder / layout.STEP, layout.step_to_json(info))
    folder.rename(folder.with_name(f"{info.number:06d}"))


def _write_json(path: Path, data: object) -> None:
    partial = path.with_name(f".{path.name}.partial")
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    partial.write_text(text, encoding="ascii")
    os.replace(partial, path)


def _refusal(path: Path, error: BaseException) -> RecordingError:
    return RecordingError(
        f"{path}: the recording could not be written ({error})",
        "Give a folder on a disk with room in which you may write.",
    )

"""Tables of named numbers per step: appended row by row, sealed column by column.

A table is a folder of parts.  The part that is being written holds rows of fixed width, each with
its checksum, so that a crash costs at most the row that was being written.  A part that is full, or
whose columns no longer suffice, is sealed: written again column by column, so that one series is
one contiguous piece of a file.  Readers map the files; opening a table reads the parts' headers.

part-000000.columns    line of JSON, then step int64, time float64, and each column in turn
part-000001.rows       line of JSON, then rows of (step int64, time float64, values, crc32)

A column that a row does not give holds `missing`: a NaN with bits of its own, so that a loss that
is NaN and a loss that was not measured stay two things.
"""

from __future__ import annotations

import json
import os
import re
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

from isograd.errors import RunError
from isograd.files import write_bytes

Floats = NDArray[np.floating[Any]]
DtypeName = Literal["float32", "float64"]

#: Bits of the NaN that means a number that was not measured.
_MISSING_BITS: dict[str, np.unsignedinteger[Any]] = {
    "float32": np.uint32(0x7FC01A5A),
    "float64": np.uint64(0x7FF8000000001A5A),
}
_PART = re.compile(r"part-([0-9]{6})\.(rows|columns)")
_SEALED_BYTES = 16 * 1024 * 1024
_FEWEST_ROWS, _MOST_ROWS = 64, 16384
_LONGEST_HEADER = 64 * 1024 * 1024
_FIRST_LOOK = 4096
_ADVICE = "The file is damaged; the other files of the run can still be read without it."


def missing(dtype: str) -> np.floating[Any]:
    """The NaN that means a number that was not measured."""
    found: np.floating[Any] = _MISSING_BITS[dtype].view(dtype)
    return found


def is_missing(values: Floats) -> NDArray[np.bool_]:
    """Which of the values were not measured.

    values: any shape, float32 or float64.
    returns: the same shape, bool.
    """
    bits = _MISSING_BITS[values.dtype.name]
    found: NDArray[np.bool_] = np.ascontiguousarray(values).view(bits.dtype) == bits
    return found


def _row_dtype(columns: int, dtype: str) -> np.dtype[np.void]:
    return np.dtype(
        [("step", "<i8"), ("time", "<f8"), ("values", dtype, (columns,)), ("check", "<u4")]
    )


class TableWriter:
    """Appends rows to a table; a row is with the operating system when `append` returns."""

    def __init__(self, folder: Path, dtype: DtypeName) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._dtype = dtype
        self._number = 0
        self._columns: dict[str, int] = {}
        self._stream: BinaryIO | None = None
        self._start = 0
        self._rows = 0

    def append(self, step: int, values: Mapping[str, float], time_s: float | None = None) -> None:
        """Append one row; raises OSError where the disk does not take it, and takes it back.

        time_s: seconds since the epoch; now by default.
        """
        new = [name for name in values if name not in self._columns]
        if new:
            self._seal()
            for name in new:
                self._columns[name] = len(self._columns)
        if self._stream is None:
            self._open()
        self._write(self._row(step, values, time.time() if time_s is None else time_s))
        if self._rows >= self._rows_per_part():
            self._seal()

    def close(self) -> None:
        """Seal what is left."""
        self._seal()

    def abandon(self) -> None:
        """Close the file as it is, after an error; what was appended stays readable."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _row(self, step: int, values: Mapping[str, float], time_s: float) -> bytes:
        row = np.zeros(1, _row_dtype(len(self._columns), self._dtype))
        cells = row["values"][0]
        cells[:] = missing(self._dtype)
        with np.errstate(over="ignore"):
            for name, value in values.items():
                cells[self._columns[name]] = value
        row["step"], row["time"] = step, time_s
        row["check"] = zlib.crc32(row.tobytes()[:-4])
        return row.tobytes()

    def _rows_per_part(self) -> int:
        width = _row_dtype(len(self._columns), self._dtype).itemsize
        return min(_MOST_ROWS, max(_FEWEST_ROWS, _SEALED_BYTES // width))

    def _open(self) -> None:
        header = {"columns": list(self._columns), "dtype": self._dtype}
        # Unbuffered: a row has left this process when `write` returns.
        self._stream = self._path("rows").open("xb", buffering=0)
        self._start = self._rows = 0
        self._write(_header(header))
        self._start, self._rows = self._stream.tell(), 0

    def _write(self, content: bytes) -> None:
        assert self._stream is not None
        at = self._stream.tell()
        try:
            written = self._stream.write(content)
            while written < len(content):
                written += self._stream.write(content[written:])
        except OSError:
            self._stream.truncate(at)
            raise
        self._rows += 1

    def _seal(self) -> None:
        if self._stream is None:
            return
        self.abandon()
        source = self._path("rows")
        part = _read_rows(source)
        header = {"columns": part.columns, "dtype": self._dtype, "rows": len(part.step)}
        values = np.ascontiguousarray(part.values.T)
        content = _header(header) + part.step.tobytes() + part.time.tobytes() + values.tobytes()
        write_bytes(self._path("columns"), content)
        source.unlink()
        self._number += 1

    def _path(self, kind: str) -> Path:
        return self._folder / f"part-{self._number:06d}.{kind}"


def _header(content: Mapping[str, object]) -> bytes:
    """A line of JSON, padded so that what follows is aligned to eight bytes."""
    line = json.dumps(content, separators=(",", ":")).encode()
    return line + b" " * (-(len(line) + 1) % 8) + b"\n"


@dataclass(frozen=True)
class _Part:
    """Rows of one file, mapped.

    step: int64 of shape (rows,); time: float64 of shape (rows,), seconds since the epoch; values:
    of shape (rows, columns), a view that is contiguous along the axis in which it was written.
    """

    columns: list[str]
    step: NDArray[np.int64]
    time: NDArray[np.float64]
    values: Floats


class Table:
    """A table as it stood when it was opened."""

    def __init__(self, folder: Path) -> None:
        """Map all parts; RunError where one is damaged. A missing folder is an empty table."""
        self._parts = [part for path in _part_files(folder) if len((part := _read(path)).step)]
        self._places = [{name: at for at, name in enumerate(p.columns)} for p in self._parts]

    @property
    def columns(self) -> tuple[str, ...]:
        """All names, in the order in which they occurred first."""
        return tuple(dict.fromkeys(name for part in self._parts for name in part.columns))

    @property
    def row_count(self) -> int:
        """Rows in all parts."""
        return sum(len(part.step) for part in self._parts)

    @property
    def steps(self) -> NDArray[np.int64]:
        """The step of every row, int64 of shape (rows,)."""
        return np.concatenate([part.step for part in self._parts] or [np.empty(0, np.int64)])

    @property
    def times(self) -> NDArray[np.float64]:
        """When each row was appended, float64 of shape (rows,), seconds since the epoch."""
        return np.concatenate([part.time for part in self._parts] or [np.empty(0)])

    def series(self, name: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Steps and values of one column where it was measured; empty where there is none such.

        returns: the steps, shape (rows,) int64, and the values, shape (rows,) float64.
        """
        steps, values = [np.empty(0, np.int64)], [np.empty(0, np.float64)]
        for part, places in zip(self._parts, self._places, strict=True):
            if name in places:
                column = np.array(part.values[:, places[name]])
                kept = ~is_missing(column)
                steps.append(part.step[kept])
                values.append(column[kept].astype(np.float64))
        return np.concatenate(steps), np.concatenate(values)

    def matrix(
        self, names: Sequence[str], most_rows: int | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Steps (rows,) and values (rows, names) as float64; NaN where nothing was measured.

        most_rows: at most so many rows, taken at even distances; the first and the last are in it.
        """
        count = self.row_count
        chosen = np.arange(count)
        if most_rows is not None and count > most_rows:
            chosen = np.unique(np.linspace(0, count - 1, most_rows).round().astype(np.int64))
        found = np.full((len(chosen), len(names)), np.nan)
        first = 0
        for part, places in zip(self._parts, self._places, strict=True):
            rows = np.flatnonzero((chosen >= first) & (chosen < first + len(part.step)))
            for at, name in enumerate(names):
                if name in places:
                    found[rows, at] = part.values[chosen[rows] - first, places[name]]
            first += len(part.step)
        return self.steps[chosen], found

    def last_row(self) -> tuple[int, dict[str, float]] | None:
        """Step and measured values of the last row, or None where there is none."""
        if not self._parts:
            return None
        part = self._parts[-1]
        values = np.array(part.values[-1])
        kept = np.flatnonzero(~is_missing(values))
        return int(part.step[-1]), {part.columns[at]: float(values[at]) for at in kept}


def _part_files(folder: Path) -> list[Path]:
    """One file per part, the sealed one where a crash has left both."""
    found: dict[int, Path] = {}
    try:
        entries = sorted(folder.iterdir()) if folder.is_dir() else []
    except OSError as error:
        raise RunError(f"{folder}: cannot be listed ({error})", _ADVICE) from error
    for path in entries:
        match = _PART.fullmatch(path.name)
        if match and (match[2] == "columns" or int(match[1]) not in found):
            found[int(match[1])] = path
    return [found[number] for number in sorted(found)]


def _read(path: Path) -> _Part:
    try:
        return _read_rows(path) if path.suffix == ".rows" else _read_columns(path)
    except FileNotFoundError:
        # Sealed while this reader listed the folder.
        return _read_columns(path.with_suffix(".columns"))


def _header_length(data: NDArray[np.uint8]) -> int:
    """Where the first line ends; 0 where none does.  Only so much of a file is read."""
    length = _FIRST_LOOK
    while True:
        end = bytes(data[:length]).find(b"\n") + 1
        if end or length >= min(len(data), _LONGEST_HEADER):
            return end
        length *= 8


def _read_header(path: Path, data: NDArray[np.uint8]) -> tuple[list[str], str, int, int]:
    """Columns, dtype, announced rows (0 where none) and where the numbers begin."""
    end = _header_length(data)
    try:
        header = json.loads(bytes(data[:end]))
        columns, dtype = [str(name) for name in header["columns"]], header["dtype"]
        rows = int(header.get("rows", 0))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise RunError(f"{path}: has no readable header", _ADVICE) from error
    if dtype not in _MISSING_BITS or rows < 0 or not end:
        raise RunError(f"{path}: has no readable header", _ADVICE)
    return columns, dtype, rows, end


def _mapped(path: Path) -> NDArray[np.uint8]:
    try:
        if path.is_symlink():
            raise RunError(f"{path}: is a link, which a run's files never are", _ADVICE)
        if os.path.getsize(path) == 0:
            return np.empty(0, np.uint8)
        return np.memmap(path, np.uint8, "r")
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise RunError(f"{path}: cannot be read ({error})", _ADVICE) from error


def _read_rows(path: Path) -> _Part:
    """The whole rows of a part that is being written; what a crash cut off is left out."""
    data = _mapped(path)
    if not _header_length(data):
        return _Part([], np.empty(0, np.int64), np.empty(0), np.empty((0, 0)))
    columns, dtype, _, start = _read_header(path, data)
    layout = _row_dtype(len(columns), dtype)
    count = (len(data) - start) // layout.itemsize
    rows = np.array(data[start : start + count * layout.itemsize]).view(layout)
    while count and zlib.crc32(rows[count - 1 : count].tobytes()[:-4]) != rows["check"][count - 1]:
        count -= 1
    rows = rows[:count]
    return _Part(columns, rows["step"].copy(), rows["time"].copy(), rows["values"])


def _read_columns(path: Path) -> _Part:
    data = _mapped(path)
    columns, dtype, rows, start = _read_header(path, data)
    size = rows * (16 + len(columns) * np.dtype(dtype).itemsize)
    if len(data) - start != size:
        raise RunError(
            f"{path}: holds {len(data) - start:,} bytes of numbers where its header "
            f"announces {size:,}",
            _ADVICE,
        )
    times, values = start + 8 * rows, start + 16 * rows
    return _Part(
        columns,
        data[start:times].view(np.int64),
        data[times:values].view(np.float64),
        data[values:].view(dtype).reshape(len(columns), rows).T,
    )

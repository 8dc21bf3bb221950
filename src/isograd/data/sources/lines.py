"""CSV and JSON lines: a sample per line, read as a stream."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from isograd.data.limits import MAX_DEPTH, MAX_FIELDS, MAX_HEADER_BYTES
from isograd.data.sources.base import Item, Problem, Sample, SampleSource, Value, refuse, scalar

_SNIFFED_CHARACTERS = 1 << 16


def _open(path: Path) -> TextIO:
    with path.open("rb") as file:
        is_gzip = file.read(2) == b"\x1f\x8b"
    if is_gzip:
        return io.TextIOWrapper(gzip.open(path), "utf-8-sig", errors="replace", newline="")
    return path.open(encoding="utf-8-sig", errors="replace", newline="")


def _lines(stream: TextIO) -> Iterator[str]:
    """Lines of bounded length; ValueError for a longer one."""
    while True:
        line = stream.readline(MAX_HEADER_BYTES)
        if not line:
            return
        if len(line) == MAX_HEADER_BYTES and not line.endswith("\n"):
            raise ValueError(f"a line is longer than {MAX_HEADER_BYTES:,} characters")
        yield line


class CsvFile(SampleSource):
    """A table: numbers where a cell is one, else texts; the first line names the columns."""

    format = "CSV"

    def __init__(self, path: Path, address: str) -> None:
        super().__init__(address)
        self._path = path
        try:
            with _open(path) as stream:
                head = stream.read(_SNIFFED_CHARACTERS)
        except (OSError, EOFError) as error:
            raise refuse(path, f"cannot be read ({error})", "Copy it again.") from error
        self._delimiter = (
            "\t" if path.name.removesuffix(".gz").endswith(".tsv") else _delimiter(head)
        )
        first = next(csv.reader(io.StringIO(head), delimiter=self._delimiter), [])
        if not first or len(first) > MAX_FIELDS:
            raise refuse(path, f"its first line has {len(first):,} columns", "Name them there.")
        self._has_names = not all(_number(cell) is not None for cell in first)
        self._names = first if self._has_names else [f"column{n}" for n in range(len(first))]
        if len(set(self._names)) < len(self._names):
            raise refuse(path, "two columns have one name", "Rename one of them.")

    def samples(self) -> Iterator[Item]:
        number = 0
        with _open(self._path) as stream:
            try:
                for row in csv.reader(_lines(stream), delimiter=self._delimiter):
                    if number == 0 and self._has_names:
                        number = 1
                        continue
                    number += 1
                    if row:
                        yield self._sample(row, f"line {number}")
            except (csv.Error, ValueError, OSError, EOFError) as error:
                yield Problem(f"line {number + 1}", f"cannot be read ({error}); the rest is lost")

    def _sample(self, row: list[str], key: str) -> Item:
        if len(row) != len(self._names):
            return Problem(key, f"has {len(row):,} columns where {len(self._names):,} are named")
        return Sample(key, {n: _cell(text) for n, text in zip(self._names, row, strict=True)})


def _delimiter(head: str) -> str:
    first = head.partition("\n")[0]
    return max(",;\t|", key=first.count)


def _cell(text: str) -> Value:
    stripped = text.strip()
    if not stripped:
        return np.asarray(np.nan)
    number = _number(stripped)
    return text if number is None else scalar(number)


def _number(text: str) -> int | float | None:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return None


class JsonLines(SampleSource):
    """An object per line: numbers and lists of numbers as arrays, texts, nested ones as A.B."""

    format = "JSON lines"

    def __init__(self, path: Path, address: str) -> None:
        super().__init__(address)
        self._path = path

    def samples(self) -> Iterator[Item]:
        number = 0
        with _open(self._path) as stream:
            try:
                for line in _lines(stream):
                    number += 1
                    if line.strip():
                        yield _object(line, f"line {number}")
            except (ValueError, OSError, EOFError) as error:
                yield Problem(f"line {number + 1}", f"cannot be read ({error}); the rest is lost")


def _object(line: str, key: str) -> Item:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        return Problem(key, f"is no JSON ({str(error)[:100]})")
    fields: dict[str, Value] = {}
    try:
        flatten(found if isinstance(found, dict) else {"value": found}, "", fields)
    except ValueError as error:
        return Problem(key, str(error))
    return Sample(key, fields)


def flatten(found: dict[str, Any], prefix: str, fields: dict[str, Value], depth: int = 0) -> None:
    """Add the values of an object of plain Python values; ValueError beyond the limits."""
    if depth > MAX_DEPTH:
        raise ValueError(f"nests deeper than {MAX_DEPTH} levels")
    for name, value in found.items():
        if isinstance(value, dict):
            flatten(value, f"{prefix}{name}.", fields, depth + 1)
        else:
            fields[prefix + str(name)] = plain(value)
        if len(fields) > MAX_FIELDS:
            raise ValueError(f"has more than {MAX_FIELDS:,} fields")


def plain(value: Any) -> Value:
    """A plain Python value as a field: a list of numbers as an array, other lists as JSON."""
    if value is None:
        return np.asarray(np.nan)
    if isinstance(value, (str, bytes)):
        return value
    if isinstance(value, (bool, int, float)):
        return scalar(value)
    if isinstance(value, list):
        try:
            array = np.asarray(value)
        except ValueError:
            array = np.asarray(None)
        if array.dtype.kind in "biuf":
            return array
    return json.dumps(value, ensure_ascii=False, default=str)

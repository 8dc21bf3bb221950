"""Parquet files and folders of them, by pyarrow: a batch of rows at a time."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from isograd.data.sources.base import Item, Problem, Sample, SampleSource, Value, refuse
from isograd.data.sources.lines import flatten, plain
from isograd.errors import DataError

MAGIC = b"PAR1"
_BATCH_ROWS = 1024
#: Key of the metadata in which isograd's writer keeps dtypes and shapes of fields.
METADATA = b"isograd.fields"


def pyarrow() -> Any:
    """pyarrow with its parquet part; DataError where it is not installed."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise DataError(
            "Parquet is read by pyarrow, which is not installed",
            'Install it: pip install "isograd[data]".',
        ) from error
    return pyarrow


class ParquetFiles(SampleSource):
    """Rows of one file or several, in the order of their names."""

    format = "Parquet"

    def __init__(self, paths: list[Path], address: str) -> None:
        super().__init__(address)
        self._paths = paths
        self._arrow = pyarrow()
        self._rows = [self._rows_of(path) for path in paths]

    def _rows_of(self, path: Path) -> int:
        try:
            return int(self._arrow.parquet.read_metadata(path).num_rows)
        except (OSError, ValueError) as error:  # pyarrow's errors derive from these
            raise refuse(
                path, f"is no Parquet file ({_first_line(error)})", "Write it again."
            ) from error

    def count(self) -> int | None:
        return sum(self._rows)

    def samples(self) -> Iterator[Item]:
        firsts = [0, *itertools.accumulate(self._rows)]
        files = list(zip(self._paths, firsts, strict=False))
        for path, first in self._own(lambda: files):
            yield from self._items(path, first)

    @property
    def is_divisible(self) -> bool:
        return len(self._paths) > 1

    def _items(self, path: Path, number: int) -> Iterator[Item]:
        try:
            file = self._arrow.parquet.ParquetFile(path)
            dtypes = _dtypes(file.schema_arrow.metadata)
            for batch in file.iter_batches(batch_size=_BATCH_ROWS):
                yield from _items(batch, dtypes, number)
                number += batch.num_rows
        except (OSError, ValueError) as error:
            yield Problem(path.name, f"is damaged at row {number:,} ({_first_line(error)})")


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:160]


def _dtypes(metadata: dict[bytes, bytes] | None) -> dict[str, str]:
    try:
        found = json.loads((metadata or {}).get(METADATA, b"{}"))
        return {str(name): str(dtype) for name, dtype in found.items()}
    except (ValueError, AttributeError):
        return {}


def _items(batch: Any, dtypes: dict[str, str], first: int) -> Iterator[Item]:
    columns = {
        name: _numbers(column) or column.to_pylist()
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    }
    for row in range(batch.num_rows):
        key = f"#{first + row}"
        fields: dict[str, Value] = {}
        try:
            for name, column in columns.items():
                value = column[row]
                if name in dtypes:
                    fields[name] = _restored(value, dtypes[name])
                elif isinstance(value, np.generic):
                    fields[name] = np.asarray(value)
                elif isinstance(value, dict):
                    flatten(value, f"{name}.", fields)
                else:
                    fields[name] = plain(value)
        except (ValueError, TypeError) as error:
            yield Problem(key, f"cannot be read ({error})")
            continue
        yield Sample(key, fields)


def _numbers(column: Any) -> list[np.generic] | None:
    """The values of a column of numbers without nulls, each with its own dtype."""
    if column.null_count or str(column.type) not in _NUMBERS:
        return None
    return list(column.to_numpy(zero_copy_only=False))


_NUMBERS = frozenset(
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 halffloat float double".split()
)


def _restored(value: Any, dtype: str) -> Value:
    """An array that isograd's writer stored as {shape, data}."""
    array = np.frombuffer(value["data"], np.dtype(dtype))
    return array.reshape([int(extent) for extent in value["shape"]])

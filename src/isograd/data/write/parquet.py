"""Parquet: numbers, texts and bytes as columns of their own, arrays as {shape, data}."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from isograd.data.sources.base import Value
from isograd.data.sources.parquet import METADATA, pyarrow
from isograd.data.write.base import Fields, Writer, cannot

_ROWS = 1024
_GROUP_BYTES = 1 << 26


class ParquetWriter(Writer):
    """One file, in groups of rows."""

    def __init__(self, path: Path, name: str) -> None:
        super().__init__(path)
        self._arrow = pyarrow()
        self._writer: Any = None
        self._schema: Any = None
        self._dtypes: dict[str, str] = {}
        self._rows: list[Fields] = []
        self._size_bytes = 0
        self._count = 0

    def write(self, fields: Fields) -> None:
        self.require_same(fields, self._count)
        if self._schema is None:
            self._schema = self._described(fields)
            self._writer = self._arrow.parquet.ParquetWriter(self.path, self._schema)
        self._rows.append(fields)
        self._size_bytes += sum(
            value.nbytes if isinstance(value, np.ndarray) else len(value)
            for value in fields.values()
        )
        self._count += 1
        if len(self._rows) >= _ROWS or self._size_bytes >= _GROUP_BYTES:
            self._flush()

    def _described(self, fields: Fields) -> Any:
        arrow = self._arrow
        columns = []
        for name, value in fields.items():
            if isinstance(value, str):
                kind = arrow.string()
            elif isinstance(value, bytes):
                kind = arrow.binary()
            elif value.dtype.kind not in "biuf":
                raise cannot(name, f"Parquet has no {value.dtype}")
            elif value.ndim == 0:
                kind = arrow.from_numpy_dtype(value.dtype)
            else:
                self._dtypes[name] = value.dtype.newbyteorder("<").str
                parts = [("shape", arrow.list_(arrow.int32())), ("data", arrow.binary())]
                kind = arrow.struct(parts)
            columns.append((name, kind))
        metadata = {METADATA: json.dumps(self._dtypes).encode()}
        return arrow.schema(columns).with_metadata(metadata)

    def _cell(self, name: str, value: Value) -> Any:
        if not isinstance(value, np.ndarray):
            return value
        if name not in self._dtypes:
            if value.ndim:
                raise cannot(name, "has axes here and none in the first sample")
            return value.item()
        dtype = np.dtype(self._dtypes[name])
        if value.dtype != dtype.newbyteorder("="):
            raise cannot(name, f"is {value.dtype}, and {dtype.name} in the first sample")
        return {"shape": list(value.shape), "data": value.astype(dtype).tobytes()}

    def _flush(self) -> None:
        if not self._rows:
            return
        columns = {
            name: [self._cell(name, row[name]) for row in self._rows] for name in self._rows[0]
        }
        try:
            table = self._arrow.Table.from_pydict(columns, schema=self._schema)
        except (ValueError, TypeError, OverflowError) as error:  # pyarrow's errors are of these
            raise cannot(", ".join(columns), f"differs from the first sample ({error})") from error
        self._writer.write_table(table)
        self._rows, self._size_bytes = [], 0

    def finish(self) -> list[Path]:
        self._flush()
        if self._writer is not None:
            self._writer.close()
        return []

"""TFRecord with a schema beside it, in the format of MindSpore's `TFRecordDataset(schema=…)`.

An Example has neither dtypes nor shapes: the schema keeps the dtypes, a feature `NAME/shape` the
shape of each sample where that is not one axis.  float64 is kept as bytes, because a FloatList has
32 bits.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isograd.data.sources.base import Value
from isograd.data.sources.example_proto import encode_example
from isograd.data.sources.tfrecord import HEAD, crc32c, masked, schema_path
from isograd.data.write.base import Fields, Writer, cannot


class TFRecordWriter(Writer):
    """One file of Examples."""

    def __init__(self, path: Path, name: str) -> None:
        super().__init__(path)
        self._name = name
        self._file = path.open("wb")
        self._checksum = crc32c()
        self._columns: dict[str, dict[str, Any]] = {}
        self._count = 0

    def write(self, fields: Fields) -> None:
        self.require_same(fields, self._count)
        features: dict[str, list[bytes] | NDArray[Any]] = {}
        for name, value in fields.items():
            features[name] = self._feature(name, value)
            shape = _shape_to_keep(value)
            if shape is not None:
                features[f"{name}/shape"] = np.asarray(shape, np.int64)
        record = encode_example(features)
        head = len(record).to_bytes(8, "little")
        self._file.write(HEAD.pack(len(record), masked(self._checksum(head))))
        self._file.write(record)
        self._file.write(masked(self._checksum(record)).to_bytes(4, "little"))
        self._count += 1

    def _feature(self, name: str, value: Value) -> list[bytes] | NDArray[Any]:
        if isinstance(value, str):
            self._column(name, "string", "string", None)
            return [value.encode("utf-8", errors="surrogatepass")]
        if isinstance(value, bytes):
            self._column(name, "uint8", "bytes", None)
            return [value]
        dtype = str(value.dtype)
        if value.dtype.kind not in "biuf":
            raise cannot(name, f"TFRecord has no {dtype}")
        self._column(name, dtype, dtype, value.shape)
        if dtype in ("float64", "uint64", "float16"):
            return [np.ascontiguousarray(value).astype(value.dtype.newbyteorder("<")).tobytes()]
        return value.reshape(-1)

    def _column(self, name: str, type_name: str, own: str, shape: tuple[int, ...] | None) -> None:
        known = self._columns.setdefault(
            name, {"type": type_name, "isograd": own, "rank": len(shape or ())}
        )
        if known["isograd"] != own:
            raise cannot(name, f"is {own} in one sample and {known['isograd']} in others")
        if shape:
            old = known.setdefault("shape", list(shape))
            if len(old) != len(shape):
                raise cannot(name, "has different numbers of axes")
            known["shape"] = [x if x == y else -1 for x, y in zip(old, shape, strict=True)]

    def finish(self) -> list[Path]:
        self._file.close()
        schema = {"datasetType": "TF", "numRows": self._count, "columns": self._columns}
        beside = schema_path(self.path.with_name(self._name))
        partial = schema_path(self.path)
        partial.write_text(json.dumps(schema, indent=1) + "\n", "utf-8")
        return [beside]


def _shape_to_keep(value: Value) -> tuple[int, ...] | None:
    """The shape, where reading would not give it back by itself."""
    if not isinstance(value, np.ndarray):
        return None
    stored_as_bytes = str(value.dtype) in ("float64", "uint64", "float16")
    is_plain = value.ndim == 0 or (value.ndim == 1 and value.size > 1)
    return None if is_plain and not (stored_as_bytes and value.ndim == 0) else value.shape

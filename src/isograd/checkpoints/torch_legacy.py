"""torch's format before 1.6: five pickles in a row, then the storages, each after its count."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, BinaryIO, cast

from isograd.checkpoints import safe_pickle
from isograd.checkpoints.base import drop_pages, map_file
from isograd.checkpoints.torch_values import (
    FUNCTIONS,
    VALUES,
    Storage,
    StoredTensor,
    storage_of,
)
from isograd.checkpoints.torch_zip import TorchSource, advice_for

MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001


class LegacyTorchFile(TorchSource):
    """A checkpoint in the legacy format; storages are views of the map."""

    kind = "torch (legacy)"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._data = map_file(path)
        self._storages: dict[str, Storage] = {}
        self._spans: dict[str, tuple[int, int]] = {}
        try:
            self._read()
        except ValueError as error:
            raise self.refusal(str(error), advice_for(error)) from error

    def forget(self) -> None:
        drop_pages(self._data)

    def storage(self, tensor: StoredTensor) -> memoryview:
        start, end = self._spans[tensor.storage.key]
        return self._data[start:end]

    def _persistent(self, identifier: Any) -> Storage:
        found = storage_of(identifier)
        known = self._storages.setdefault(found.key, found)
        if known != found:
            raise ValueError("its pickle describes a storage in two ways")
        return known

    def _read(self) -> None:
        stream = _MappedStream(self._data)
        binary = cast("BinaryIO", stream)

        def load(functions: Any = FUNCTIONS) -> Any:
            return safe_pickle.load(binary, functions, VALUES, self._persistent)

        if load({}) != MAGIC_NUMBER:
            raise ValueError("it is a pickle, and none of torch's")
        if load({}) != PROTOCOL_VERSION:
            raise ValueError("it has a version of the format that isograd does not know")
        system = load({})
        if not isinstance(system, dict) or system.get("little_endian") is not True:
            raise ValueError("it was written on a machine of another byte order")
        root = load()
        keys = load({})
        if not isinstance(keys, list) or any(key not in self._storages for key in keys):
            raise ValueError("it lists storages that no tensor uses")
        position = stream.tell()
        for key in keys:
            size = self._storages[key].size_bytes
            if position + 8 + size > len(self._data) or key in self._spans:
                raise ValueError(f"it ends before storage {key!r:.100} is complete")
            self._spans[key] = (position + 8, position + 8 + size)
            position += 8 + size
        if self._storages.keys() - self._spans.keys():
            raise ValueError("it lacks a storage that its tensors use")
        self.register(root)


class _MappedStream(io.RawIOBase):
    """A stream over mapped bytes that never reserves more than there is."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._position = 0

    def tell(self) -> int:
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        end = len(self._data) if size is None or size < 0 else self._position + size
        found = bytes(self._data[self._position : min(end, len(self._data))])
        self._position += len(found)
        return found

    def readline(self, size: int | None = -1) -> bytes:
        line = bytearray()
        while self._position < len(self._data) and len(line) < 1 << 20:
            byte = self._data[self._position]
            self._position += 1
            line.append(byte)
            if byte == 10:
                break
        return bytes(line)

"""Binary dumps of Ascend devices: one file for all tensors of one run of an operator.

A file is eight bytes of header size, a protobuf header that describes inputs, outputs, buffers and
work spaces, and their bytes in this order.  Source: `BigDumpDataParser` of CANN's msaccucmp, and
the messages `DumpData`, `OpInput` and `OpOutput` of MindStudio's AclDumpMsg.proto.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from isograd.checkpoints.base import (
    MAX_DIMENSIONS,
    IndexedSource,
    RawTensor,
    TensorInfo,
    drop_pages,
    map_file,
    size_in_bytes,
    view,
)
from isograd.checkpoints.dump_names import parse_binary_name
from isograd.checkpoints.protobuf import MalformedError, fields, naturals
from isograd.tensors import Array

#: Numbers of the dtypes in a header.
_DTYPES = {
    1: "float32", 2: "float16", 3: "int8", 4: "uint8", 5: "int16", 6: "uint16", 7: "int32",
    8: "int64", 9: "uint32", 10: "uint64", 11: "bool", 12: "float64", 16: "complex64",
    17: "complex128", 27: "bfloat16",
}  # fmt: skip
#: Numbers of the layouts of a device that are turned back into the network's.
_NC1HWC0, _FRACTAL_NZ = 3, 29
#: Fields of the header; of the messages: where the inline bytes, their size and the shape of the
#: network stand.
_GROUPS = {4: "input", 3: "output", 5: "buffer", 8: "space"}
_PLACES = {"input": (4, 5, 6), "output": (5, 6, 7), "buffer": (2, 3, 0), "space": (2, 3, 0)}
MAX_HEADER_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True)
class _Described:
    """One tensor of a header; start: where its bytes begin in the file."""

    group: str
    dtype: int
    layout: int
    shape: tuple[int, ...]
    network_shape: tuple[int, ...]
    size_bytes: int
    start: int


def is_binary_dump(path: Path, head: bytes) -> bool:
    """Whether a file is called as a binary dump, and its header fits into it."""
    if parse_binary_name(path.name) is None or head[8:9] not in (b"\n", b"\x10", b"\x1a", b"\x22"):
        return False
    return 0 < int.from_bytes(head[:8], "little") <= path.stat().st_size - 8


class AscendDump(IndexedSource):
    """One binary dump; names are ``OPERATOR.SIDE.SLOT``.

    Tensors in the layouts NC1HWC0 and FRACTAL_NZ are turned into the network's, others are kept as
    the device holds them, in its shape.
    """

    kind = "MindSpore dump, binary"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._data = map_file(path)
        self._skipped: dict[str, str] = {}
        self._tensors: dict[str, _Described] = {}
        named = parse_binary_name(path.name)
        operator = path.name if named is None else named.operator
        try:
            slots = dict.fromkeys(_PLACES, 0)
            for found in self._described():
                slot = slots[found.group]
                slots[found.group] += 1
                if found.group in ("input", "output"):
                    self._register(f"{operator}.{found.group}.{slot}", found)
        except ValueError as error:
            raise self.refusal(f"is no complete dump ({error})") from error
        if not self._infos:
            raise self.refusal("holds no tensor that can be read")

    @property
    def skipped(self) -> Mapping[str, str]:
        return self._skipped

    def forget(self) -> None:
        drop_pages(self._data)

    def raw(self, name: str) -> RawTensor:
        info = self.info(name)
        found = self._tensors[name]
        bits = view(self._data, found.start, info.dtype, found.shape)
        return RawTensor(_in_network_layout(bits, found), info.dtype)

    def _described(self) -> Iterator[_Described]:
        """All that the header describes, in the order of the bytes behind it."""
        size = int.from_bytes(self._data[:8], "little")
        if len(self._data) < 8 or size > min(MAX_HEADER_BYTES, len(self._data) - 8):
            raise MalformedError(f"it announces a header of {size:,} bytes")
        groups: dict[str, list[tuple[int, int]]] = {group: [] for group in _PLACES}
        for number, kind, first, last in fields(self._data, 8, 8 + size):
            if kind == 2 and number in _GROUPS:
                groups[_GROUPS[number]].append((first, last))
        position = 8 + size
        for group, messages in groups.items():
            for first, last in messages:
                found = self._message(group, first, last, position)
                if found.start == position:
                    position += found.size_bytes
                yield found
        if position != len(self._data):
            raise MalformedError(f"its header describes {position:,} bytes of {len(self._data):,}")

    def _message(self, group: str, start: int, end: int, position: int) -> _Described:
        inline, size_field, network_field = _PLACES[group]
        numbers = {1: 0, 2: 0, size_field: 0}
        shapes: dict[int, tuple[int, ...]] = {}
        inside: tuple[int, int] | None = None
        for number, kind, first, last in fields(self._data, start, end):
            if kind == 0 and number in numbers:
                numbers[number] = first
            elif kind == 2 and number == inline and last > first:
                inside = (first, last - first)
            elif kind == 2 and group in ("input", "output") and number in (3, network_field):
                shapes[number] = self._shape(first, last)
        place, size = inside if inside is not None else (position, numbers[size_field])
        if size > len(self._data) - place:
            raise MalformedError(f"{group} of {size:,} bytes lies beyond its end")
        return _Described(
            group,
            numbers[1],
            numbers[2],
            shapes.get(3, ()),
            shapes.get(network_field, ()),
            size,
            place,
        )

    def _shape(self, start: int, end: int) -> tuple[int, ...]:
        shape: list[int] = []
        for number, kind, first, last in fields(self._data, start, end):
            if number == 1 and kind in (0, 2):
                shape += naturals(self._data, kind, first, last, MAX_DIMENSIONS)
        return tuple(shape)

    def _register(self, name: str, found: _Described) -> None:
        dtype = _DTYPES.get(found.dtype)
        if dtype is None:
            self._skipped[name] = f"its dtype has the number {found.dtype}, which is not known"
            return
        if size_in_bytes(dtype, found.shape) != found.size_bytes:
            self._skipped[name] = f"its shape {found.shape} does not fit {found.size_bytes:,} bytes"
            return
        shape = found.network_shape if _is_turned(found) else found.shape
        self._tensors[name] = found
        size = size_in_bytes(dtype, shape)
        self.add(TensorInfo(name, dtype, shape, size, order=len(self._infos)))


def _is_turned(found: _Described) -> bool:
    """Whether a device's layout and the network's shape are known to belong together."""
    shape, network = found.shape, found.network_shape
    if found.layout == _NC1HWC0 and len(shape) == 5 and len(network) == 4:
        batch, outer, height, width, inner = shape
        fits = (batch, height, width) == (network[0], *network[2:])
        return fits and network[1] <= outer * inner
    if found.layout == _FRACTAL_NZ and len(shape) >= 4 and len(network) == len(shape) - 2:
        *before, columns, rows, row, column = shape
        fits = tuple(before) == network[:-2]
        return fits and network[-2] <= rows * row and network[-1] <= columns * column
    return False


def _in_network_layout(bits: Array, found: _Described) -> Array:
    if not _is_turned(found):
        return bits
    shape, network = found.shape, found.network_shape
    if found.layout == _NC1HWC0:
        batch, outer, height, width, inner = shape
        turned = bits.transpose(0, 1, 4, 2, 3).reshape(batch, outer * inner, height, width)
        return np.ascontiguousarray(turned[:, : network[1]])
    *before, columns, rows, row, column = shape
    axes = (*range(len(before)), *(len(before) + axis for axis in (1, 2, 0, 3)))
    turned = bits.transpose(axes).reshape(*before, rows * row, columns * column)
    return np.ascontiguousarray(turned[..., : network[-2], : network[-1]])

"""numpy's own files: one array (.npy) or several in a zip file (.npz)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from isograd.checkpoints.base import IndexedSource, RawTensor, TensorInfo, map_file
from isograd.checkpoints.npy import (
    MAX_HEADER_BYTES,
    USUAL_PREFIX_BYTES,
    NpyHeader,
    elements,
    parse_header,
)
from isograd.checkpoints.zip_map import ZipMap


class NpyFile(IndexedSource):
    """One array; its name is the file's without suffix."""

    kind = "npy"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._data = map_file(path)
        try:
            self._header = parse_header(self._data[: 12 + MAX_HEADER_BYTES])
        except ValueError as error:
            raise self.refusal(str(error)) from error
        header = self._header
        self.add(TensorInfo(path.stem, header.dtype, header.shape, header.size_bytes))
        self.raw(path.stem)

    def raw(self, name: str) -> RawTensor:
        info = self.info(name)
        try:
            return RawTensor(elements(self._data, self._header), info.dtype)
        except ValueError as error:
            raise self.refusal(str(error)) from error


class NpzFile(IndexedSource):
    """Arrays of a zip file, each a member NAME.npy; read from the map where stored."""

    kind = "npz"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._zip = ZipMap(path)
        self._skipped: dict[str, str] = {}
        self._member_of: dict[str, str] = {}
        for member in self._zip.names():
            self._register(member)
        if not self._infos:
            raise self.refusal("is a zip file without any array of numbers")

    @property
    def skipped(self) -> Mapping[str, str]:
        return self._skipped

    def raw(self, name: str) -> RawTensor:
        return self._taken(name, aligned=True)

    def stored(self, name: str) -> RawTensor:
        return self._taken(name, aligned=False)

    def _taken(self, name: str, *, aligned: bool) -> RawTensor:
        info = self.info(name)
        data = self._zip.member(self._member_of[name])
        try:
            return RawTensor(elements(data, parse_header(data), aligned=aligned), info.dtype)
        except ValueError as error:
            raise self.refusal(f"{name!r}: {error}") from error

    def forget(self) -> None:
        self._zip.forget()

    def verify(self) -> bool:
        self._zip.verify()
        return True

    def _register(self, member: str) -> None:
        try:
            header = self._header(member)
        except ValueError as error:
            self._skipped[member] = str(error)
            return
        if header.start + header.size_bytes != self._zip.size_bytes(member):
            raise self.refusal(f"member {member!r} has a size that does not fit its shape")
        name = member.removesuffix(".npy")
        self._member_of[name] = member
        self.add(TensorInfo(name, header.dtype, header.shape, header.size_bytes))

    def _header(self, member: str) -> NpyHeader:
        try:
            return parse_header(self._zip.prefix(member, USUAL_PREFIX_BYTES))
        except ValueError:
            return parse_header(self._zip.prefix(member, 12 + MAX_HEADER_BYTES))

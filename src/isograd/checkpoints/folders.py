"""Folders of tensors: .npy files, TroubleShooter's numbered ones, dumps of MindSpore."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from isograd.checkpoints.ascend_dump import AscendDump
from isograd.checkpoints.base import (
    IndexedSource,
    Opener,
    RawTensor,
    TensorInfo,
    TensorSource,
    map_file,
)
from isograd.checkpoints.dump_names import (
    DumpName,
    parse_binary_name,
    parse_dump_name,
    parse_numbered,
)
from isograd.checkpoints.jsons import MAX_JSON_BYTES
from isograd.checkpoints.npy import MAX_HEADER_BYTES, elements, parse_header
from isograd.errors import CheckpointError

#: Where a dump says what files are called whose names were too long.
_MAPPING = "mapping.csv"
_Order = tuple[float, str, int, int, str]


def open_folder(path: Path, opener: Opener) -> TensorSource:
    """Open a folder by what lies in it; opener opens the files and folders inside."""
    from isograd.checkpoints.groups import GroupedSource, group_folders
    from isograd.checkpoints.msprobe import MsprobeDump
    from isograd.checkpoints.recordings import RecordingSource
    from isograd.checkpoints.safetensors_file import SafetensorsFile, ShardedCheckpoint

    if (path / "manifest.json").is_file() and (path / "steps").is_dir():
        return RecordingSource(path)
    if (path / "dump.json").is_file():
        return MsprobeDump(path / "dump.json", opener)
    indices = [
        *sorted(path.glob("*.safetensors.index.json")),
        *sorted(path.glob("*.bin.index.json")),
    ]
    if indices:
        return ShardedCheckpoint(indices[0])
    single = sorted(path.glob("*.safetensors"))
    if len(single) == 1:
        return SafetensorsFile(single[0])
    groups = group_folders(path)
    if groups:
        return GroupedSource(path, groups, opener)
    return NpyFolder(path)


class NpyFolder(IndexedSource):
    """All .npy files below a folder; links are never followed.

    Names are paths without suffix.  Dumps of MindSpore are named
    ``FOLDER/OPERATOR.SIDE.SLOT`` and ordered by their time; where one operator ran several times,
    its runs after the first end in ``@1``, ``@2``, …  Numbered files keep their number as order.
    """

    kind = "folder of npy"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._skipped: dict[str, str] = {}
        self._files: dict[str, str] = {}
        self._binary: dict[str, tuple[str, str]] = {}
        found = self._found()
        is_dump = any(file.dump_name for file in found)
        numbered = not is_dump and bool(found) and all(parse_numbered(one.stem) for one in found)
        if is_dump:
            self.kind = "MindSpore dump"
            found.sort(key=_dump_order)
        elif numbered:
            self.kind = "TroubleShooter folder"
            found.sort(key=_number_order)
        else:
            found.sort(key=lambda file: file.relative)
        runs: dict[str, int] = {}
        for index, file in enumerate(found):
            if file.is_binary:
                self._register_binary(file, runs)
                continue
            name = _dump_name(file, runs) if is_dump else file.relative.removesuffix(".npy")
            self._register(name, file, index if is_dump or numbered else None)
        if not self._infos:
            raise self.refusal(
                "holds no array of numbers" + (f" ({self._one_reason()})" if self._skipped else ""),
                "Name a folder with .npy files, a recording or a dump.",
            )

    @property
    def skipped(self) -> Mapping[str, str]:
        return self._skipped

    def raw(self, name: str) -> RawTensor:
        info = self.info(name)
        if name in self._binary:
            path, inner = self._binary[name]
            return AscendDump(Path(path)).raw(inner)
        data = map_file(self._files[name])
        try:
            header = parse_header(data[: 12 + MAX_HEADER_BYTES])
            if (header.dtype, header.shape) != (info.dtype, info.shape):
                raise ValueError("it changed while it was read")
            return RawTensor(elements(data, header), info.dtype)
        except ValueError as error:
            raise CheckpointError(f"{self._files[name]}: {error}", "Copy it again.") from error

    def _one_reason(self) -> str:
        name, reason = next(iter(self._skipped.items()))
        return f"{name}: {reason}"

    def _found(self) -> list[_File]:
        files: list[_File] = []
        folders = [""]
        longer: dict[str, dict[str, str]] = {}
        try:
            while folders:
                parent = folders.pop()
                for entry in os.scandir(os.path.join(self.path, parent)):
                    relative = f"{parent}/{entry.name}" if parent else entry.name
                    if entry.is_symlink():
                        self._skipped[relative] = "it is a link"
                    elif entry.is_dir(follow_symlinks=False):
                        folders.append(relative)
                    elif entry.name.endswith(".npy"):
                        files.append(_File(entry.path, parent, entry.name.removesuffix(".npy")))
                    elif entry.name == _MAPPING:
                        longer[parent] = _long_names(Path(entry.path))
                    elif parse_binary_name(entry.name):
                        files.append(_File(entry.path, parent, entry.name, is_binary=True))
        except OSError as error:
            raise CheckpointError(
                f"{self.path}: cannot be read ({error})", "Check its rights."
            ) from error
        return [
            file.called(longer[file.parent]) if file.parent in longer else file for file in files
        ]

    def _register_binary(self, file: _File, runs: dict[str, int]) -> None:
        """All tensors of a binary dump, each under its own name."""
        try:
            with AscendDump(Path(file.path)) as dump:
                for info in dump:
                    side = info.name.rpartition(".")[0].rpartition(".")
                    name = f"{_place(file)}.{side[2]}.{info.name.rpartition('.')[2]}"
                    name = _numbered_run(name, runs)
                    self._binary[name] = (file.path, info.name)
                    self.add(replace(info, name=name, order=len(self._infos)))
                for name, reason in dump.skipped.items():
                    self._skipped[f"{file.relative}: {name}"] = reason
        except CheckpointError as error:
            self._skipped[file.relative] = error.what

    def _register(self, name: str, file: _File, order: int | None) -> None:
        try:
            with open(file.path, "rb", buffering=0) as stream:
                prefix = stream.read(12 + 512) or b""
                try:
                    header = parse_header(prefix)
                except ValueError:
                    header = parse_header(prefix + (stream.read(MAX_HEADER_BYTES) or b""))
                size = os.fstat(stream.fileno()).st_size
            if header.start + header.size_bytes != size:
                raise ValueError("its size does not fit its shape")
        except (OSError, ValueError) as error:
            self._skipped[file.relative] = str(error)
            return
        self._files[name] = file.path
        self.add(TensorInfo(name, header.dtype, header.shape, header.size_bytes, order=order))


class _File(NamedTuple):
    """A file with the folder in which it lies, from the source's, and its name without suffix."""

    path: str
    parent: str
    stem: str
    is_binary: bool = False

    @property
    def relative(self) -> str:
        suffix = "" if self.is_binary else ".npy"
        return f"{self.parent}/{self.stem}{suffix}" if self.parent else f"{self.stem}{suffix}"

    @property
    def dump_name(self) -> DumpName | None:
        """What its name says of a dump."""
        return parse_binary_name(self.stem) if self.is_binary else parse_dump_name(self.stem)

    def called(self, names: Mapping[str, str]) -> _File:
        """The file under the long name that a mapping has for it."""
        found = names.get(self.stem, names.get(f"{self.stem}.npy", self.stem))
        return self._replace(stem=found.removesuffix(".npy"))


def _long_names(path: Path) -> dict[str, str]:
    """The names of files whose own were too long for the disk: lines of `SHORT,LONG`."""
    if path.stat().st_size > MAX_JSON_BYTES:
        return {}
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    pairs = (line.split(",") for line in lines)
    return {
        pair[0].strip(): pair[1].strip() for pair in pairs if len(pair) == 2 and "/" not in pair[1]
    }


def _dump_order(file: _File) -> _Order:
    found = file.dump_name
    name = f"{file.stem}.npy"
    if found is None:
        return (float("inf"), file.parent, 0, 0, name)
    slot = f"{found.slot:09d}{name}"
    return (0.0, file.parent, found.time_us, found.side == "output", slot)


def _number_order(file: _File) -> str:
    found = parse_numbered(file.stem)
    return f"{file.parent}/{found[0] if found else 0:020d}{file.stem}"


def _dump_name(file: _File, runs: dict[str, int]) -> str:
    found = file.dump_name
    if found is None:
        return file.relative.removesuffix(".npy")
    return _numbered_run(f"{_place(file)}.{found.side}.{found.slot}", runs)


def _place(file: _File) -> str:
    """The folder and the operator of a dumped file."""
    found = file.dump_name
    operator = file.stem if found is None else found.operator
    return f"{file.parent}/{operator}" if file.parent else operator


def _numbered_run(name: str, runs: dict[str, int]) -> str:
    """The name, with the number of the run where the operator ran before."""
    run = runs.get(name, 0)
    runs[name] = run + 1
    return f"{name}@{run}" if run else name

"""Folders of tensors: plain .npy files, TroubleShooter's numbered ones, and MindSpore's dumps."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from isograd.checkpoints.base import IndexedSource, RawTensor, TensorInfo, TensorSource, map_file
from isograd.checkpoints.dump_names import parse_dump_name, parse_numbered
from isograd.checkpoints.npy import MAX_HEADER_BYTES, elements, parse_header
from isograd.errors import CheckpointError

_Order = tuple[float, str, int, int, str]


def open_folder(path: Path) -> TensorSource:
    """Open a folder by what lies in it."""
    from isograd.checkpoints.msprobe import MsprobeDump
    from isograd.checkpoints.recordings import RecordingSource
    from isograd.checkpoints.safetensors_file import SafetensorsFile, ShardedSafetensors

    if (path / "manifest.json").is_file() and (path / "steps").is_dir():
        return RecordingSource(path)
    if (path / "dump.json").is_file():
        return MsprobeDump(path / "dump.json")
    indices = sorted(path.glob("*.safetensors.index.json"))
    if indices:
        return ShardedSafetensors(indices[0])
    single = sorted(path.glob("*.safetensors"))
    if len(single) == 1:
        return SafetensorsFile(single[0])
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
        self._files: dict[str, Path] = {}
        found = self._found()
        is_dump = any(parse_dump_name(file.stem) for file in found)
        if is_dump:
            self.kind = "MindSpore dump"
            ordered = sorted(found, key=self._dump_order)
        else:
            numbered = bool(found) and all(parse_numbered(file.stem) for file in found)
            if numbered:
                self.kind = "TroubleShooter folder"
            ordered = sorted(found, key=self._number_order if numbered else str)
        runs: dict[str, int] = {}
        for index, file in enumerate(ordered):
            name = self._name(file, runs) if is_dump else self._relative(file).removesuffix(".npy")
            has_order = is_dump or self.kind == "TroubleShooter folder"
            self._register(name, file, index if has_order else None)
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

    def _relative(self, file: Path) -> str:
        return file.relative_to(self.path).as_posix()

    def _found(self) -> list[Path]:
        files: list[Path] = []

        def fail(error: OSError) -> None:
            raise CheckpointError(
                f"{self.path}: cannot be read ({error})", "Check its rights."
            ) from error

        for folder, folders, names in os.walk(self.path, onerror=fail):
            for name in (*folders, *names):
                entry = Path(folder, name)
                if entry.is_symlink():
                    self._skipped[self._relative(entry)] = "it is a link"
                elif name.endswith(".npy") and name in names:
                    files.append(entry)
        return files

    def _dump_order(self, file: Path) -> _Order:
        parent = file.parent.relative_to(self.path).as_posix()
        found = parse_dump_name(file.stem)
        if found is None:
            return (float("inf"), parent, 0, 0, file.name)
        return (0.0, parent, found.time_us, found.side == "output", f"{found.slot:09d}{file.name}")

    def _number_order(self, file: Path) -> str:
        found = parse_numbered(file.stem)
        number = found[0] if found else 0
        return f"{file.parent.as_posix()}/{number:020d}{file.name}"

    def _name(self, file: Path, runs: dict[str, int]) -> str:
        found = parse_dump_name(file.stem)
        if found is None:
            return self._relative(file).removesuffix(".npy")
        parent = file.parent.relative_to(self.path).as_posix()
        place = "" if parent == "." else f"{parent}/"
        name = f"{place}{found.operator}.{found.side}.{found.slot}"
        run = runs.get(name, 0)
        runs[name] = run + 1
        return f"{name}@{run}" if run else name

    def _register(self, name: str, file: Path, order: int | None) -> None:
        try:
            with file.open("rb") as stream:
                prefix = stream.read(12 + 512)
                try:
                    header = parse_header(prefix)
                except ValueError:
                    header = parse_header(prefix + stream.read(MAX_HEADER_BYTES))
                size = os.fstat(stream.fileno()).st_size
            if header.start + header.size_bytes != size:
                raise ValueError("its size does not fit its shape")
        except (OSError, ValueError) as error:
            self._skipped[self._relative(file)] = str(error)
            return
        self._files[name] = file
        self.add(TensorInfo(name, header.dtype, header.shape, header.size_bytes, order=order))

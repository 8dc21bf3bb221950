"""Dumps of msprobe (mindstudio-probe): a dump.json in execution order, tensors in files beside it.

Torch's tensors lie in `dump_tensor_data/NAME.pt`, MindSpore's in `NAME.npy`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from isograd.checkpoints.base import IndexedSource, Opener, RawTensor, TensorSource
from isograd.checkpoints.jsons import read_json
from isograd.errors import CheckpointError

_MAX_DEPTH = 100


def is_dump_json(path: Path) -> bool:
    """Whether a JSON file is a dump of msprobe's."""
    found = read_json(path)
    return isinstance(found, dict) and isinstance(found.get("data"), dict)


class MsprobeDump(IndexedSource):
    """A dump with tensors; each file is opened when its tensor is registered and read."""

    kind = "msprobe dump"

    def __init__(self, path: Path, opener: Opener) -> None:
        super().__init__(path)
        self._opener = opener
        found = read_json(path)
        data = found.get("data") if isinstance(found, dict) else None
        if not isinstance(data, dict):
            raise self.refusal("is no dump of msprobe's")
        self._metadata = {
            key: str(found[key])
            for key in ("task", "level", "framework")
            if isinstance(found.get(key), str)
        }
        self._folder = path.parent / "dump_tensor_data"
        if self._folder.is_symlink():
            raise self.refusal("has a folder of tensors that is a link")
        self._skipped: dict[str, str] = {}
        self._sources: dict[str, Path] = {}
        for name, file in _data_names(data, 0):
            self._register(name, file)
        if not self._infos:
            raise self.refusal("names no tensor that is there", "Dump with the task `tensor`.")

    @property
    def metadata(self) -> Mapping[str, str]:
        return self._metadata

    @property
    def skipped(self) -> Mapping[str, str]:
        return self._skipped

    def raw(self, name: str) -> RawTensor:
        self.info(name)
        source = _open_one(self._sources[name], self._opener)
        return source.raw(source.names()[0])

    def _register(self, name: str, file: object) -> None:
        if not isinstance(file, str) or Path(file).name != file or not file:
            self._skipped[name] = f"its file {file!r:.100} does not lie in the folder"
            return
        path = self._folder / file
        if path.is_symlink() or not path.is_file():
            self._skipped[name] = f"its file {file} is not there"
            return
        try:
            source = _open_one(path, self._opener)
            info = source.info(source.names()[0])
        except CheckpointError as error:
            self._skipped[name] = error.what
            return
        stem = path.stem
        if stem in self._sources:
            return
        self._sources[stem] = path
        self.add(replace(info, name=stem, order=len(self._sources) - 1, tied_to=None))


def _open_one(path: Path, opener: Opener) -> TensorSource:
    source = opener(path)
    if len(source) != 1:
        raise CheckpointError(f"{path}: holds several tensors", "Dump it again.")
    return source


def _data_names(value: Any, depth: int, path: str = "") -> Iterator[tuple[str, object]]:
    """Every `data_name` below a value, with the path to it, in the order of the file."""
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, dict):
        if "data_name" in value:
            yield path, value["data_name"]
        for key, item in value.items():
            yield from _data_names(item, depth + 1, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _data_names(item, depth + 1, f"{path}.{index}")

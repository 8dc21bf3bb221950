"""A folder with one set of tensors per rank or step, as one set: `rank0/NAME`, `step3/rank0/NAME`.

Whatever the folders are called (`rank_0`, `rank0`, `device-0`), the names are the same, so that the
dumps of two tools pair.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from isograd.checkpoints.base import IndexedSource, Opener, RawTensor, TensorSource
from isograd.checkpoints.dump_names import RANK
from isograd.errors import CheckpointError

#: Suffixes of a checkpoint that may lie alone in the folder of a rank.
_CHECKPOINTS = (".ckpt", ".pth", ".pt", ".bin", ".npz", ".safetensors")


def group_folders(path: Path) -> dict[str, Path]:
    """What lies in a folder for each rank or step, by `rank0` or `step3`, in their order."""
    found: dict[tuple[str, int], Path] = {}
    with os.scandir(path) as entries:
        named = sorted((entry.name, entry.path) for entry in entries if RANK.match(entry.name))
    for name, place in named:
        entry = Path(place)
        matched = RANK.fullmatch(name if entry.is_dir() else entry.stem)
        is_wanted = entry.is_dir() or entry.suffix in _CHECKPOINTS
        if matched is None or entry.is_symlink() or not is_wanted:
            continue
        word = "step" if name.startswith("step") else "rank"
        found.setdefault((word, int(matched[1])), entry)
    return {f"{word}{number}": found[word, number] for word, number in sorted(found)}


class GroupedSource(IndexedSource):
    """The sets of all ranks or steps; one that cannot be opened is skipped, and said to be."""

    kind = "folder of ranks"

    def __init__(self, path: Path, folders: Mapping[str, Path], opener: Opener) -> None:
        super().__init__(path)
        self._groups: dict[str, TensorSource] = {}
        self._owners: dict[str, tuple[TensorSource, str]] = {}
        self._skipped: dict[str, str] = {}
        for group, folder in folders.items():
            try:
                source = _open_one(folder, opener)
            except CheckpointError as error:
                self._skipped[group] = error.what
                continue
            self._take(group, source)
        for name in _beside(path, folders):
            self._skipped[name] = "it lies beside the folders of ranks or steps"
        if not self._infos:
            reason = next(iter(self._skipped.values()), "they are empty")
            raise self.refusal(f"holds no tensor in its ranks ({reason})", "Name another folder.")

    @property
    def skipped(self) -> Mapping[str, str]:
        return self._skipped

    def raw(self, name: str) -> RawTensor:
        self.info(name)
        source, plain = self._owners[name]
        return source.raw(plain)

    def stored(self, name: str) -> RawTensor:
        self.info(name)
        source, plain = self._owners[name]
        return source.stored(plain)

    def verify(self) -> bool:
        """Check the sets that have checksums; true where all have."""
        have_checksums = [source.verify() for source in self._groups.values()]
        return all(have_checksums)

    def forget(self) -> None:
        for source in self._groups.values():
            source.forget()

    def close(self) -> None:
        for source in self._groups.values():
            source.close()

    def _take(self, group: str, source: TensorSource) -> None:
        self._groups[group] = source
        for name, reason in source.skipped.items():
            self._skipped[f"{group}/{name}"] = reason
        start = len(self._infos)
        for info in source:
            name = f"{group}/{info.name}"
            order = None if info.order is None else start + info.order
            tied = None if info.tied_to is None else f"{group}/{info.tied_to}"
            self.add(replace(info, name=name, order=order, tied_to=tied))
            self._owners[name] = (source, info.name)


def _beside(path: Path, folders: Mapping[str, Path]) -> list[str]:
    """What holds tensors and belongs to no rank or step."""
    taken = {folder.name for folder in folders.values()}
    suffixes = (".npy", *_CHECKPOINTS)
    return [
        entry.name
        for entry in sorted(path.iterdir())
        if entry.name not in taken
        and (
            next(entry.rglob("*.npy"), None) is not None
            if entry.is_dir()
            else entry.suffix in suffixes
        )
    ]


def _open_one(path: Path, opener: Opener) -> TensorSource:
    """The set of one rank: whatever opens, or the one checkpoint that lies in its folder."""
    try:
        return opener(path)
    except CheckpointError:
        files = [
            file
            for file in path.rglob("*")
            if file.suffix in _CHECKPOINTS and file.is_file() and not file.is_symlink()
        ]
        if len(files) != 1:
            raise
        return opener(files[0])

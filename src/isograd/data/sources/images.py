"""Folders of image files: class folders, splits of class folders, or flat."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from isograd.data.limits import MAX_RECORD_BYTES
from isograd.data.sources.base import Item, Labels, Problem, Sample, SampleSource, inside, refuse

#: The suffixes that torchvision's ImageFolder takes for images.
SUFFIXES = frozenset(".jpg .jpeg .png .ppm .bmp .pgm .tif .tiff .webp .gif".split())
#: Folders of these names above class folders are splits (the layout of ImageNet).
SPLITS = frozenset("train training val valid validation test testing".split())


class ImageFolder(SampleSource):
    """Encoded images, and the index of their folder among the sorted ones as `label`."""

    format = "image folder"

    def __init__(self, path: Path, address: str | None = None) -> None:
        super().__init__(address or str(path))
        self._root = path.resolve()
        self._splits = self._found_splits()
        tops = [self._root / split for split in self._splits] or [self._root]
        names = sorted({name for top in tops for name in _folders(top)})
        self._classes = {name: number for number, name in enumerate(names)}
        if names:
            self.labels = Labels("label", len(names), tuple(names))
        if not names and not _has_images(self._root):
            raise refuse(path, "holds no image file", "Name a folder of images.")

    def _found_splits(self) -> list[str]:
        names = _folders(self._root)
        if names and all(name.lower() in SPLITS for name in names):
            return names
        return []

    def samples(self) -> Iterator[Item]:
        self.left_out.clear()
        for split, top, path in self._own(self._all):
            if isinstance(path, Problem):
                yield path
            elif path.suffix.lower() not in SUFFIXES:
                self.left_out["files without the suffix of an image were left out"] += 1
            else:
                yield self._sample(path, top, split)

    @property
    def is_divisible(self) -> bool:
        return True

    def window(self, start: int, size: int) -> Iterator[Item]:
        return self._of_files(start, start + size).samples()

    def _all(self) -> Iterator[tuple[str, Path, Path | Problem]]:
        """Each file with its split and the folder that holds the classes."""
        for split in self._splits or [""]:
            top = self._root / split if split else self._root
            for path in self._files(top):
                yield split, top, path

    def _sample(self, path: Path, top: Path, split: str) -> Item:
        key = str(path.relative_to(self._root))
        if path.is_symlink() and not inside(path, self._root):
            return Problem(key, "is a link that leads out of the folder", split)
        try:
            with path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                if size > MAX_RECORD_BYTES:
                    return Problem(key, f"holds {size:,} bytes", split)
                content = file.read()
        except OSError as error:
            return Problem(key, f"cannot be read ({error.strerror})", split)
        if not content:
            return Problem(key, "is empty", split)
        parts = path.relative_to(top).parts
        if len(parts) < 2:
            return Sample(key, {"image": content}, split)
        label = np.asarray(self._classes[parts[0]], np.int64)
        return Sample(key, {"image": content, "label": label}, split)

    def _files(self, folder: Path) -> Iterator[Path | Problem]:
        """Files below a folder, sorted within each; a linked folder is a problem, not a way."""
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            yield Problem(str(folder), f"cannot be read ({error.strerror})")
            return
        for entry in entries:
            path = Path(entry.path)
            if entry.is_dir(follow_symlinks=False):
                yield from self._files(path)
            elif entry.is_symlink() and path.is_dir():
                yield Problem(
                    str(path.relative_to(self._root)), "is a link to a folder, which is not read"
                )
            elif entry.is_file() or entry.is_symlink():
                yield path


def _folders(path: Path) -> list[str]:
    try:
        return sorted(e.name for e in os.scandir(path) if e.is_dir(follow_symlinks=False))
    except OSError:
        return []


def _has_images(folder: Path) -> bool:
    for _, _, names in os.walk(folder):
        if any(Path(name).suffix.lower() in SUFFIXES for name in names):
            return True
    return False

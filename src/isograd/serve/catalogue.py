"""Finds what has a page below the served folders, by looking at first bytes alone.

Links are never followed, so that nothing outside of the folders is served.  Pages are looked up in
the catalogue by name; a path that a browser sends is never joined to a folder.
"""

from __future__ import annotations

import json
import os
import re
import stat
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from isograd.compare.files.event_file import is_event_file
from isograd.runs.reader import is_run
from isograd.serve.changes import changed_at
from isograd.serve.model import Item, Kind

#: Entries that are looked at below one folder, and levels of folders.
MOST_ENTRIES = 200_000
MOST_LEVELS = 12
#: Bytes of a file that say what it is.
_HEAD_BYTES = 512
_SCHEMA = re.compile(rb'"schema"\s*:\s*"isograd/([a-z]+)/\d+"')
_CHECKPOINTS = (".pth", ".pt", ".ckpt", ".safetensors", ".npz")
_DATASETS = (".tfrecord", ".mindrecord", ".parquet")
#: How PNG, JPEG, GIF, BMP and WebP files begin.
_IMAGES = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"BM", b"RIFF")
#: Folders that hold nothing to look at.
_LEFT_OUT = frozenset((".git", "__pycache__", "node_modules", ".venv"))
#: Seconds for which a listing holds.
_FRESH_S = 2.0


class Catalogue:
    """All items below some folders; looked for again when it is asked after two seconds."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders = tuple(folders)
        self._known: dict[tuple[str, int, int], Kind | None] = {}
        self._items: dict[tuple[Kind, str], Item] = {}
        self._looked = 0.0
        self._lock = threading.Lock()
        self.is_complete = True

    def items(self) -> list[Item]:
        """Every item, runs first, each kind by name."""
        self._look()
        order = list(Kind)
        return sorted(self._items.values(), key=lambda one: (order.index(one.kind), one.name))

    def of_kind(self, kind: Kind) -> list[Item]:
        """The items of one kind by name."""
        return [one for one in self.items() if one.kind is kind]

    def find(self, kind: Kind, name: str) -> Item | None:
        """The item with this name as it stands now, or None.

        Its size and time are read anew, so that a page is never an older one than its file.
        """
        self._look()
        found = self._items.get((kind, name))
        if found is None:
            return None
        size = _size_of(found.path) if found.size_bytes else 0
        return replace(found, size_bytes=size, changed=changed_at(found))

    def _look(self) -> None:
        with self._lock:
            if time.monotonic() - self._looked < _FRESH_S:
                return
            found: dict[tuple[Kind, str], Item] = {}
            self.is_complete = True
            for folder in self.folders:
                prefix = f"{folder.name}/" if len(self.folders) > 1 else ""
                for item in self._below(folder, prefix):
                    found.setdefault((item.kind, item.name), item)
            self._items = found
            self._looked = time.monotonic()

    def _below(self, root: Path, prefix: str) -> Iterator[Item]:
        waiting = [(root, 0)]
        seen = 0
        while waiting:
            folder, level = waiting.pop()
            entries = _entries(folder)
            kind = _folder_kind(folder, entries)
            if kind is not None:
                yield _item(kind, folder, root, prefix)
                if kind is not Kind.RUN:
                    continue
            for entry in entries:
                seen += 1
                if seen > MOST_ENTRIES:
                    self.is_complete = False
                    return
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in _LEFT_OUT and level < MOST_LEVELS:
                        waiting.append((Path(entry.path), level + 1))
                    continue
                found = self._file_kind(entry)
                is_part = kind is Kind.RUN and found is not Kind.EVENTS and found is not Kind.TRACE
                if found is not None and not is_part:
                    yield _item(found, Path(entry.path), root, prefix)

    def _file_kind(self, entry: os.DirEntry[str]) -> Kind | None:
        """What a file is; remembered while its size and time stay."""
        try:
            facts = entry.stat(follow_symlinks=False)
        except OSError:
            return None
        if not stat.S_ISREG(facts.st_mode):
            return None
        if entry.name.endswith(_CHECKPOINTS):
            return Kind.CHECKPOINT
        if entry.name.endswith(".py"):
            return Kind.SOURCE
        key = (entry.path, facts.st_size, facts.st_mtime_ns)
        if key not in self._known:
            self._known[key] = _sniffed(Path(entry.path), facts.st_size)
        return self._known[key]


def _size_of(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []


def _folder_kind(folder: Path, entries: Sequence[os.DirEntry[str]]) -> Kind | None:
    if is_run(folder):
        return Kind.RUN
    if (folder / "manifest.json").is_file() and (folder / "steps").is_dir():
        return Kind.RECORDING
    if folder.name.endswith(("_ascend_ms", "_ascend_pt")):
        return Kind.TRACE
    return Kind.DATASET if _are_classes(entries) else None


def _are_classes(entries: Sequence[os.DirEntry[str]], levels: int = 2) -> bool:
    """Whether folders of images lie side by side, each a class, or folders of such: splits."""
    folders = [entry for entry in entries if entry.is_dir(follow_symlinks=False)]
    if len(folders) < 2 or len(folders) < len(entries):
        return False
    for one in folders[:2]:
        inner = _entries(Path(one.path))
        first = next((entry for entry in inner if entry.is_file(follow_symlinks=False)), None)
        if first is None and levels > 1 and _are_classes(inner, levels - 1):
            continue
        if first is None or not _head(Path(first.path)).startswith(_IMAGES):
            return False
    return True


def _item(kind: Kind, path: Path, root: Path, prefix: str) -> Item:
    relative = path.relative_to(root).as_posix()
    name = prefix + ("" if relative == "." else relative)
    try:
        facts = path.lstat()
        size = facts.st_size if stat.S_ISREG(facts.st_mode) else 0
        return Item(kind, name or root.name, path, size, facts.st_mtime)
    except OSError:
        return Item(kind, name or root.name, path, 0, 0.0)


def _sniffed(path: Path, size: int) -> Kind | None:
    """What a file is by its first bytes; the suffix only chooses which are looked at."""
    name = path.name
    if name.endswith((".json", ".json.gz")):
        return _json_kind(path)
    if name.endswith(".journal"):
        return Kind.STUDY if b'"op_code"' in _head(path) else None
    if name.endswith(_DATASETS):
        return Kind.DATASET
    is_named = "tfevents" in name or "summary" in name.lower()
    if is_named and size >= 12 and is_event_file(path):
        return None if name.endswith("_lineage") else Kind.EVENTS
    return None


def _json_kind(path: Path) -> Kind | None:
    head = _head(path)
    match = _SCHEMA.search(head)
    if match is not None:
        word = match[1].decode()
        return Kind(word) if word in {kind.value for kind in Kind} and word != "run" else None
    if b'"traceEvents"' in head or b'"schemaVersion"' in head or _starts_with_spans(head):
        return Kind.TRACE
    return None


def _starts_with_spans(head: bytes) -> bool:
    """A Chrome trace that is a bare list of events."""
    text = head.lstrip()
    if not text.startswith(b"["):
        return False
    try:
        first = json.JSONDecoder().raw_decode(text[1:].lstrip().decode("utf-8", "replace"))[0]
    except ValueError:
        return False
    return isinstance(first, dict) and "ph" in first and "name" in first


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(_HEAD_BYTES)
    except OSError:
        return b""

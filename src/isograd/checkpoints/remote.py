"""Files behind a URL: fetched once into a folder of their own, then mapped like any other."""

from __future__ import annotations

import atexit
import re
import shutil
import tempfile
from pathlib import Path, PurePosixPath
from typing import Any

from isograd.checkpoints.jsons import read_json
from isograd.errors import CheckpointError

_URL = re.compile(r"[a-z][a-z0-9+.-]+(?:::|://)")


def is_url(text: str) -> bool:
    """Whether a text names a file by a URL that fsspec would open."""
    return _URL.match(text) is not None


def local_copy(url: str) -> Path:
    """Fetch a file or folder; the copy is removed when the process ends.

    Raises CheckpointError where fsspec is missing or the URL cannot be read.
    """
    if url.startswith("file://"):
        return Path(url.removeprefix("file://"))
    try:
        import fsspec  # type: ignore[import-untyped]
    except ImportError as error:
        raise CheckpointError(
            f"{url}: URLs are read by fsspec, which is not installed",
            'Install it: pip install "isograd[remote]".',
        ) from error
    folder = tempfile.mkdtemp(prefix="isograd-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    try:
        filesystem, path = fsspec.core.url_to_fs(url)
        return _fetch(filesystem, path, Path(folder))
    except CheckpointError:
        raise
    except Exception as error:  # each file system of fsspec raises its own kinds
        raise CheckpointError(f"{url}: cannot be read ({error})", "Check the address.") from error


def _fetch(filesystem: Any, path: str, folder: Path) -> Path:
    target = folder / (PurePosixPath(path).name or "source")
    if not filesystem.isdir(path):
        filesystem.get_file(path, str(target))
        if target.name.endswith(".index.json"):
            _fetch_shards(filesystem, PurePosixPath(path).parent, target)
        elif target.name == "dump.json":
            beside = PurePosixPath(path).parent / "dump_tensor_data"
            if filesystem.isdir(str(beside)):
                _fetch(filesystem, str(beside), folder)
        return target
    for found in filesystem.find(path):
        relative = PurePosixPath(found).relative_to(PurePosixPath(path))
        if ".." in relative.parts:
            raise CheckpointError(f"{found}: leads out of its folder", "Rename it.")
        inside = target.joinpath(*relative.parts)
        inside.parent.mkdir(parents=True, exist_ok=True)
        filesystem.get_file(found, str(inside))
    return target


def _fetch_shards(filesystem: Any, folder: PurePosixPath, index: Path) -> None:
    """Fetch what an index names and lies beside it; the reader refuses every other name."""
    found = read_json(index)
    weight_map = found.get("weight_map") if isinstance(found, dict) else None
    names = weight_map.values() if isinstance(weight_map, dict) else ()
    for name in dict.fromkeys(name for name in names if isinstance(name, str)):
        if name and Path(name).name == name and not (index.parent / name).exists():
            filesystem.get_file(str(folder / name), str(index.parent / name))

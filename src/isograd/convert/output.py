"""Where a port goes: its files, its generated modules, and what is no Python."""

from __future__ import annotations

import shutil
from pathlib import Path

from isograd.convert.conversion import Run
from isograd.convert.engine import Place
from isograd.convert.generated import library
from isograd.convert.notebooks import SUFFIX

#: The generated module beside a port.
GENERATED = "torch_semantics"


def write_file(folder: Path | None, file: Path, raw: bytes, original: Path) -> None:
    """Write a file of the port below a folder, with the reference's rights."""
    if folder is None:
        return
    target = folder / file
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(raw)
    target.chmod(original.stat().st_mode & 0o777 | 0o200)


def home_of(run: Run, file: Path) -> Path:
    """The folder, below the root, of the generated module that a file uses."""
    folder, is_package = file.parent, run.index.layout.is_package
    if file.suffix == SUFFIX or not is_package(run.base / folder):
        return folder
    while folder != Path() and is_package(run.base / folder.parent):
        folder = folder.parent
    return folder


def place_of(run: Run, file: Path) -> Place:
    """How a file of the port is imported, and imports the generated module."""
    path = run.base / file
    home = home_of(run, file)
    is_package = file.suffix != SUFFIX and run.index.layout.is_package(path.parent)
    level = len(file.parent.relative_to(home).parts) + 1 if is_package else 0
    return Place(
        run.index.names.get(path, ""),
        run.index.packages.get(path, ""),
        level,
        GENERATED,
        run.index.seen_from(path).canonical,
    )


def write_generated(run: Run, folder: Path | None) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Write the generated modules; returns their paths with the names in them."""
    layout = run.index.layout
    loose = {home for home in run.composites if not layout.is_package(run.base / home)}
    together = set().union(*(run.composites[home] for home in loose)) if loose else set()
    # Its files are imported from there, with that folder alone on Python's search path.
    searched = set().union(*(layout.searched[run.base / home] for home in loose))
    loose |= {folder.relative_to(run.base) for folder in searched}
    found = []
    for home in sorted({*run.composites, *loose}):
        names = together if home in loose else run.composites[home]
        file = home / f"{GENERATED}.py"
        if folder is not None:
            target = folder / file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(library().module_of(names), encoding="utf-8")
        found.append((file.as_posix(), tuple(sorted(names))))
    return tuple(found)


def copy_others(run: Run, folder: Path) -> int:
    """Copy what is no Python; how many files it is."""
    if run.root.is_file():
        return 0
    for empty in run.files.folders:
        (folder / empty).mkdir(parents=True, exist_ok=True)
    for file in run.files.others:
        target = folder / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(run.base / file, target)
        target.chmod((run.base / file).stat().st_mode & 0o777 | 0o200)
    return len(run.files.others)

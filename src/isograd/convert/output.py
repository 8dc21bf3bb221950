"""Where a port goes: its files, its generated modules, and what is no Python."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from isograd.convert.conversion import Run
from isograd.convert.engine import Place
from isograd.convert.generated import library
from isograd.convert.lone_layers import module_of
from isograd.convert.notebooks import SUFFIX

#: The generated module beside a port.
GENERATED = "torch_semantics"
#: What makes several of them one.
_COPIES = '''

def _give_way() -> None:
    """The copy that the process imported first replaces this one, so classes exist once."""
    import sys

    for name, module in tuple(sys.modules.items()):
        if name.rpartition(".")[2] == "{name}" and getattr(module, "COPY_OF", "") == COPY_OF:
            sys.modules[__name__] = module
            break


#: What is in this module; the port has it in several folders.
COPY_OF = "{digest}"
_give_way()
'''


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
    """Write the generated modules; returns their paths with the names in them.

    Packages and the folders of scripts each have one, as any of them may run without the others.
    They are the same in all of a port, and one module in a process: a layer that one file makes is
    an instance of the class that another file asks for.
    """
    layout = run.index.layout
    loose = {home for home in run.composites if not layout.is_package(run.base / home)}
    # Its files are imported from there, with that folder alone on Python's search path.
    searched = set().union(*(layout.searched[run.base / home] for home in loose))
    homes = sorted({*run.composites, *(part.relative_to(run.base) for part in searched)})
    names = set().union(*run.composites.values())
    files = [home / f"{GENERATED}.py" for home in homes]
    if folder is not None and files:
        derived = {api.rpartition(".")[2] for api in run.layers.derived}
        text = library().module_of(names) if run.layers.every else module_of(names, derived)
        if len(files) > 1:
            text += _COPIES.format(
                name=GENERATED, digest=hashlib.sha256(text.encode()).hexdigest()[:16]
            )
        for file in files:
            target = folder / file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
    return tuple((file.as_posix(), tuple(sorted(names))) for file in files)


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

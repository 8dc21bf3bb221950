"""Which files a conversion carries over, and which it leaves."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

from isograd.convert.model import Finding, Level
from isograd.convert.notebooks import SUFFIX
from isograd.scan.selection import Skipper

_SKIPPED = frozenset(("__pycache__", "node_modules", ".git", ".hg", ".svn", ".tox", ".mypy_cache"))


@dataclass
class Files:
    """The files of a folder by their paths below it, in a fixed order."""

    python: list[Path] = field(default_factory=list)
    others: list[Path] = field(default_factory=list)
    folders: list[Path] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def find_files(root: Path, skipper: Skipper) -> Files:
    """Every file below a folder that is not skipped; links that lead out are left, and reported."""
    found = Files()
    real = root.resolve()
    stack = [root]
    while stack:
        folder = stack.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            _tell(found, root, folder, "unreadable", f"the folder cannot be read: {error.strerror}")
            continue
        if folder != root and any(entry.name == "pyvenv.cfg" for entry in entries):
            continue
        if folder != root:
            found.folders.append(folder.relative_to(root))
        for entry in entries:
            if entry.name in _SKIPPED or entry.name.endswith(".pyc") or skipper.skips(entry.path):
                continue
            _sort(entry, root, real, found, stack)
    found.python.sort()
    found.others.sort()
    return found


def _sort(entry: os.DirEntry[str], root: Path, real: Path, found: Files, stack: list[Path]) -> None:
    path = Path(entry.path)
    try:
        if entry.is_symlink():
            target = path.resolve()
            if target.is_dir() or not target.is_relative_to(real) or not target.exists():
                said = "the link leads to a folder, out of the project or nowhere, and was left out"
                _tell(found, root, path, "link", said)
                return
        if entry.is_dir():
            stack.append(path)
            return
        if not stat.S_ISREG(entry.stat().st_mode):
            _tell(found, root, path, "no-file", "it is no plain file and was left out")
            return
    except (OSError, RuntimeError) as error:
        _tell(found, root, path, "unreadable", f"it cannot be read: {error}")
        return
    is_code = path.suffix in (".py", SUFFIX)
    (found.python if is_code else found.others).append(path.relative_to(root))


def _tell(found: Files, root: Path, path: Path, code: str, message: str) -> None:
    file = path.relative_to(root).as_posix()
    advice = "Copy by hand what the port needs of it."
    found.findings.append(Finding(file, 0, 0, code, message, advice, Level.LOOK))

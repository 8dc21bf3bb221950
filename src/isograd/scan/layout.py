"""Folders of modules without `__init__.py`: from where they are imported, and under which names.

Python finds `models.net` below any folder of its search path: the folder of the script that runs,
the one that it was started in, or one that a script adds.  None of this is written down, so it is
read from the imports: a name means the nearest file above that it fits.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from pathlib import Path

_INIT = "__init__.py"
#: What Python finds before a folder of the project that is called so.
_ELSEWHERE = sys.stdlib_module_names | frozenset(
    "torch torchvision torchaudio functorch einops mindspore numpy scipy".split()
)


class Layout:
    """The folders of a project, and what its imports tell of them.

    namespaces: folders without `__init__.py` whose files are modules of a package all the same.
    searched: by folder, those from which its files are imported by a dotted name.
    """

    def __init__(self, base: Path) -> None:
        self._base = base
        self._files: set[Path] = set()
        #: The files by their paths as text, in which a name is looked up without making paths.
        self._by_text: dict[str, Path] = {}
        self._folders: set[Path] = set()
        self._found: dict[tuple[str, Path], Path | None] = {}
        self._noted: set[tuple[str, Path]] = set()
        #: Folders whose files import each other by bare names; as modules of a package.
        self._beside: set[Path] = set()
        self._packaged: set[Path] = set()
        self.namespaces: set[Path] = set()
        self.searched: defaultdict[Path, set[Path]] = defaultdict(set)

    def add(self, path: Path) -> None:
        """A file of the project."""
        self._files.add(path)
        self._by_text[str(path)] = path
        folder = path.parent
        while folder not in self._folders and folder != self._base.parent:
            self._folders.add(folder)
            folder = folder.parent

    def is_package(self, folder: Path) -> bool:
        """Whether the files of a folder are modules of a package.

        An `__init__.py` says so, unless the files import each other as scripts of one folder do.
        """
        if folder in self.namespaces:
            return True
        is_searched = folder in self._beside and folder not in self._packaged
        return folder / _INIT in self._files and not is_searched

    def is_own(self, root: str) -> bool:
        """Whether a package of the project is found before an installed one that is called so."""
        if root not in _ELSEWHERE:
            return True
        found = [self._base / f"{root}.py", self._base / root / _INIT]
        found += [self._base / _INIT] if self._base.name == root else []
        return any(path in self._files for path in found)

    def find(self, name: str, folder: Path) -> Path | None:
        """The file that is meant by a module's name in the files of a folder."""
        key = name, folder
        if key not in self._found:
            self._found[key] = self._nearest(name, folder)
        return self._found[key]

    def has(self, name: str, folder: Path) -> bool:
        """Whether a name is that of a module, or of a folder with modules."""
        if self.find(name, folder) is not None:
            return True
        parts = name.split(".")
        return any(above.joinpath(*parts) in self._folders for above in self._above(name, folder))

    def _nearest(self, name: str, folder: Path) -> Path | None:
        below = name.replace(".", os.sep)
        for above in self._above(name, folder):
            around = str(above / below)
            for text in (f"{around}.py", f"{around}{os.sep}{_INIT}"):
                if text in self._by_text:
                    return self._by_text[text]
        return None

    def _above(self, name: str, folder: Path) -> list[Path]:
        """Where Python may look for a name: a package's own folder is not searched."""
        if not name or name.partition(".")[0] in _ELSEWHERE:
            return []
        found = []
        while folder in self._folders:
            if folder / _INIT not in self._files:
                found.append(folder)
            folder = folder.parent
        return [*found, self._base.parent]

    @property
    def search_path(self) -> tuple[Path, ...]:
        """The folders from which the project's files are imported, the project's own first."""
        found = set().union(*self.searched.values()) - {self._base}
        return (self._base, *sorted(found))

    def note(self, name: str, path: Path) -> None:
        """A file is imported by this name."""
        if (name, path) in self._noted:
            return
        self._noted.add((name, path))
        parts = name.split(".")
        if len(parts) == 1 and path.parent / _INIT in self._files and path.name != _INIT:
            self._beside.add(path.parent)
        if path.name == _INIT:
            path = path.parent
        folders = list(path.parents)[: len(parts) - 1]
        names = tuple(part.name for part in reversed(folders))
        if not folders or names != tuple(parts[:-1]):
            return
        self._packaged.update(folders)
        searched = path.parents[len(parts) - 1]
        bare = [folder for folder in folders if folder / _INIT not in self._files]
        if searched not in self._folders or bare != folders:
            self.namespaces.update(bare)
        else:
            self.searched[path.parent].add(searched)

    def note_relative(self, folder: Path, level: int) -> None:
        """A file of a folder imports relatively."""
        for _ in range(level):
            if folder not in self._folders:
                return
            self._packaged.add(folder)
            if folder / _INIT not in self._files:
                self.namespaces.add(folder)
            folder = folder.parent

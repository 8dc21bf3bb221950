"""The modules of a project: their names, the order in which to read them, what they export."""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

from isograd.scan.layout import Layout
from isograd.scan.sources import LARGEST_BYTES, find_files
from isograd.scan.state import ModuleSummary
from isograd.static_graph.scope import FileScope

_IMPORT = re.compile(
    r"^(?:from[ \t]+([.\w]+)[ \t]+import[ \t]+\(?([^\n#(]*)|import[ \t]+([^\n#;]+))", re.MULTILINE
)


#: So many files are held as trees for the static graph; a tree takes 33 times its text.
_MOST_SCOPES = 48


class ModuleIndex:
    """Which file is which module; summaries are added as files are read."""

    def __init__(self, root: Path, files: list[Path]) -> None:
        self.base = root if root.is_dir() else root.parent
        self.names: dict[Path, str] = {}
        self.packages: dict[Path, str] = {}
        self.layout = Layout(self.base)
        #: Names by which the project's files import each other.
        self.imported: set[str] = set()
        self._file_of: dict[str, Path] = {}
        self._summaries: dict[str, ModuleSummary] = {}
        self._prefixes: set[str] = set()
        self._scopes: dict[Path, tuple[int, FileScope | None]] = {}
        self._seen: dict[Path, Seen] = {}
        folders: dict[Path, list[str]] = {}
        for path in files:
            if path.suffix != ".py":
                continue
            parent = path.parent
            if parent not in folders:
                folders[parent] = _package_of(parent)
            self._add(path, folders[parent])

    def _add(self, path: Path, package: list[str]) -> None:
        is_package = path.stem == "__init__"
        relative = list(path.relative_to(self.base).with_suffix("").parts)
        if is_package:
            relative.pop()
        found = package if is_package else [*package, path.stem]
        name = ".".join(found if package else relative)
        self.layout.add(path)
        self.names[path] = name
        self.packages[path] = name if is_package else name.rpartition(".")[0]
        for spelling in {name, ".".join(relative)}:
            if not spelling:
                continue
            self._file_of.setdefault(spelling, path)
            parts = spelling.split(".")
            self._prefixes.update(".".join(parts[: i + 1]) for i in range(len(parts)))

    def has(self, name: str) -> bool:
        """Whether the project has such a module or package."""
        return name in self._prefixes

    def seen_from(self, path: Path) -> Seen:
        """The project as the imports of one of its files see it."""
        folder = path.parent
        if folder not in self._seen:
            self._seen[folder] = Seen(self, folder)
        return self._seen[folder]

    def file_of(self, name: str, folder: Path) -> Path | None:
        """The file that a module's name means in the files of a folder."""
        return self.layout.find(name, folder) or self._file_of.get(name)

    def summary_of(self, path: Path) -> ModuleSummary | None:
        """What a file exports, if it has been read."""
        return self._summaries.get(self.names[path])

    def read_below(self, name: str) -> dict[str, ModuleSummary]:
        """The modules of a package that have been read."""
        return {
            key: summary for key, summary in self._summaries.items() if key.startswith(f"{name}.")
        }

    def scope_of(self, path: Path) -> FileScope | None:
        """The definitions of a file; None where it cannot be read.  The last few are kept."""
        try:
            status = path.stat()
            kept = self._scopes.pop(path, None)
            if kept is None or kept[0] != status.st_mtime_ns:
                kept = status.st_mtime_ns, self._read_scope(path, status.st_size)
        except OSError:
            return None
        self._scopes[path] = kept
        if len(self._scopes) > _MOST_SCOPES:
            self._scopes.pop(next(iter(self._scopes)))
        return kept[1]

    def _read_scope(self, path: Path, size_bytes: int) -> FileScope | None:
        if size_bytes > LARGEST_BYTES:
            return None
        try:
            tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError, RecursionError):
            return None
        return FileScope(tree, self.seen_from(path).scope, self.packages.get(path, ""))

    def keep(self, summary: ModuleSummary) -> None:
        """Remember what a module exports."""
        self._summaries[summary.name] = summary

    def imports(self, path: Path, text: str) -> list[Path]:
        """The project's files that this file imports at its top level."""
        found: list[Path] = []
        own = self.packages.get(path, "")  # a notebook has none
        package = own.split(".") if own else []
        for base, names, plain in _IMPORT.findall(text):
            candidates = [part.split()[0] for part in plain.split(",") if part.split()]
            if base:
                absolute = _absolute(base, package)
                listed = [part.split()[0] for part in names.split(",") if part.split()]
                candidates = [absolute, *(f"{absolute}.{name}" for name in listed)]
            if base.startswith("."):
                self.layout.note_relative(path.parent, len(base) - len(base.lstrip(".")))
            for candidate in candidates:
                target = self.file_of(candidate, path.parent)
                if target is not None and target != path:
                    found.append(target)
                    self.imported.add(candidate)
                    self.layout.note(candidate, target)
        return found


class Seen:
    """What the names of modules mean in the files of one folder."""

    def __init__(self, index: ModuleIndex, folder: Path) -> None:
        self._index = index
        self._folder = folder
        self._paths: dict[str, Path | None] = {}
        self._has: dict[str, bool] = {}

    def has(self, name: str) -> bool:
        """Whether the project has such a module or package."""
        if name not in self._has:
            self._has[name] = self._index.layout.has(name, self._folder) or self._index.has(name)
        return self._has[name]

    def module(self, name: str) -> ModuleSummary | None:
        """The summary of a module, if it has been read."""
        path = self._path(name)
        return None if path is None else self._index.summary_of(path)

    def read_below(self, name: str) -> dict[str, ModuleSummary]:
        """The modules of a package that have been read."""
        return self._index.read_below(self.canonical(name))

    def scope(self, name: str) -> FileScope | None:
        """The definitions of a module, for the static graph."""
        path = self._path(name)
        return None if path is None else self._index.scope_of(path)

    def _path(self, name: str) -> Path | None:
        if name not in self._paths:
            self._paths[name] = self._index.file_of(name, self._folder)
        return self._paths[name]

    def canonical(self, name: str) -> str:
        """The one name under which the project keeps a module; empty if it is not its own."""
        path = self._path(name)
        return "" if path is None else self._index.names[path]


def _absolute(base: str, package: list[str]) -> str:
    name = base.lstrip(".")
    level = len(base) - len(name)
    if not level:
        return name
    kept = package[: len(package) - (level - 1)]
    return ".".join([*kept, name] if name else kept)


def _package_of(folder: Path) -> list[str]:
    """The dotted package of a folder, by the `__init__.py` files above it."""
    parts: list[str] = []
    while (folder / "__init__.py").is_file():
        parts.append(folder.name)
        if folder.parent == folder:
            break
        folder = folder.parent
    return parts[::-1]


def layout_of(folder: Path) -> Layout:
    """The layout of a folder of Python files, by their imports."""
    paths = [path for path in find_files(folder, []) if path.suffix == ".py"]
    index = ModuleIndex(folder, paths)
    for path in paths:
        with contextlib.suppress(OSError):
            index.imports(path, path.read_bytes().decode("utf-8", errors="replace"))
    return index.layout


def reading_order(files: list[Path], imports: dict[Path, list[Path]]) -> Iterator[Path]:
    """Every file once, after the files that it imports, except around a circle."""
    done: set[Path] = set()
    for start in files:
        if start in done:
            continue
        done.add(start)
        stack = [(start, iter(imports.get(start, ())))]
        while stack:
            path, rest = stack[-1]
            following = next((item for item in rest if item not in done), None)
            if following is None:
                stack.pop()
                yield path
            else:
                done.add(following)
                stack.append((following, iter(imports.get(following, ()))))

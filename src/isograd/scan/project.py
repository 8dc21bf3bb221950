"""The modules of a project: their names, the order in which to read them, what they export."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from isograd.scan.state import ModuleSummary

_IMPORT = re.compile(
    r"^(?:from[ \t]+([.\w]+)[ \t]+import[ \t]+\(?([^\n#(]*)|import[ \t]+([^\n#;]+))", re.MULTILINE
)


class ModuleIndex:
    """Which file is which module; summaries are added as files are read."""

    def __init__(self, root: Path, files: list[Path]) -> None:
        self.base = root if root.is_dir() else root.parent
        self.names: dict[Path, str] = {}
        self.packages: dict[Path, str] = {}
        self._file_of: dict[str, Path] = {}
        self._summaries: dict[str, ModuleSummary] = {}
        self._prefixes: set[str] = set()
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

    def module(self, name: str) -> ModuleSummary | None:
        """The summary of a module, if it has been read."""
        path = self._file_of.get(name)
        return None if path is None else self._summaries.get(self.names[path])

    def keep(self, summary: ModuleSummary) -> None:
        """Remember what a module exports."""
        self._summaries[summary.name] = summary

    def imports(self, path: Path, text: str) -> list[Path]:
        """The project's files that this file imports at its top level."""
        found: list[Path] = []
        package = self.packages[path].split(".") if self.packages[path] else []
        for base, names, plain in _IMPORT.findall(text):
            candidates = [part.split()[0] for part in plain.split(",") if part.split()]
            if base:
                absolute = _absolute(base, package)
                listed = [part.split()[0] for part in names.split(",") if part.split()]
                candidates = [absolute, *(f"{absolute}.{name}" for name in listed)]
            for candidate in candidates:
                target = self._file_of.get(candidate)
                if target is not None and target != path:
                    found.append(target)
        return found


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

"""What of a port a file's code reaches in other files: definitions by their names."""

import ast
import collections
from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from pathlib import Path

from isograd.convert.output import GENERATED


@dataclass
class _File:
    """One file: the definitions of its names, what it imports, and statements that only run."""

    defined: dict[str, list[ast.stmt]] = field(default_factory=dict)
    names: dict[str, tuple[Path, str]] = field(default_factory=dict)
    modules: dict[str, Path] = field(default_factory=dict)
    running: list[ast.stmt] = field(default_factory=list)
    runtime: str = ""


@dataclass
class Reach:
    """The definitions of a port's files, and which of them a file's code reads, directly or not.

    A method counts with its class, whether it is called or not.
    """

    files: dict[Path, _File] = field(default_factory=dict)

    def add(self, tree: ast.Module, file: Path, root: Path) -> None:
        """Read a file."""
        known = self.files[file] = _File(runtime=next(_bound(tree), ""))
        for statement in tree.body:
            if isinstance(statement, ast.ImportFrom):
                _import(statement, known, file, root)
                continue
            names = _defined(statement)
            for name in names:
                known.defined.setdefault(name, []).append(statement)
            if not names and not isinstance(statement, ast.Import):
                known.running.append(statement)

    def names(self, file: Path, within: Set[Path]) -> collections.Counter[str]:
        """The names of the generated module that all of a file reaches within some files."""
        known = self.files[file]
        waiting = [(file, part) for several in known.defined.values() for part in several]
        waiting += [(file, part) for part in known.running]
        seen: set[ast.stmt] = set()
        found: collections.Counter[str] = collections.Counter()
        entered = {file}
        while waiting:
            home, statement = waiting.pop()
            if statement in seen:
                continue
            seen.add(statement)
            for part in ast.walk(statement):
                if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
                    if part.value.id == self.files[home].runtime:
                        found[part.attr] += 1
                for target, name in self._targets(part, home):
                    if target not in within:
                        continue
                    if target not in entered:
                        entered.add(target)
                        waiting += [(target, one) for one in self.files[target].running]
                    waiting += [one for one in self._definitions(target, name) if one[0] in within]
        return found

    def _targets(self, node: ast.AST, home: Path) -> Iterator[tuple[Path, str]]:
        known = self.files[home]
        if isinstance(node, ast.Name):
            if node.id in known.defined:
                yield home, node.id
            elif node.id in known.names:
                yield known.names[node.id]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id in known.modules:
                yield known.modules[node.value.id], node.attr

    def _definitions(self, file: Path, name: str) -> list[tuple[Path, ast.stmt]]:
        """Where a name is defined that another file imports, through packages that pass it on."""
        seen = set()
        while (file, name) not in seen and file in self.files:
            seen.add((file, name))
            known = self.files[file]
            if name in known.defined:
                return [(file, part) for part in known.defined[name]]
            if name not in known.names:
                return []
            file, name = known.names[name]
        return []


def _bound(tree: ast.Module) -> Iterator[str]:
    """The names by which a file has the generated module."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                if alias.name == GENERATED:
                    yield alias.asname or alias.name


def _defined(statement: ast.stmt) -> list[str]:
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return [statement.name]
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        return [
            one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)
        ]
    return []


def _import(node: ast.ImportFrom, known: _File, file: Path, root: Path) -> None:
    if not node.level:
        return
    base = file.parents[node.level - 1].joinpath(*(node.module or "").split("."))
    for alias in node.names:
        name = alias.asname or alias.name
        if module := _file_of(base / alias.name, root):
            known.modules[name] = module
        elif home := _file_of(base, root):
            known.names[name] = (home, alias.name)


def _file_of(place: Path, root: Path) -> Path | None:
    for found in (place.with_suffix(".py"), place / "__init__.py"):
        if found.is_file() and found.stem != GENERATED and root in found.parents:
            return found
    return None


def runtime_names(tree: ast.Module) -> Iterator[str]:
    """The names of the generated module that a file uses, as often as it does."""
    bound = set(_bound(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id in bound:
                yield node.attr


def imported_files(tree: ast.Module, file: Path, root: Path) -> Iterator[Path]:
    """The files of the port that relative imports name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            folder = file.parents[node.level - 1]
            base = folder.joinpath(*(node.module or "").split("."))
            for place in (base, *(base / alias.name for alias in node.names)):
                if found := _file_of(place, root):
                    yield found

"""One file of the user's and the files beside it that it imports, read and never run."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from pathlib import Path

from isograd.errors import UsageError
from isograd.init.values import Api, Defined, Value

_LARGEST_BYTES = 4 << 20


@dataclass
class Source:
    """A file: its tree, and what its top-level names are before anything runs.

    module: the name by which the file that is written imports it.
    """

    path: Path
    module: str
    tree: ast.Module
    names: dict[str, Value] = field(default_factory=dict)
    stars: list[Source] = field(default_factory=list)
    neighbours: dict[Path, Source] = field(default_factory=dict)

    def lookup(self, name: str) -> Value | None:
        """A top-level name, also of a star import."""
        if name in self.names:
            return self.names[name]
        return next((found for star in self.stars if (found := star.lookup(name))), None)


def read_source(
    path: Path, module: str | None = None, known: dict[Path, Source] | None = None
) -> Source:
    """Read a file and what it imports from files beside it; raises `UsageError`."""
    known = {} if known is None else known
    if path in known:
        return known[path]
    try:
        if path.stat().st_size > _LARGEST_BYTES:
            raise UsageError(f"{path} is larger than a program", "Give a Python source file.")
        tree = ast.parse(path.read_bytes(), filename=str(path))
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror}", "Give the path of a Python file."
        ) from None
    except (SyntaxError, ValueError) as error:
        line = f":{error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        raise UsageError(f"{path}{line} is not valid Python: {error}", "Correct it.") from None
    source = Source(path, module or path.stem, tree, neighbours=known)
    known[path] = source
    for statement in tree.body:
        bind_definition(source, statement)
    return source


def bind_definition(source: Source, statement: ast.stmt) -> None:
    """Bind what an import, a def or a class at the top of a file defines."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        code = f"{source.module}.{statement.name}"
        source.names[statement.name] = Defined(code, statement, source)
    elif isinstance(statement, ast.Import):
        for alias in statement.names:
            root = alias.name if alias.asname else alias.name.partition(".")[0]
            source.names[alias.asname or root] = _module(source, root)
    elif isinstance(statement, ast.ImportFrom):
        _from_import(source, statement)
    elif isinstance(statement, (ast.Try, ast.If)):
        for inner in statement.body:
            if isinstance(inner, (ast.Import, ast.ImportFrom)):
                bind_definition(source, inner)


def _module(source: Source, name: str) -> Value:
    neighbour = _beside(source, name)
    return Value(f"{source.module}") if neighbour else Api(name, name)


def _from_import(source: Source, statement: ast.ImportFrom) -> None:
    base = "." * statement.level + (statement.module or "")
    neighbour = _beside(source, base)
    for alias in statement.names:
        name = alias.asname or alias.name
        if neighbour is None:
            inner = _beside(source, f"{base.rstrip('.')}.{alias.name}") if statement.level else None
            full = f"{base}.{alias.name}"
            source.names[name] = Value(f"{source.module}.{name}") if inner else Api(full, full)
        elif alias.name == "*":
            source.stars.append(neighbour)
        else:
            found = neighbour.lookup(alias.name)
            if isinstance(found, Defined):
                found = Defined(f"{source.module}.{name}", found.node, found.scope)
            source.names[name] = found or Value(f"{source.module}.{name}")


def _beside(source: Source, name: str) -> Source | None:
    """The file of a module that lies beside this one."""
    parts = [part for part in name.split(".") if part]
    folder = source.path.parent
    for place in (folder.joinpath(*parts).with_suffix(".py") if parts else None,):
        if place is not None and place.is_file() and place != source.path:
            try:
                return read_source(place, source.module, source.neighbours)
            except UsageError:
                return None
    return None

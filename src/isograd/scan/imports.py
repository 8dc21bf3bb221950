"""Imports: what a name means that comes from torch, from the project, or from elsewhere."""

from __future__ import annotations

import ast

from isograd.scan.state import State, qualified
from isograd.scan.values import Namespace

#: Packages of which `import *` cannot be followed.
_STAR = ("torch",)


def bind_import(state: State, node: ast.Import) -> None:
    """`import a.b` binds a; `import a.b as c` binds c to a.b."""
    for alias in node.names:
        root = alias.name.partition(".")[0]
        state.roots.add(root)
        _note(state, alias.name)
        if alias.asname:
            state.env[alias.asname] = qualified(state, alias.name)
        else:
            state.env[root] = qualified(state, root)


def bind_from_import(state: State, node: ast.ImportFrom) -> None:
    """`from a import b as c`, relative or not, and `from a import *`."""
    base = absolute_name(state.package, node)
    if base is None:
        for alias in node.names:
            state.env[alias.asname or alias.name] = None
        return
    root = base.partition(".")[0]
    state.roots.add(root)
    if not all(state.project.has(f"{base}.{alias.name}") for alias in node.names):
        _note(state, base)
    for alias in node.names:
        _note(state, f"{base}.{alias.name}")
        if alias.name == "*":
            _bind_star(state, base)
        else:
            state.env[alias.asname or alias.name] = _member(state, base, alias.name)


def _note(state: State, name: str) -> None:
    """Something is imported from a module, if it is one of the project's.

    A package has what it imports itself.  In a circle of imports it is not read yet.
    """
    if not state.project.has(name):
        return
    imported = state.summary.imported
    summary = state.project.module(name)
    if summary is None:
        imported.update(state.project.read_below(name))
        return
    imported[name] = summary
    if summary.is_package:
        imported.update(summary.imported)


def _member(state: State, base: str, name: str):  # type: ignore[no-untyped-def]
    if state.project.has(base):
        summary = state.project.module(base)
        if summary is not None and name in summary.exports:
            return summary.exports[name]
        full = f"{base}.{name}"
        return Namespace(full) if state.project.has(full) else None
    return qualified(state, f"{base}.{name}")


def _bind_star(state: State, base: str) -> None:
    """Everything public of a module of the project or of torch."""
    if state.project.has(base):
        summary = state.project.module(base)
        if summary is not None:
            exports = summary.exports
            chosen = summary.public
            if chosen is None:
                chosen = tuple(name for name in exports if not name.startswith("_"))
            for name in chosen:
                state.env[name] = exports.get(name)
        return
    if base.partition(".")[0] in _STAR:
        prefix = state.names.canonical(base) + "."
        for name in [*state.names.kinds, *state.names.spelled]:
            if name.startswith(prefix) and "." not in name[len(prefix) :]:
                state.env[name[len(prefix) :]] = qualified(state, name)


def absolute_name(package: str, node: ast.ImportFrom) -> str | None:
    """The dotted name of the module that is imported from; None above the project's root."""
    if not node.level:
        return node.module or ""
    parts = package.split(".") if package else []
    if node.level - 1 > len(parts):
        return None
    kept = parts[: len(parts) - (node.level - 1)]
    if node.module:
        kept.append(node.module)
    return ".".join(kept)

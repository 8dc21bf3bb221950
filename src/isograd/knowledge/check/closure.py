"""The source of the runtime functions that a template uses, with all that they call."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from isograd import runtime

RUNTIME = Path(runtime.__file__).parent
_PACKAGE = "isograd.runtime"
#: A definition by its file's stem and its name.
Key = tuple[str, str]


@dataclass
class _File:
    """What a file of runtime functions defines, and what its imports of others mean."""

    sources: dict[str, str] = field(default_factory=dict)
    names: dict[str, frozenset[str]] = field(default_factory=dict)
    borrowed: dict[str, Key] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)


@cache
def _files(left_out: frozenset[str]) -> dict[str, _File]:
    paths = sorted(RUNTIME.glob("*.py"))
    stems = frozenset(path.stem for path in paths)
    return {path.stem: _read(path, stems, left_out) for path in paths}


def _read(path: Path, stems: frozenset[str], left_out: frozenset[str]) -> _File:
    """Each top-level name's code without comments and docstrings, and the names in it."""
    found = _File()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(_PACKAGE):
            stem = (node.module or "")[len(_PACKAGE) + 1 :]
            for alias in node.names:
                name = alias.asname or alias.name
                if not stem and alias.name in stems:
                    found.files[name] = alias.name
                else:
                    found.borrowed[name] = (stem, alias.name)
            continue
        if isinstance(node, ast.ClassDef):
            node.body = [one for one in node.body if getattr(one, "name", "") not in left_out]
            node.body = node.body or [ast.Pass()]
        source = ast.unparse(_WithoutDocstrings().visit(node))
        for name in _defined(node):
            found.sources[name], found.names[name] = source, _names(node)
    return found


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else []
    if isinstance(node, ast.AnnAssign):
        targets = [node.target]
    return [n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)]


def _names(node: ast.AST) -> frozenset[str]:
    """Plain names, and attributes of names (`layers.linear`) with their dot."""
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
            names.add(f"{part.value.id}.{part.attr}")
    return frozenset(names)


class _WithoutDocstrings(ast.NodeTransformer):
    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        return ast.Pass() if isinstance(node.value, ast.Constant) else node


def _meant(name: str, file: _File, stem: str) -> Key | None:
    """The definition that a name of a file means."""
    first, dot, attribute = name.partition(".")
    if dot:
        return (file.files[first], attribute) if first in file.files else None
    return (stem, name) if name in file.sources else file.borrowed.get(name)


def sources_of(text: str, left_out: frozenset[str] = frozenset()) -> str:
    """The source of every runtime function named in a template, and of what it needs.

    left_out: names of methods that do not count.
    """
    files = _files(left_out)
    homes = runtime.homes()
    waiting: list[Key] = [
        (homes[name], name) for name in re.findall(r"composites\.(\w+)", text) if name in homes
    ]
    seen: dict[Key, str] = {}
    while waiting:
        stem, name = waiting.pop()
        file = files.get(stem)
        if file is None or (stem, name) in seen:
            continue
        if name not in file.sources:
            waiting += [file.borrowed[name]] if name in file.borrowed else []
            continue
        seen[stem, name] = file.sources[name]
        meant = (_meant(part, file, stem) for part in file.names[name])
        waiting += [key for key in meant if key is not None]
    return "\n".join(seen[key] for key in sorted(seen))

"""The source of the compositions that a template uses, with all that they call."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

from isograd.knowledge.store import FOLDER

COMPOSITES = FOLDER / "composites"


@cache
def _definitions() -> dict[str, tuple[str, frozenset[str]]]:
    """Each top-level name's code without comments and docstrings, and the names in it."""
    found: dict[str, tuple[str, frozenset[str]]] = {}
    for path in sorted(COMPOSITES.glob("*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.parse(text).body:
            source = ast.unparse(_WithoutDocstrings().visit(node))
            used = frozenset(_names(node))
            for name in _defined(node, path):
                found[name] = (source, used)
    return found


def _defined(node: ast.stmt, path: Path) -> list[str]:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, ast.Assign):
        return [
            n.id for target in node.targets for n in ast.walk(target) if isinstance(n, ast.Name)
        ]
    if isinstance(node, ast.ImportFrom) and path.name == "__init__.py":
        return [alias.asname for alias in node.names if alias.asname not in (None, alias.name)]
    return []


def _names(node: ast.AST) -> set[str]:
    """Plain names, and attributes of the modules beside this one (`layers.linear`)."""
    modules = {path.stem for path in COMPOSITES.glob("*.py")}
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
            if part.value.id in modules:
                names.add(part.attr)
        if isinstance(part, ast.ImportFrom):
            names |= {alias.name for alias in part.names}
    return names


class _WithoutDocstrings(ast.NodeTransformer):
    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        return ast.Pass() if isinstance(node.value, ast.Constant) else node


def sources_of(text: str) -> str:
    """The source of every composition named in a template, and of what it needs."""
    known = _definitions()
    waiting = re.findall(r"composites\.(\w+)", text)
    seen: dict[str, str] = {}
    while waiting:
        name = waiting.pop()
        if name in seen or name not in known:
            continue
        source, used = known[name]
        seen[name] = source
        waiting += sorted(used & known.keys() - seen.keys())
    return "\n".join(seen[name] for name in sorted(seen))

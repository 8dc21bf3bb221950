"""`D = torch.distributions` is read as `import torch.distributions as D`."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache

from isograd.scan.names import torch_names
from isograd.static_graph.scope import below

_ASSIGNS = re.compile(r"^[ \t]*\w+[ \t]*=[ \t]*\w+(?:\.\w+)*\.(\w+)[ \t]*(?:#.*)?$", re.MULTILINE)


@cache
def _last_names() -> frozenset[str]:
    """`distributions` of `torch.distributions`: the last names of torch's packages."""
    names = torch_names()
    spelled = (old for old, new in names.spelled.items() if names.kind(new) == "m")
    packages = (name for name, kind in names.kinds.items() if kind == "m")
    return frozenset(name.rpartition(".")[2] for name in (*packages, *spelled))


def import_packages(text: str, tree: ast.Module) -> str:
    """The text with its aliases of torch's packages as imports, in the same lines.

    An alias is a name that nothing else in the file binds.
    """
    if "torch" not in text or _last_names().isdisjoint(_ASSIGNS.findall(text)):
        return text
    nodes = below(tree)
    imported = _imported(nodes)
    bound = Counter(_bound(nodes))
    in_classes = {part for node in nodes if isinstance(node, ast.ClassDef) for part in node.body}
    lines = text.split("\n")
    for node in nodes:
        if not isinstance(node, ast.Assign) or node in in_classes or len(node.targets) != 1:
            continue
        target, package = node.targets[0], _package(node.value, imported, bound)
        if not package or not isinstance(target, ast.Name) or bound[target.id] != 1:
            continue
        if node.lineno != node.end_lineno or node.lineno > len(lines):
            continue
        line = lines[node.lineno - 1]
        if line.isascii() and line.startswith(target.id, node.col_offset):
            code = f"import {package} as {target.id}"
            lines[node.lineno - 1] = line[: node.col_offset] + code + line[node.end_col_offset :]
    return "\n".join(lines)


def _imported(nodes: list[ast.AST]) -> dict[str, str]:
    """What the file's names of torch and its packages mean."""
    found: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for part in node.names:
                name = part.name if part.asname else part.name.partition(".")[0]
                found[part.asname or name] = name
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for part in node.names:
                found[part.asname or part.name] = f"{node.module}.{part.name}"
    return {name: full for name, full in found.items() if full.partition(".")[0] == "torch"}


def _bound(nodes: list[ast.AST]) -> list[str]:
    """Each binding of a name by anything in a file."""
    found: list[str] = []
    for node in nodes:
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.append(node.id)
        elif isinstance(node, ast.arg):
            found.append(node.arg)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.append(node.name)
        elif isinstance(node, ast.alias):
            found.append(node.asname or node.name.partition(".")[0])
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            found += node.names
    return found


def _package(value: ast.expr, imported: dict[str, str], bound: Counter[str]) -> str:
    """The package of torch's that an expression names; empty where it is none."""
    parts: list[str] = []
    while isinstance(value, ast.Attribute):
        parts.insert(0, value.attr)
        value = value.value
    if not parts or not isinstance(value, ast.Name) or value.id not in imported:
        return ""
    if bound[value.id] != 1:
        return ""
    names = torch_names()
    full = names.canonical(".".join((imported[value.id], *parts)))
    return full if names.kind(full) == "m" else ""

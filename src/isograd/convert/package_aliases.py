"""`D = torch.distributions` is read as `import torch.distributions as D`, and `T = torch` so."""

from __future__ import annotations

import ast
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache

from isograd.scan.names import torch_names
from isograd.static_graph.scope import below

#: The last name of what a statement may give another name to: `= a.b`, `= a.b, c.d`.
_VALUES = re.compile(r"[=,][ \t]*(?:\w+\.)*(\w+)[ \t]*(?=$|[,;#)\]])", re.MULTILINE)
_RENAMED = re.compile(r"\bimport[ \t]+torch[\w.]*[ \t]+as[ \t]+(\w+)")


@dataclass(frozen=True)
class _Alias:
    """A statement that does nothing but give names to packages of torch's."""

    node: ast.Assign
    pairs: tuple[tuple[str, ast.expr], ...]


@cache
def _last_names() -> frozenset[str]:
    """`distributions` of `torch.distributions`: the last names of torch and its packages."""
    names = torch_names()
    spelled = (old for old, new in names.spelled.items() if names.kind(new) == "m")
    packages = (name for name, kind in names.kinds.items() if kind == "m")
    return frozenset(name.rpartition(".")[2] for name in ("torch", *packages, *spelled))


def import_packages(text: str, tree: ast.Module) -> str:
    """The text with its aliases of torch and its packages as imports, in the same lines.

    An alias is a name that everything in the file that binds it binds to one package.
    """
    if "torch" not in text:
        return text
    last = {*_last_names(), *_RENAMED.findall(text)}
    if last.isdisjoint(_VALUES.findall(text)):
        return text
    nodes = below(tree)
    in_classes = {part for node in nodes if isinstance(node, ast.ClassDef) for part in node.body}
    aliases = [
        _Alias(node, pairs)
        for node in nodes
        if isinstance(node, ast.Assign) and node not in in_classes and (pairs := _pairs(node))
    ]
    return _with_imports(text, aliases, _packages(nodes, aliases)) if aliases else text


def _with_imports(text: str, aliases: list[_Alias], known: dict[str, str]) -> str:
    """The text with the aliases whose names are all known as imports."""
    lines = text.split("\n")
    for alias in sorted(aliases, key=lambda alias: -alias.node.col_offset):  # the last of a line
        node = alias.node
        if node.lineno != node.end_lineno or node.lineno > len(lines):
            continue
        line, names = lines[node.lineno - 1], [name for name, _ in alias.pairs]
        if line.isascii() and line.startswith(names[0], node.col_offset):
            if all(name in known for name in names):
                code = "import " + ", ".join(f"{known[name]} as {name}" for name in names)
                lines[node.lineno - 1] = (
                    line[: node.col_offset] + code + line[node.end_col_offset :]
                )
    return "\n".join(lines)


def _pairs(node: ast.Assign) -> tuple[tuple[str, ast.expr], ...]:
    """The names of an assignment with their values, which are dotted names; empty: none, others."""
    target, value = node.targets[0], node.value
    pairs = [(target, value)]
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        if len(target.elts) != len(value.elts) or target.col_offset != target.elts[0].col_offset:
            return ()
        pairs = [*zip(target.elts, value.elts, strict=True)]
    found = tuple((one.id, of) for one, of in pairs if isinstance(one, ast.Name) and _parts(of))
    return found if len(node.targets) == 1 and len(found) == len(pairs) else ()


def _packages(nodes: list[ast.AST], aliases: list[_Alias]) -> dict[str, str]:
    """The packages of torch's that the file's names mean, whichever statement binds them."""
    bound = Counter(_bound(nodes))
    meanings: dict[str, list[str]] = {}
    for name, full in _imported(nodes):
        meanings.setdefault(name, []).append(full)
    waiting = [pair for alias in aliases for pair in alias.pairs]
    known: dict[str, str] = {}
    while True:
        known |= {
            name: found[0]
            for name, found in meanings.items()
            if len(set(found)) == 1 and len(found) == bound[name]
        }
        ready = [(pair, full) for pair in waiting if (full := _package(pair[1], known))]
        if not ready:
            return known
        for pair, full in ready:
            waiting.remove(pair)
            meanings.setdefault(pair[0], []).append(full)


def _imported(nodes: list[ast.AST]) -> list[tuple[str, str]]:
    """What the file's imports of torch and its packages bind."""
    found: list[tuple[str, str]] = []
    names = torch_names()
    for node in nodes:
        if isinstance(node, ast.Import):
            for part in node.names:
                name = part.name if part.asname else part.name.partition(".")[0]
                found.append((part.asname or name, name))
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found += [
                (part.asname or part.name, f"{node.module}.{part.name}") for part in node.names
            ]
    return [
        (name, names.canonical(full)) for name, full in found if full.partition(".")[0] == "torch"
    ]


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


def _parts(value: ast.expr) -> tuple[str, ...]:
    """The names of a dotted name; empty for anything else."""
    parts: list[str] = []
    while isinstance(value, ast.Attribute):
        parts.insert(0, value.attr)
        value = value.value
    return (value.id, *parts) if isinstance(value, ast.Name) else ()


def _package(value: ast.expr, known: dict[str, str]) -> str:
    """The package of torch's that a dotted name means; empty where it is none."""
    first, *rest = _parts(value)
    if first not in known:
        return ""
    names = torch_names()
    full = names.canonical(".".join((known[first], *rest)))
    return full if full == "torch" or names.kind(full) == "m" else ""

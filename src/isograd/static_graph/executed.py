"""What the static graph makes of each runtime function, as it was executed: `executed_verdict`.

A port holds copies of runtime functions.  A copy is known by its text and the text of all that it
calls, not by its name: what was changed in the port is not what was executed.
"""

from __future__ import annotations

import ast
import copy
import functools
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from isograd.static_graph.scope import Definition, FileScope, below

#: Written by `python -m isograd.knowledge check --compiled`.
RUNTIME_FILE = Path(__file__).with_name("runtime-cpu.json")

#: Methods that store and load values: nothing that is compiled calls them.
OUTSIDE_GRAPHS = frozenset(
    "state_dict load_state_dict _save_to_state_dict _load_from_state_dict".split()
)

#: Every example compiles to the same; some do.
SAME, DEPENDS = "same", "depends"


@dataclass(frozen=True)
class Executed:
    """A runtime function under `jit` and GRAPH_MODE.

    name: as the runtime has it; verdict: "same"; "refused", "differs", "gradient-lost" or
    "gradient-differs" where every example ends so; "depends" where some do; detail: the first
    reason of a refusal.
    """

    name: str
    verdict: str
    detail: str = ""


def fingerprint(file: FileScope, name: str) -> str:
    """A hash of a function or class and of all that it calls, wherever that is defined."""
    waiting: list[Definition] = [(file, name)]
    seen: dict[tuple[int, str], str] = {}
    while waiting:
        home, wanted = waiting.pop()
        if (id(home), wanted) in seen:
            continue
        text, called = _described(home, wanted)
        if text:
            seen[id(home), wanted] = text
            waiting += called
    whole = "\n".join(sorted(seen.values()))
    return hashlib.sha256(whole.encode()).hexdigest()[:16]


def _described(home: FileScope, name: str) -> tuple[str, tuple[Definition, ...]]:
    """The text of a definition, empty where there is none, and what it names of the project."""
    found = home.kept_texts.get(name)
    if found is None:
        node = home.definition(name)
        found = ("", ())
        if node is not None:
            node = _compiled_part(node)
            found = _text(home, node), tuple(_called(home, node))
        home.kept_texts[name] = found
    return found


def _compiled_part(node: ast.stmt) -> ast.stmt:
    """A class without its methods that no graph calls; anything else as it is."""
    if not isinstance(node, ast.ClassDef):
        return node
    kept = [one for one in node.body if getattr(one, "name", "") not in OUTSIDE_GRAPHS]
    shown = copy.copy(node)
    shown.body = kept or [ast.Pass()]
    return shown


def _called(home: FileScope, node: ast.AST) -> Iterator[Definition]:
    for part in _free(node):
        if isinstance(part, ast.Name) and home.definition(part.id) is not None:
            yield home, part.id
        elif isinstance(part, (ast.Name, ast.Attribute)):
            other = home.elsewhere(part)
            if other is not None:
                yield other


def _free(node: ast.AST) -> Iterator[ast.AST]:
    """What stands below a definition, without the names that a function binds itself."""
    waiting: list[tuple[ast.AST, frozenset[str]]] = [(node, frozenset())]
    while waiting:
        part, bound = waiting.pop()
        if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            bound |= _bound_in(part)
        if not (isinstance(part, ast.Name) and part.id in bound):
            yield part
        waiting += [(inner, bound) for inner in ast.iter_child_nodes(part)]


def _bound_in(function: ast.AST) -> frozenset[str]:
    """Names of arguments, and those that are assigned in a function or in what it holds."""
    found = set()
    for part in below(function):
        if isinstance(part, ast.arg):
            found.add(part.arg)
        elif isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
            found.add(part.id)
    return frozenset(found)


def _text(home: FileScope, node: ast.AST) -> str:
    """The code without docstrings; a definition of another file by its bare name."""
    return ast.unparse(_Plain(home).visit(copy.deepcopy(node)))


class _Plain(ast.NodeTransformer):
    def __init__(self, home: FileScope) -> None:
        self._home = home

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        return ast.Pass() if isinstance(node.value, ast.Constant) else self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        # A port that holds a function `max` calls Python's own as `builtins.max`.
        is_builtin = isinstance(node.value, ast.Name) and node.value.id == "builtins"
        if is_builtin or self._home.elsewhere(node) is not None:
            return ast.Name(node.attr)
        return self.generic_visit(node)


def executed_verdict(file: FileScope, name: str) -> Executed | None:
    """What was executed of a definition that is a copy of a runtime function; None otherwise."""
    if name not in _names() or file.framework == "torch":  # no copy imports torch alone
        return None
    return _table_row(fingerprint(file, name))


def verdict_of(name: str) -> Executed | None:
    """What was executed of a runtime function, by its name there; None where nothing was."""
    row = _by_name().get(name)
    return None if row is None else Executed(row["name"], row["verdict"], row["detail"])


@functools.cache
def _by_name() -> dict[str, dict[str, str]]:
    return {row["name"]: row for row in _table().values()}


def is_executed_as_same(file: FileScope, name: str) -> bool:
    """Whether a definition is a copy of a runtime function that compiles as it runs eagerly."""
    executed = executed_verdict(file, name)
    return executed is not None and executed.verdict == SAME


def _table_row(key: str) -> Executed | None:
    row = _table().get(key)
    return None if row is None else Executed(row["name"], row["verdict"], row["detail"])


@functools.cache
def _names() -> frozenset[str]:
    """The names that a copy may have: a hash is made of nothing else."""
    return frozenset(row["name"] for row in _table().values())


@functools.cache
def _table() -> dict[str, dict[str, str]]:
    """The rows of the table by fingerprint; empty where nothing was executed yet."""
    if not RUNTIME_FILE.is_file():
        return {}
    results = json.loads(RUNTIME_FILE.read_text(encoding="utf-8"))["results"]
    return {
        row["of"]: {"name": name, "verdict": row["verdict"], "detail": row.get("detail", "")}
        for name, row in results.items()
    }

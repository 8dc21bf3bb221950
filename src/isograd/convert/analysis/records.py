"""Fields of named tuples that are given a list: `Block(stride=[2])`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from isograd.static_graph.scope import FileScope, below

#: A file without one of these words makes no named tuples and changes none.
WORDS = ("namedtuple", "NamedTuple", "_replace")


def fields_with_lists(tree: ast.Module) -> frozenset[str]:
    """The fields that a file gives a list, of whichever named tuple; by keyword or by position.

    Fields of one name are taken together: which tuple a value is, is not asked.
    """
    scope = FileScope(tree)
    fields = dict(_fields(tree, scope))
    found: set[str] = set()
    for call in (part for part in below(tree) if isinstance(part, ast.Call)):
        made = call.func.id if isinstance(call.func, ast.Name) else ""
        if made in scope.named_tuples:
            given = zip(fields.get(made, ()), call.args, strict=False)
            found.update(name for name, value in given if _is_list(value))
        elif getattr(call.func, "attr", "") != "_replace":
            continue
        found.update(part.arg for part in call.keywords if part.arg and _is_list(part.value))
    return frozenset(found)


def _is_list(value: ast.expr) -> bool:
    return isinstance(value, (ast.List, ast.ListComp))


def _fields(tree: ast.Module, scope: FileScope) -> Iterator[tuple[str, list[str]]]:
    """The names of the fields of each named tuple at module level, in their order."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name in scope.named_tuples:
            fields = (part.target for part in node.body if isinstance(part, ast.AnnAssign))
            yield node.name, [part.id for part in fields if isinstance(part, ast.Name)]
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            names = _names(node.value)
            yield from ((t.id, names) for t in node.targets if isinstance(t, ast.Name))


def _names(call: ast.Call) -> list[str]:
    """`["a", "b"]` of `namedtuple("X", ["a", "b"])` and of `namedtuple("X", "a b")`."""
    given = call.args[1] if len(call.args) > 1 else None
    if isinstance(given, (ast.List, ast.Tuple)):
        return [str(getattr(part, "value", "")) for part in given.elts]
    text = getattr(given, "value", "")
    return text.replace(",", " ").split() if isinstance(text, str) else []

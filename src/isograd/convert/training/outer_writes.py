"""Writes in place into tensors from outside of a function: a static graph leaves them out."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from isograd.convert.training.paths import root_of
from isograd.scan.names_in_place import changes_in_place
from isograd.static_graph.scope import below


def imported(tree: ast.Module) -> frozenset[str]:
    """The names that a file's imports bind."""
    return frozenset(
        (one.asname or one.name).partition(".")[0]
        for node in below(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for one in node.names
    )


def outer_writes(function: ast.AST, imports: Collection[str]) -> Iterator[ast.expr]:
    """What is written into that the function neither takes nor binds: `seen.add_(x.sum())`.

    imports: as `imported` gives them, of its file.
    """
    nodes = below(function)
    own = _bound(nodes)
    for node in nodes:
        for target in _written(node, imports):
            root = root_of(target)
            if root is not None and root.id not in own and not _is_made(target):
                yield target


def _bound(nodes: list[ast.AST]) -> set[str]:
    """The names that a function and those in it bind for themselves."""
    found = {node.arg for node in nodes if isinstance(node, ast.arg)}
    outer = set[str]()
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Global):
            outer.update(node.names)
    return found - outer


def _written(node: ast.AST, imports: Collection[str]) -> Iterator[ast.expr]:
    """The expressions of which a node changes the elements."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        yield node.value
    elif isinstance(node, ast.Call):
        yield from (one.value for one in node.keywords if one.arg == "out")
        if isinstance(node.func, ast.Attribute) and changes_in_place(node.func.attr):
            owner = root_of(node.func)
            is_function = owner is not None and owner.id in imports
            yield from node.args[:1] if is_function else (node.func.value,)


def _is_made(target: ast.expr) -> bool:
    """`Tensor(2, 3)`, which a call makes."""
    while isinstance(target, (ast.Attribute, ast.Subscript, ast.Call)):
        if isinstance(target, ast.Call) and isinstance(target.func, ast.Name):
            return True
        target = target.func if isinstance(target, ast.Call) else target.value
    return False

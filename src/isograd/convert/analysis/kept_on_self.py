"""What a method keeps on `self` and reads itself: `self.m = x * 2`, then `self.m.sum()`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from isograd.static_graph.scope import below, blocks

_Function = ast.FunctionDef
_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


@dataclass
class OwnReads:
    """An attribute of a method that is bound before all that the method reads of it.

    targets: those of the assignments, whole; reads: what a name can say as well.
    """

    targets: list[ast.expr] = field(default_factory=list)
    reads: list[ast.Attribute] = field(default_factory=list)


def attributes_of_self(method: _Function) -> Iterator[ast.Attribute]:
    """`self.m`, each of them, by the name that the method has for self."""
    own = method.args.args[0].arg if method.args.args else ""
    for node in below(method):
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == own:
            yield node


def own_reads(
    method: _Function, name: str, parent: Callable[[ast.AST], ast.AST | None]
) -> OwnReads | None:
    """The reads of an attribute that a name can say, or None where one of them may see more."""
    nodes = [node for node in attributes_of_self(method) if node.attr == name]
    reads = [node for node in nodes if isinstance(node.ctx, ast.Load)]
    if not reads or not all(_may_be_name(node, method, parent) for node in nodes):
        return None
    for block in _blocks(method):
        for number, statement in enumerate(block):
            if not isinstance(statement, ast.Assign) or not _binds(statement, nodes):
                continue
            behind = {id(part) for later in block[number + 1 :] for part in below(later)}
            if all(id(read) in behind for read in reads):
                bound = [id(part) for part in statement.targets] + [*behind]
                targets = [_target(n, parent) for n in nodes if isinstance(n.ctx, ast.Store)]
                return OwnReads([one for one in targets if id(one) in bound], reads)
    return None


def _binds(statement: ast.Assign, nodes: list[ast.Attribute]) -> bool:
    parts = [
        part
        for target in statement.targets
        for part in (target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target])
    ]
    return any(part is node for part in parts for node in nodes)


def _target(node: ast.AST, parent: Callable[[ast.AST], ast.AST | None]) -> ast.expr:
    """The whole target of which an attribute is a part."""
    around = parent(node)
    assert isinstance(node, ast.expr)
    return around if isinstance(around, (ast.Tuple, ast.List)) else node


def _may_be_name(
    node: ast.Attribute, method: _Function, parent: Callable[[ast.AST], ast.AST | None]
) -> bool:
    """Whether it is read, or bound by an assignment to it or to a tuple of it, and no more."""
    around = parent(node)
    part: ast.AST | None = around
    while part is not None and part is not method:
        if isinstance(part, _INNER):
            return False
        part = parent(part)
    if isinstance(node.ctx, ast.Load):
        while isinstance(around, ast.Subscript):
            if not isinstance(around.ctx, ast.Load):
                return False
            around = parent(around)
        is_changed = isinstance(around, ast.Attribute) and _changes(around)
        return not is_changed and not isinstance(around, ast.AugAssign)
    if isinstance(around, (ast.Tuple, ast.List)):
        around = parent(around)
    return isinstance(node.ctx, ast.Store) and isinstance(around, ast.Assign)


def _changes(member: ast.Attribute) -> bool:
    """`.add_`, `.append`: what may change the value itself; `.data`, and what is bound to it."""
    is_bound = not isinstance(member.ctx, ast.Load)
    return is_bound or member.attr == "data" or member.attr.endswith("_")


def _blocks(method: _Function) -> Iterator[list[ast.stmt]]:
    """The lists of statements of a method, its own first."""
    for node in below(method):
        yield from blocks(node)

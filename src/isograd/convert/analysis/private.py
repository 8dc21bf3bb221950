"""The dictionaries in which torch's modules keep parameters: whose they are, and if only read."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping

from isograd.convert.places import Place, place
from isograd.scan.values import ClassInfo, Instance, Value

#: Where torch's modules keep what they hold.
PRIVATE = frozenset(("_parameters", "_modules"))
_READS = frozenset("items keys values get copy".split())
_FUNCTIONS = frozenset("len list dict bool any sorted iter set tuple enumerate".split())


def is_own(owner: Value, name: str) -> bool:
    """Whether an attribute is one that a class binds itself, and the class is no module."""
    if isinstance(owner, Instance):
        return not owner.is_guess and is_own(owner.of, name)
    if not isinstance(owner, ClassInfo) or owner.is_mixed:
        return False
    return name in owner.attributes or any(is_own(base, name) for base in owner.bases)


def of_modules(places: Collection[Place], owners: Mapping[Place, Value]) -> set[Place]:
    """The attributes of which nothing shows that they are a class's own."""
    return {at for at in places if not is_own(owners.get(at), "_parameters")}


def only_reads(module: ast.Module, places: Collection[Place]) -> bool:
    """Whether all of these attributes stand where nothing changes or keeps a dictionary."""
    return all(
        _is_read(child, parent)
        for parent in ast.walk(module)
        for child in ast.iter_child_nodes(parent)
        if isinstance(child, ast.Attribute) and place(child) in places
    )


def _is_read(node: ast.Attribute, parent: ast.AST) -> bool:
    """`if m._parameters`, `for name in m._parameters`, `m._parameters.items()`, `len(…)`."""
    if not isinstance(node.ctx, ast.Load):
        return False
    if isinstance(parent, ast.Attribute):
        return parent.attr in _READS
    if isinstance(parent, ast.Call):
        return getattr(parent.func, "id", "") in _FUNCTIONS
    if isinstance(parent, ast.Subscript):
        return isinstance(parent.ctx, ast.Load)
    if isinstance(parent, (ast.For, ast.comprehension)):
        return parent.iter is node
    return isinstance(parent, (ast.If, ast.While, ast.IfExp, ast.BoolOp, ast.UnaryOp, ast.Compare))

"""What classes bind to their attributes: by assignments, and by adding children by their names."""

from __future__ import annotations

import ast
from collections import defaultdict

from isograd.convert.tree import Tree


def attribute_values(tree: Tree) -> dict[tuple[ast.AST, str], list[ast.expr]]:
    """What is bound to attributes, by class and attribute, each branch of it by itself.

    By assignments, and by `self.add_module("name", …)`.  A class has what its inner classes bind
    as well.
    """
    found: dict[tuple[ast.AST, str], list[ast.expr]] = defaultdict(list)
    for node in tree.of(ast.Assign, ast.AnnAssign, ast.Call):
        names, value = _attributes_bound(node)
        for owner in tree.above(node) if names and value is not None else ():
            if isinstance(owner, ast.ClassDef):
                for name in names:
                    found[owner, name] += _branches_of(value)  # type: ignore[arg-type]  # is not None
    return found


def _attributes_bound(node: ast.AST) -> tuple[list[str], ast.expr | None]:
    """The attributes that a node binds, with the value."""
    if isinstance(node, ast.Call):
        child = child_added(node)
        return ([], None) if child is None else ([child[0]], child[1])
    if isinstance(node, ast.AnnAssign):
        targets: list[ast.expr] = [node.target]
    else:
        assert isinstance(node, ast.Assign)
        targets = node.targets
    names = [target.attr for target in targets if isinstance(target, ast.Attribute)]
    return names, node.value


def child_added(node: ast.AST) -> tuple[str, ast.expr] | None:
    """The name and the module of `self.add_module("name", module)`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    if node.func.attr not in ("add_module", "register_module") or len(node.args) != 2:
        return None
    name = node.args[0]
    is_text = isinstance(name, ast.Constant) and isinstance(name.value, str)
    if not is_text or getattr(node.func.value, "id", "") != "self":
        return None
    return name.value, node.args[1]  # type: ignore[attr-defined]  # a constant


def _branches_of(value: ast.expr) -> list[ast.expr]:
    """What an expression may be: `f() if x else g()` either."""
    if isinstance(value, ast.IfExp):
        return [*_branches_of(value.body), *_branches_of(value.orelse)]
    if isinstance(value, ast.BoolOp):
        return [part for one in value.values for part in _branches_of(one)]
    return [value]

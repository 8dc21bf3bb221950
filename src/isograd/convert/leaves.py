"""Names and attributes that hold leaves: tensors of which a gradient is asked.

In a port a leaf is a Parameter, which optimizers and gradients know by its identity.  What torch
changes in place where nothing is recorded (`x.clamp_(0, 1)`) has to stay this Parameter.
"""

from __future__ import annotations

import ast

from isograd.convert.tree import Tree

#: A leaf: the function around it, and its name; of an attribute no function, and `self.x`.
Place = tuple[ast.AST | None, str]


def leaves_of(tree: Tree) -> frozenset[Place]:
    """Where a file binds leaves, or asks for the gradient of what is bound."""
    found = set[Place]()
    for assigned in tree.of(ast.Assign):
        if is_leaf(assigned.value):
            found.update(place_of_leaf(target, tree) for target in assigned.targets)
    for named in tree.of(ast.NamedExpr, ast.AnnAssign):
        if named.value is not None and is_leaf(named.value):
            found.add(place_of_leaf(named.target, tree))
    for node in tree.of(ast.Attribute):
        if node.attr not in ("requires_grad", "requires_grad_"):
            continue
        if isinstance(node.ctx, ast.Store) or isinstance(tree.parents[node], ast.Call):
            found.add(place_of_leaf(node.value, tree))
    return frozenset(found)


def place_of_leaf(node: ast.expr, tree: Tree) -> Place:
    """Where a name or an attribute is known."""
    if isinstance(node, ast.Name):
        return tree.function(node), node.id
    return None, ast.unparse(node)


def is_leaf(value: ast.expr) -> bool:
    """`torch.zeros(3, requires_grad=True)`, `x.clone().requires_grad_()`; also under conditions."""
    return any(_is_made_leaf(part) for part in values_of(value))


def _is_made_leaf(value: ast.expr) -> bool:
    if not isinstance(value, ast.Call):
        return False
    if isinstance(value.func, ast.Attribute) and value.func.attr == "requires_grad_":
        return True
    return any(part.arg == "requires_grad" and may_be_true(part.value) for part in value.keywords)


def may_be_true(node: ast.expr) -> bool:
    """Whether an expression may be true: it is computed, or a constant that counts as true."""
    return not isinstance(node, ast.Constant) or bool(node.value)


def values_of(node: ast.expr) -> list[ast.expr]:
    """What an expression may be: both sides of a condition, each part of `a or b`."""
    if isinstance(node, ast.IfExp):
        return [*values_of(node.body), *values_of(node.orelse)]
    if isinstance(node, ast.BoolOp):
        return [value for part in node.values for value in values_of(part)]
    if isinstance(node, ast.NamedExpr):
        return values_of(node.value)
    return [node]

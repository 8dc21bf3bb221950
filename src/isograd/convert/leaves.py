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
    """`torch.zeros(3, requires_grad=True)`, `x.clone().requires_grad_()`."""
    if not isinstance(value, ast.Call):
        return False
    if isinstance(value.func, ast.Attribute) and value.func.attr == "requires_grad_":
        return True
    given = [part.value for part in value.keywords if part.arg == "requires_grad"]
    return any(isinstance(part, ast.Constant) and part.value is True for part in given)

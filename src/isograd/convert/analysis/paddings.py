"""Which expressions are integers that cannot be below 0, whatever runs: widths of paddings."""

from __future__ import annotations

import ast

from isograd.convert.analysis.bound_names import bound_names, is_sizes
from isograd.convert.analysis.integers import is_integer
from isograd.convert.tree import Tree

#: Operators that make no negative number of two that are none.
_GROWING = (ast.Add, ast.Mult, ast.FloorDiv)
_DEEPEST = 8


def is_width(node: ast.expr, tree: Tree, depth: int = 0) -> bool:
    """Whether an expression can be nothing but an integer from 0."""
    if isinstance(node, ast.Constant):
        return type(node.value) is int and node.value >= 0
    if depth > _DEEPEST:
        return False
    if isinstance(node, ast.IfExp):
        return is_width(node.body, tree, depth + 1) and is_width(node.orelse, tree, depth + 1)
    if isinstance(node, ast.BinOp):
        return _is_width_of_two(node, tree, depth)
    if isinstance(node, ast.Call):
        return _is_width_of_call(node, tree, depth)
    if isinstance(node, ast.Subscript):
        return is_sizes(node.value) and is_integer(node, tree)
    return isinstance(node, ast.Name) and _is_width_name(node, tree, depth)


def _is_width_of_two(node: ast.BinOp, tree: Tree, depth: int) -> bool:
    right = is_width(node.right, tree, depth + 1)
    if isinstance(node.op, ast.Mod):
        return right and is_integer(node.left, tree)
    if isinstance(node.op, ast.Sub):
        return is_width(node.left, tree, depth + 1) and _is_part(node.right, node.left)
    is_growing = isinstance(node.op, _GROWING)
    return is_growing and right and is_width(node.left, tree, depth + 1)


def _is_part(node: ast.expr, whole: ast.expr) -> bool:
    """`n // 2` of the name `n`, which is no more than n."""
    return (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.FloorDiv)
        and isinstance(whole, ast.Name)
        and getattr(node.left, "id", "") == whole.id
        and isinstance(node.right, ast.Constant)
        and type(node.right.value) is int
        and node.right.value > 0
    )


def _is_width_of_call(node: ast.Call, tree: Tree, depth: int) -> bool:
    name = getattr(node.func, "id", "")
    if name in ("max", "min") and name not in tree.own_names and is_integer(node, tree):
        found = [is_width(part, tree, depth + 1) for part in node.args]
        return any(found) if name == "max" else all(found)
    is_size = getattr(node.func, "attr", "") == "size" and len(node.args) == 1
    return is_size or (name == "len" and name not in tree.own_names)


def _is_width_name(node: ast.Name, tree: Tree, depth: int) -> bool:
    """Whether all that binds a name of its function is a width; of arguments nothing is known."""
    function = tree.function(node)
    if function is None:
        return False
    bound = bound_names(function, tree)
    values, sizes = bound.values.get(node.id, []), bound.sizes[node.id]
    if node.id in bound.arguments or bound.stores[node.id] != len(values) + sizes:
        return False
    if not values and not sizes:
        return False
    return all(is_width(value, tree, depth + 1) for value in values)

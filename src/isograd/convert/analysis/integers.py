"""Which expressions are integers whatever runs: by literals, sizes, arithmetic and annotations."""

from __future__ import annotations

import ast

from isograd.convert.analysis.bound_names import bound_names, is_sizes
from isograd.convert.tree import Tree

#: Operators that make an integer of integers.
_WHOLE = (
    ast.Add, ast.Sub, ast.Mult, ast.Mod, ast.FloorDiv, ast.BitAnd, ast.LShift, ast.RShift,
)  # fmt: skip
_DEEPEST = 8


def is_integer(node: ast.expr, tree: Tree, depth: int = 0) -> bool:
    """Whether an expression can be nothing but an integer."""
    if isinstance(node, ast.Constant):
        return type(node.value) is int
    if depth > _DEEPEST:
        return False
    if isinstance(node, ast.BinOp):
        sides = (node.left, node.right)
        if isinstance(node.op, ast.Pow) and not _is_literal(node.right):
            return False  # 2 ** -1 is 0.5
        is_whole = isinstance(node.op, (*_WHOLE, ast.Pow))
        return is_whole and all(is_integer(side, tree, depth + 1) for side in sides)
    if isinstance(node, ast.IfExp):
        return is_integer(node.body, tree, depth + 1) and is_integer(node.orelse, tree, depth + 1)
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, (ast.USub, ast.UAdd)) and is_integer(
            node.operand, tree, depth + 1
        )
    if isinstance(node, ast.Call):
        is_size = getattr(node.func, "attr", "") == "size" and len(node.args) == 1
        name = getattr(node.func, "id", "")
        if name in ("max", "min") and name not in tree.own_names and not node.keywords:
            return len(node.args) > 1 and all(
                is_integer(part, tree, depth + 1) for part in node.args
            )
        return is_size or (name in ("int", "len") and name not in tree.own_names)
    if isinstance(node, ast.Subscript):
        return is_sizes(node.value) and is_integer(node.slice, tree, depth + 1)
    return isinstance(node, ast.Name) and _is_integer_name(node, tree, depth)


def _is_literal(node: ast.expr) -> bool:
    """An integer that is written out, without a minus."""
    return isinstance(node, ast.Constant) and type(node.value) is int


def _is_integer_name(node: ast.Name, tree: Tree, depth: int) -> bool:
    """Whether all that binds a name in its function is an integer."""
    function = tree.function(node)
    if function is None:
        return False
    parameters = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    declared = next((part for part in parameters if part.arg == node.id), None)
    bound = bound_names(function, tree)
    values = bound.values.get(node.id, [])
    stores, sizes = bound.stores[node.id], bound.sizes[node.id]
    if stores != len(values) + sizes or any(value is node for value in values):
        return False
    if declared is not None:
        annotation = declared.annotation
        named = getattr(annotation, "id", getattr(annotation, "value", ""))
        if named != "int" or "int" in tree.own_names:
            return False
    elif not values and not sizes:
        return False
    return all(is_integer(value, tree, depth + 1) for value in values)

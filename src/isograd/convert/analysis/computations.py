"""Which expressions only compute, from names and numbers, and so may be written more than once."""

from __future__ import annotations

import ast

from isograd.convert.tree import Tree, imported_from

_DEEPEST = 8


def only_computes(node: ast.expr, tree: Tree, depth: int = 0) -> bool:
    """Whether an expression is of names, numbers, operators and functions of `math` alone."""
    if isinstance(node, (ast.Name, ast.Constant)):
        return True
    if depth > _DEEPEST:
        return False
    if isinstance(node, ast.UnaryOp):
        return only_computes(node.operand, tree, depth + 1)
    if isinstance(node, ast.BinOp):
        return all(only_computes(side, tree, depth + 1) for side in (node.left, node.right))
    if isinstance(node, ast.Call) and not node.keywords and _is_of_math(node.func, tree):
        return all(only_computes(part, tree, depth + 1) for part in node.args)
    return False


def _is_of_math(function: ast.expr, tree: Tree) -> bool:
    """`math.sqrt`, where `math` is the module wherever the file has that name."""
    if not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Name):
        return False
    name = function.value.id
    return name in imported_from(tree, ("math",)) and name not in tree.stored

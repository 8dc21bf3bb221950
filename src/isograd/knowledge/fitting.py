"""What an argument's source has to be to fit a place of a template."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import lru_cache


def expression(code: str) -> ast.expr | None:
    """The expression that code is; None where it is none."""
    try:
        return ast.parse(code, mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return None


def is_plain(code: str) -> bool:
    """Whether an expression is a name, a number, or a tuple or list of them: it does nothing."""
    node = expression(code)
    if node is None:
        return False
    parts = node.elts if isinstance(node, (ast.Tuple, ast.List)) else [node]
    bare = [part.operand if isinstance(part, ast.UnaryOp) else part for part in parts]
    return all(isinstance(part, (ast.Name, ast.Constant)) for part in bare)


def is_whole(code: str) -> bool:
    """Whether an expression is an integer from 0, written out, or a tuple of them."""
    node = expression(code)
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    return all(isinstance(part, ast.Constant) and type(part.value) is int for part in parts)


def is_below(code: str) -> bool:
    """Whether an expression has a minus before it: `-2`, `-size`."""
    node = expression(code)
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)


def is_tuple(code: str) -> bool:
    """Whether an expression is a tuple that is written out, of one element or more."""
    node = expression(code)
    return isinstance(node, ast.Tuple) and bool(node.elts)


def is_number(code: str) -> bool:
    """Whether an expression is a number that is written out, also `-1` and `float('-inf')`."""
    node = _without_sign(expression(code))
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "float" and node.args:
        return all(isinstance(_without_sign(part), ast.Constant) for part in node.args)
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float))


def _without_sign(node: ast.expr | None) -> ast.expr | None:
    is_signed = isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd))
    return node.operand if is_signed else node  # type: ignore[union-attr]  # signed


def is_path(code: str) -> bool:
    """Whether an expression is a name, or an attribute of one: `self.scores`."""
    node = expression(code)
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def is_negated(code: str, other: str) -> bool:
    """Whether an expression is the other one, a name or a number, with a minus before it."""
    node, positive = expression(code), expression(other)
    if not isinstance(node, ast.UnaryOp) or not isinstance(node.op, ast.USub):
        return False
    is_same = positive is not None and ast.dump(node.operand) == ast.dump(positive)
    return is_same and isinstance(positive, (ast.Name, ast.Constant))


@lru_cache(maxsize=4096)
def is_list(text: str) -> bool:
    """Whether an expression is a list whatever its names mean."""
    node = expression(text)
    while isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Add)):
        node = node.left
    return isinstance(node, (ast.List, ast.ListComp))


#: What an argument's source has to be where a template says so, and what it is else.
FITS: dict[str, tuple[Callable[[str], bool], str]] = {
    "whole": (is_whole, "may be below 0"),
    "below": (is_below, "is not below 0"),
    "list": (is_list, "is no written-out list"),
    "tuple": (is_tuple, "is no written-out tuple"),
    "number": (is_number, "is no written-out number"),
    "path": (is_path, "is more than a name"),
}

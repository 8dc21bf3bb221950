"""Whether an expression is a parameter of its function that may be None there."""

from __future__ import annotations

import ast

from isograd.convert.tree import Tree, defaults_of, is_none

_ASKING = (ast.If, ast.IfExp, ast.While, ast.Assert, ast.BoolOp)


def may_be_absent(node: ast.AST, tree: Tree) -> bool:
    """Whether a name is a parameter with None for its default or in its annotation.

    Not where something around it asks for its value, nor where the function binds it again.
    """
    function = tree.function(node)
    if not isinstance(node, ast.Name) or function is None:
        return False
    arguments = function.args
    parameters = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    parameter = next((part for part in parameters if part.arg == node.id), None)
    if parameter is None or _is_settled(node, function, tree):
        return False
    default = defaults_of(function).get(node.id)
    return (default is not None and is_none(default)) or _lists_none(parameter.annotation)


def _is_settled(node: ast.Name, function: ast.AST, tree: Tree) -> bool:
    """Whether the function binds a name again, asserts it, or asks for it around its use."""
    for part in ast.walk(function):
        is_bound = isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
        if is_bound and getattr(part, "id", "") == node.id:
            return True
        if isinstance(part, ast.If) and _leaves(part) and _names(part.test, node.id):
            return True
    return any(
        isinstance(part, _ASKING) and _names(getattr(part, "test", part), node.id, node)
        for part in tree.above(node)
    )


def _leaves(branch: ast.If) -> bool:
    return isinstance(branch.body[-1], (ast.Return, ast.Raise, ast.Continue))


def _names(expression: ast.AST, name: str, but: ast.AST | None = None) -> bool:
    parts = (part for part in ast.walk(expression) if part is not but)
    return any(isinstance(part, ast.Name) and part.id == name for part in parts)


def _lists_none(annotation: ast.expr | None) -> bool:
    """`Optional[T]`, `T | None`, `Union[T, None]`, as they are or in a text."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            annotation = ast.parse(annotation.value, mode="eval").body
        except SyntaxError:
            return False
    if annotation is None:
        return False
    return any(
        is_none(part) or getattr(part, "attr", getattr(part, "id", "")) == "Optional"
        for part in ast.walk(annotation)
    )

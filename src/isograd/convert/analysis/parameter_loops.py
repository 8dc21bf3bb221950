"""Loops over the parameters of a network or an optimizer."""

from __future__ import annotations

import ast

#: Methods of torch's modules that give their Parameters.
_PARAMETERS = frozenset(("parameters", "named_parameters"))


def is_over_parameters(loop: ast.For | ast.AsyncFor | ast.comprehension) -> bool:
    """Whether a loop goes through a network's or an optimizer's parameters, by what it asks."""
    return any(_gives_parameters(part) for part in ast.walk(loop.iter))


def _gives_parameters(node: ast.AST) -> bool:
    """`net.parameters()`, `group["params"]`."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr in _PARAMETERS
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and node.slice.value == "params"
    return False

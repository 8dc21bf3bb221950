"""Where lists and dictionaries of Parameters are read, element by element."""

from __future__ import annotations

import ast

from isograd.convert.tree import Tree

PARAMETER_CONTAINERS = frozenset(("torch.nn.ParameterList", "torch.nn.ParameterDict"))
#: Functions of Python's that go through what they are given.
_THROUGH = frozenset("enumerate zip list tuple sum reversed sorted map dict set iter".split())


def reads_elements(node: ast.expr, tree: Tree) -> bool:
    """Whether a container's elements are read in a method, other than a constructor."""
    function = tree.function(node)
    if function is None or tree.owner(node) is None or function.name == "__init__":
        return False
    parent = tree.parents[node]
    if isinstance(parent, ast.Subscript):
        return parent.value is node and isinstance(parent.ctx, ast.Load)
    if isinstance(parent, (ast.For, ast.comprehension)):
        return parent.iter is node
    if isinstance(parent, ast.Compare):
        return node in parent.comparators and all(
            isinstance(sign, (ast.In, ast.NotIn)) for sign in parent.ops
        )
    if isinstance(parent, ast.Call) and node in parent.args:
        return getattr(parent.func, "id", "") in _THROUGH
    return isinstance(parent, ast.Starred)

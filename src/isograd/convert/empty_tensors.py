"""Expressions that make a tensor without elements of one axis: `torch.tensor([])`."""

from __future__ import annotations

import ast
from collections.abc import Callable

from isograd.convert.tree import Tree

#: What is asked of an empty tensor before anything is put behind it.
_CASTING = frozenset("to cuda cpu long int float double bool type requires_grad_".split())
_OF_SIZE = frozenset("empty zeros ones rand randn new_empty new_zeros new_ones".split())


def empty_tensors(tree: Tree, api_of_call: Callable[[ast.Call], str]) -> frozenset[ast.expr]:
    """The calls of a file that make one, and what is asked of them at once."""
    found = set[ast.expr]()
    for node in tree.of(ast.Call):  # inner ones first
        function = node.func
        is_cast = isinstance(function, ast.Attribute) and function.attr in _CASTING
        is_of_one = is_cast and getattr(function, "value", None) in found
        if is_of_one or _is_empty(node, api_of_call(node)):
            found.add(node)
    return frozenset(found)


def _is_empty(node: ast.Call, api: str) -> bool:
    name = api.rpartition(".")[2] if api else getattr(node.func, "attr", "")
    if name in _OF_SIZE:
        sizes = [size for part in node.args for size in getattr(part, "elts", [part])]
        return len(sizes) == 1 and isinstance(sizes[0], ast.Constant) and sizes[0].value == 0
    is_of_values = api == "torch.tensor" or (api.startswith("torch.") and name.endswith("Tensor"))
    return is_of_values and all(getattr(part, "elts", None) == [] for part in node.args)

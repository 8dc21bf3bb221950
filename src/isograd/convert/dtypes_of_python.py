"""Types of Python's that mean dtypes: `torch.ones(3, dtype=bool)`, `x.to(float)`.

MindSpore 2.10 refuses them, or passes over them: `x.to(int)` stays of float32.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from isograd.convert.tree import Tree
from isograd.convert.use import Use

_DTYPES = {
    "bool": "torch.bool",
    "int": "torch.int64",
    "float": "torch.float64",
    "complex": "torch.complex128",
}
#: What takes a dtype by its place.
_BY_PLACE = frozenset(("torch.finfo", "torch.iinfo"))
#: Methods that arrays of numpy's have too, with a dtype of numpy's.
_OF_ARRAYS = frozenset("sum mean prod cumsum cumprod std var trace".split())


def dtypes_of_python(tree: Tree, use: Callable[[ast.AST], Use | None]) -> dict[ast.AST, str]:
    """The dtypes of torch that names of Python's types mean where torch is called.

    use: what of torch a name or an attribute names.
    """
    return {
        node: _DTYPES[node.id]
        for node in tree.of(ast.Name)
        if node.id in _DTYPES and node.id not in tree.stored and _is_dtype(node, tree, use)
    }


def _is_dtype(node: ast.Name, tree: Tree, use: Callable[[ast.AST], Use | None]) -> bool:
    parent = tree.parents[node]
    call = tree.parents[parent] if isinstance(parent, ast.keyword) else parent
    if not isinstance(call, ast.Call) or call.func is node:
        return False
    called = use(call.func)
    if called is None:
        return False
    name = called.api.rpartition(".")[2]
    if isinstance(parent, ast.keyword):
        is_arrays = called.is_member and not called.is_sure and name in _OF_ARRAYS
        return parent.arg == "dtype" and not is_arrays
    return called.api in _BY_PLACE or (called.is_member and name == "to")

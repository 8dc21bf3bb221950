"""What `**options` passes, where a function writes the dictionary out and only passes it on."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from isograd.convert.tree import Tree

MODULE_DICT = "torch.nn.ModuleDict"


def passed(node: ast.expr, tree: Tree) -> Mapping[str, ast.expr] | None:
    """The arguments in `**node` by their names; None where they are not known.

    They are known of a name that its function binds once, to a dictionary of names and constants,
    and reads nowhere but in `**name`; none of the names in it is bound again.
    """
    if isinstance(node, ast.Dict):
        return _items(node)
    function = tree.function(node)
    if not isinstance(node, ast.Name) or function is None:
        return None
    values: list[ast.expr] = []
    stores = 0
    for part in tree.walked(function):
        if isinstance(part, ast.Assign) and [getattr(t, "id", "") for t in part.targets] == [
            node.id
        ]:
            values.append(part.value)
            if tree.parents[part] is not function:
                return None
        elif isinstance(part, ast.arg) and part.arg == node.id:
            return None
        elif isinstance(part, ast.Name) and part.id == node.id:
            is_store = not isinstance(part.ctx, ast.Load)
            stores += is_store
            parent = tree.parents[part]
            if not is_store and not (isinstance(parent, ast.keyword) and parent.arg is None):
                return None
    if len(values) != 1 or stores != 1:
        return None
    found = _items(values[0])
    nodes = tree.walked(function)
    if found is None or not all(_is_constant(value, nodes) for value in found.values()):
        return None
    return found


def _items(node: ast.expr) -> Mapping[str, ast.expr] | None:
    """`{"a": x}` or `dict(a=x)` by its keys."""
    if isinstance(node, ast.Dict):
        keys = [key.value if isinstance(key, ast.Constant) else None for key in node.keys]
        if not all(isinstance(key, str) for key in keys) or len(set(keys)) < len(keys):
            return None
        return {str(key): value for key, value in zip(keys, node.values, strict=True)}
    is_dict = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "dict"
    if not is_dict or node.args or any(part.arg is None for part in node.keywords):  # type: ignore[attr-defined]
        return None
    return {part.arg: part.value for part in node.keywords}  # type: ignore[attr-defined]


def _is_constant(node: ast.expr, nodes: list[ast.AST]) -> bool:
    """Whether an expression has one value wherever a function of these nodes evaluates it."""
    if isinstance(node, ast.Constant):
        return True
    if not isinstance(node, ast.Name):
        return False
    stores = sum(
        isinstance(part, ast.Name) and part.id == node.id and not isinstance(part.ctx, ast.Load)
        for part in nodes
    )
    is_parameter = any(isinstance(part, ast.arg) and part.arg == node.id for part in nodes)
    return stores == 0 if is_parameter else stores <= 1


def keys_of(given: ast.expr) -> Iterator[str]:
    """The keys of `{"a": …}` and `dict(a=…)`."""
    if isinstance(given, ast.Dict):
        for key in given.keys:
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield key.value
    elif isinstance(given, ast.Call) and getattr(given.func, "id", "") == "dict":
        yield from (keyword.arg for keyword in given.keywords if keyword.arg)

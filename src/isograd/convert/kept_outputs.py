"""Loops over layers that keep what each layer returns: `x = layer(x); outputs.append(x)`.

In torch a layer that works in place changes what was kept of the layer before it.
"""

from __future__ import annotations

import ast

from isograd.convert.tree import Tree, names_of
from isograd.static_graph.scope import below


def loops_that_keep(tree: Tree) -> list[ast.For]:
    """The loops of a file in which a name is put through layers and kept."""
    return [loop for loop in tree.of(ast.For) if kept_by(loop)]


def kept_by(loop: ast.For) -> str:
    """The name that a loop puts through its layers and keeps; empty if there is none."""
    layers = set(names_of(loop.target))
    # `layer = getattr(self, name)` in the loop gives one as well.
    inside = [part for statement in loop.body for part in below(statement)]
    for part in inside:
        if isinstance(part, ast.Assign) and isinstance(part.value, (ast.Call, ast.Subscript)):
            if layers.intersection(names_of(part.value)) and isinstance(part.targets[0], ast.Name):
                if not _is_put_through(part, layers):
                    layers.add(part.targets[0].id)
    put = {
        part.targets[0].id  # type: ignore[attr-defined]  # a name, by `_is_put_through`
        for part in inside
        if isinstance(part, ast.Assign) and _is_put_through(part, layers)
    }
    return next((name for part in inside for name in put if _keeps(part, name)), "")


def _is_put_through(node: ast.Assign, layers: set[str]) -> bool:
    """`x = layer(x)`."""
    target, value = node.targets[0], node.value
    if not isinstance(target, ast.Name) or not isinstance(value, ast.Call) or not value.args:
        return False
    called, given = value.func, value.args[0]
    if isinstance(called, ast.Subscript):
        is_layer = bool(layers.intersection(names_of(called.slice)))
    else:
        is_layer = isinstance(called, ast.Name) and called.id in layers
    return is_layer and isinstance(given, ast.Name) and given.id == target.id


def _keeps(node: ast.AST, name: str) -> bool:
    """`outputs.append(x)`, `outputs[key] = x`, `outputs += [x]`, `yield x`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in ("append", "insert") and _is(node.args[-1:], name)
    if isinstance(node, ast.Assign):
        return isinstance(node.targets[0], ast.Subscript) and _is([node.value], name)
    if isinstance(node, ast.AugAssign) and isinstance(node.value, (ast.List, ast.Tuple)):
        return _is(node.value.elts, name)
    return isinstance(node, ast.Yield) and node.value is not None and _is([node.value], name)


def _is(parts: list[ast.expr], name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name for part in parts)

"""Of which layers the mode is read: torch's start in training, MindSpore's in inference."""

from __future__ import annotations

import ast

from isograd.static_graph.scope import below

WORD = ".training"


def modes_read(tree: ast.Module) -> frozenset[str]:
    """The names whose `.training` a file reads, as far as assignments of calls alone bind them.

    What a module reads of itself is left out: it gets its mode as a whole.
    """
    nodes = below(tree)
    read = {root for node in nodes if (root := _root_of_mode(node))}
    if not read:
        return frozenset()
    assigned = {
        target.id
        for node in nodes
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return frozenset(read & assigned - _bound_otherwise(nodes))


def _root_of_mode(node: ast.AST) -> str:
    """`net` of `net.stem.training` where it is read; empty for a module's own mode."""
    if not isinstance(node, ast.Attribute) or node.attr != WORD[1:]:
        return ""
    if not isinstance(node.ctx, ast.Load) or isinstance(node.value, ast.Call):
        return ""  # `nn.Linear(2, 2).training` is seen where the layer is made
    root: ast.expr = node.value
    while isinstance(root, (ast.Attribute, ast.Subscript)):
        root = root.value
    name = getattr(root, "id", "")
    return "" if name in ("self", "cls") else name


def _bound_otherwise(nodes: list[ast.AST]) -> set[str]:
    """The names that anything but an assignment of a call binds somewhere."""
    found = {node.arg for node in nodes if isinstance(node, ast.arg)}
    called = {
        id(target)
        for node in nodes
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        for target in node.targets
    }
    for node in nodes:
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            if id(node) not in called:
                found.add(node.id)
        elif isinstance(node, ast.alias):
            found.add(node.asname or node.name.partition(".")[0])
    return found

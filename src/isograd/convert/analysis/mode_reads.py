"""Of which layers the mode is read: torch's start in training, MindSpore's in inference."""

from __future__ import annotations

import ast

WORD = ".training"


def modes_read(tree: ast.Module) -> frozenset[str]:
    """The names whose `.training` a file reads, as far as assignments of calls alone bind them.

    What a module reads of itself is left out: it gets its mode as a whole.
    """
    nodes = list(ast.walk(tree))
    assigned = {
        target.id
        for node in nodes
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    others = _bound_otherwise(nodes)
    found: set[str] = set()
    for node in nodes:
        if not isinstance(node, ast.Attribute) or node.attr != WORD[1:]:
            continue
        if not isinstance(node.ctx, ast.Load) or isinstance(node.value, ast.Call):
            continue  # `nn.Linear(2, 2).training` is seen where the layer is made
        root: ast.expr = node.value
        while isinstance(root, (ast.Attribute, ast.Subscript)):
            root = root.value
        name = getattr(root, "id", "")
        if name in ("self", "cls"):
            continue
        if name in assigned and name not in others:
            found.add(name)
    return frozenset(found)


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

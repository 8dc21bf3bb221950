"""Of which layers the mode is read: torch's start in training, MindSpore's in inference."""

from __future__ import annotations

import ast

from isograd.static_graph.scope import below

WORD = ".training"


def modes_read(tree: ast.Module) -> frozenset[str]:
    """The names whose `.training` a file reads, as far as assignments of calls alone bind them.

    What a module reads of itself is left out: it gets its mode as a whole.  What a call made of
    another name (`copy.deepcopy(net)`) may have its mode.
    """
    nodes = below(tree)
    read = {root for node in nodes for root in _roots_of_mode(node)}
    if not read:
        return frozenset()
    assigned = [
        (target.id, node.value)
        for node in nodes
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        for target in node.targets
        if isinstance(target, ast.Name)
    ]
    waiting = list(read)
    while waiting:
        name = waiting.pop()
        made_of = {part.id for to, call in assigned if to == name for part in _given(call)}
        waiting += made_of - read
        read |= made_of
    return frozenset(read & {name for name, _ in assigned} - _bound_otherwise(nodes))


def _given(call: ast.Call) -> list[ast.Name]:
    """The names among a call's arguments."""
    given = (*call.args, *(part.value for part in call.keywords))
    return [part for part in given if isinstance(part, ast.Name)]


def _roots_of_mode(node: ast.AST) -> list[str]:
    """`net` of `net.stem.training` and `copy(net).training`; nothing for a module's own mode."""
    if not isinstance(node, ast.Attribute) or node.attr != WORD[1:]:
        return []
    root: ast.expr = node.value
    while isinstance(root, (ast.Attribute, ast.Subscript)):
        root = root.value
    if isinstance(root, ast.Call):  # `nn.Linear(2, 2).training` is seen where the layer is made
        return [name.id for name in _given(root)]
    if not isinstance(root, ast.Name) or not isinstance(node.ctx, ast.Load):
        return []
    return [] if root.id in ("self", "cls") else [root.id]


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

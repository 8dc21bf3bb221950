"""`x.requires_grad_()` and its like, of tensors by which only gradients of functions are taken."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from isograd.convert.text import Text
from isograd.convert.tree import Tree, names_of, read_tree
from isograd.static_graph.scope import FileScope

#: A text without this has no marks.
MARK = "requires_grad"
_PARAMETERS = frozenset("parameters named_parameters modules named_modules children".split())


def marks_of(text: str) -> list[tuple[int, int, str]]:
    """What leaves the marks out of a text, but of parameters and of what an optimizer is given."""
    return list(_marks(read_tree(ast.parse(text), frozenset()), Text(text)))


def _marks(tree: Tree, text: Text) -> Iterator[tuple[int, int, str]]:
    """What says that a named tensor learns, with what is written in its place."""
    file = FileScope(tree.module)
    nodes = tree.walked(tree.module)
    optimized = {
        part.id
        for node in nodes
        if isinstance(node, ast.Call) and file.qualified(node.func).startswith("torch.optim.")
        for given in (*node.args, *(word.value for word in node.keywords))
        for part in ast.walk(given)
        if isinstance(part, ast.Name)
    }
    others = {(tree.scope(node), name) for node in nodes for name in _of_networks(node)}
    for node in nodes:
        mark = _mark(node, tree, file)
        if mark is None or mark[0] in optimized:
            continue
        if (tree.scope(node), mark[0]) not in others:
            yield from without_mark(*mark[1:], tree, text)


def _of_networks(node: ast.AST) -> list[str]:
    """The names that a loop over a network's parameters binds."""
    if not isinstance(node, (ast.For, ast.comprehension)):
        return []
    methods = {getattr(part, "attr", "") for part in ast.walk(node.iter)}
    return [] if methods.isdisjoint(_PARAMETERS) else names_of(node.target)


def _mark(node: ast.AST, tree: Tree, file: FileScope) -> tuple[str, ast.AST, ast.AST] | None:
    """The tensor's name, what is left out, and up to where it goes on; None for other nodes."""
    if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "requires_grad_":
        given = [*node.args, *(part.value for part in node.keywords)]
        if given and not (len(given) == 1 and _is(given[0], True)):
            return None
        receiver = node.func.value  # type: ignore[attr-defined]  # an attribute
        parent = tree.parents[node]
        if isinstance(parent, ast.Expr) and isinstance(receiver, ast.Name):
            return receiver.id, parent, parent
        if isinstance(parent, ast.Assign) and len(parent.targets) == 1:
            target = parent.targets[0]
            return (target.id, node, receiver) if isinstance(target, ast.Name) else None
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and _is(node.value, True):
        target = node.targets[0]
        if isinstance(target, ast.Attribute) and target.attr == "requires_grad":
            if isinstance(target.value, ast.Name):
                return target.value.id, node, node
    if isinstance(node, ast.keyword) and node.arg == "requires_grad" and _is(node.value, True):
        call, statement = tree.parents[node], tree.statement(node)
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if len(targets) == 1 and isinstance(targets[0], ast.Name) and isinstance(call, ast.Call):
            if file.qualified(call.func).startswith("torch."):
                return targets[0].id, node, call
    return None


def without_mark(
    node: ast.AST, kept: ast.AST, tree: Tree, text: Text
) -> Iterator[tuple[int, int, str]]:
    """A statement without its mark: all of it, a method's call, or an argument."""
    if isinstance(node, ast.stmt):
        parent = tree.parents[node]
        is_alone = any(getattr(parent, name, None) == [node] for name in ("body", "orelse"))
        yield text.without(node, is_needed=is_alone)
    elif isinstance(node, ast.Call):
        end = text.span(kept)[1]
        while text.original[end] in " \t\r\n)":  # `(a * b).requires_grad_()`
            end += 1
        yield end, text.span(node)[1], ""
    elif isinstance(kept, ast.Call):
        start, end = text.span(node)
        comma = text.original.rfind(",", 0, start)
        is_first = not kept.args and kept.keywords[0] is node
        if is_first:
            rest = text.original[end:]
            end += len(rest) - len(rest.lstrip(" \t\r\n,"))
        yield (start if is_first else comma), end, ""


def _is(node: ast.AST | None, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value is value

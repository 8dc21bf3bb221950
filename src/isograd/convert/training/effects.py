"""Calls for their effect alone, which a compiled step would make once, when it is compiled."""

from __future__ import annotations

import ast
from collections.abc import Collection

from isograd.convert.file import FileEdit
from isograd.convert.training.outer_writes import imported, outer_writes
from isograd.convert.training.paths import method_of

_Function = ast.FunctionDef


def effects_of(function: _Function, file: FileEdit) -> list[ast.stmt]:
    """The statements of a function itself that are such calls."""
    lists = _lists_of(function)
    return [
        s
        for s in function.body
        if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call)
        if not _is_computed(s.value, lists, file)
    ]


def effect_in(
    function: _Function, file: FileEdit, without: Collection[ast.stmt] = ()
) -> ast.expr | None:
    """The first call whose value nobody takes, in a function or what it calls in its file.

    What torch offers is compiled, and so are lists that a function makes for itself; what is
    written into from outside is an effect.  without:
    statements that are not looked at.
    """
    by_name: dict[str, list[_Function]] = {}
    for defined in file.tree.of(ast.FunctionDef):
        by_name.setdefault(defined.name, []).append(defined)
    waiting, seen = [function], {function}
    inside = {part for s in without for part in ast.walk(s)}
    imports = imported(file.tree.module)
    while waiting:
        one = waiting.pop()
        nodes = [node for node in ast.walk(one) if node not in inside]
        written = (place for place in outer_writes(one, imports) if place not in inside)
        found = next(written, None) or _effect_among(nodes, _lists_of(one), file)
        if found is not None:
            return found
        for node in nodes:
            if isinstance(node, ast.Call):
                for other in by_name.get(_called(node), ()):
                    if other not in seen:
                        seen.add(other)
                        waiting.append(other)
    return None


def _effect_among(nodes: list[ast.AST], lists: set[str], file: FileEdit) -> ast.expr | None:
    for node in nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            if not _is_computed(node.value, lists, file):
                return node.value
        if isinstance(node, ast.Call) and method_of(node)[1] == "requires_grad_":
            return node
    return None


def _called(call: ast.Call) -> str:
    if isinstance(call.func, ast.Name):
        return call.func.id
    path, method = method_of(call)
    return method if path == "self" else ""


def _lists_of(function: _Function) -> set[str]:
    """Names that a function binds to lists of its own."""
    return {
        target.id
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and isinstance(node.value, (ast.List, ast.ListComp))
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _is_computed(call: ast.Call, lists: set[str], file: FileEdit) -> bool:
    use = file.use(call.func)
    return (use is not None and use.api.startswith("torch.")) or method_of(call)[0] in lists

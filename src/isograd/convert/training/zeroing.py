"""Which calls of a loop set gradients back: the optimizer's, or a network's for it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from isograd.convert.analysis.given_arguments import calls_of
from isograd.convert.file import FileEdit
from isograd.convert.training.model import EagerError
from isograd.convert.training.names import SCHEDULES, is_of_optimizers
from isograd.convert.training.paths import calls_in, method_of, path_of, statement_call


def zeroed_paths(scope: ast.AST) -> set[str]:
    """The paths of all whose `zero_grad()` a scope calls."""
    return {path for path, method in map(method_of, calls_in([scope])) if method == "zero_grad"}


def zeroing_statements(body: Iterable[ast.stmt]) -> Iterator[tuple[ast.stmt, ast.Call]]:
    """The statements that are a call of `zero_grad()`."""
    for statement in body:
        call = statement_call(statement)
        if call is not None and method_of(call)[1] == "zero_grad":
            yield statement, call


def steps_of_one(calls: Iterable[ast.Call], file: FileEdit) -> list[str]:
    """The optimizer where `model.zero_grad()` zeroes: nothing else has a step but schedules."""
    steps = {method_of(call)[0]: call for call in calls if method_of(call)[1] == "step"}
    made = {path: _made_by(call, file) for path, call in steps.items()}
    own = [path for path, api in made.items() if not api.startswith(SCHEDULES)]
    known = [path for path in own if is_of_optimizers(made[path])]
    return known if len(known) == 1 else own if len(own) == 1 else []


def _made_by(call: ast.Call, file: FileEdit) -> str:
    """The API that makes what steps, or its method; empty where it is not known.

    Of a parameter, what the calls of its function in the file give, where all are alike.
    """
    use = file.use(call.func)
    if use is not None:
        return use.api
    function, name = file.tree.scope(call), method_of(call)[0]
    if not isinstance(function, ast.FunctionDef):
        return ""
    given = [values.get(name) for _, values in calls_of(function, file.tree)]
    names = {getattr(value, "id", "") for value in given}
    apis = {
        file.api_of_call(node.value) if isinstance(node.value, ast.Call) else ""
        for node in file.tree.of(ast.Assign)
        if not names.isdisjoint(getattr(target, "id", "-") for target in node.targets)
    }
    return min(apis) if len(names) == len(apis) == 1 else ""


def held_zeroing(scope: ast.AST, optimizer: str, file: FileEdit) -> tuple[ast.expr, ...]:
    """The networks that are zeroed in place of the gradients which an optimizer holds.

    scope: what has the loop.  Before the optimizer is there, nothing is held.  Raises EagerError
    where something else is zeroed, or within another function.
    """
    names = (node for node in ast.walk(scope) if isinstance(node, ast.Name))
    stores = [n.lineno for n in names if n.id == optimizer and isinstance(n.ctx, ast.Store)]
    stepping = {path for path, method in map(method_of, calls_in([scope])) if method == "step"}
    found = list[ast.expr]()
    for call in calls_in([scope]):
        path, method = method_of(call)
        if method != "zero_grad" or path == optimizer:
            continue
        assert isinstance(call.func, ast.Attribute)
        is_other = not path or path in stepping or (found and path != path_of(found[0]))
        if is_other or file.tree.scope(call) is not scope:
            raise EagerError(call, "gradients are zeroed elsewhere than in the optimizer")
        if call.lineno >= min(stores, default=0):
            found.append(call.func.value)
    return tuple(found)

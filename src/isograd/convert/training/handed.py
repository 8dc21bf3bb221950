"""What is handed whole to functions of a file: a graph takes tensors, no objects with settings."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from isograd.convert.file import FileEdit
from isograd.convert.training.model import EagerError
from isograd.convert.training.paths import calls_in, path_of


def setting_read_of(part: ast.expr, file: FileEdit) -> str:
    """An attribute that no tensor has, which a called function reads of what it is given here."""
    attributes = (node for node in _reads_of(part, file) if isinstance(node, ast.Attribute))
    names = (node.attr for node in attributes)
    return next((name for name in names if file.entry(f"torch.Tensor.{name}") is None), "")


def makes_distribution(api: str) -> bool:
    """Whether an API is a class of torch's distributions."""
    return api.startswith("torch.distributions.") and api.rpartition(".")[2][:1].isupper()


def look_at_distributions(part: ast.expr, file: FileEdit) -> None:
    """Raise EagerError for a path that is bound to what a class of torch's distributions makes."""
    path = path_of(part)
    for node in file.tree.of(ast.Assign):
        if isinstance(node.value, ast.Call) and path in map(path_of, node.targets):
            if makes_distribution(file.api_of_call(node.value)):
                raise EagerError(part, f"{path} is an object, which no static graph takes")


def settings_alone(part: ast.expr, file: FileEdit) -> list[ast.Attribute]:
    """All that a called function reads of the object it is given; empty where it does more.

    Nothing of it is called or changed, and it is not handed on: a step may have it as it is.
    """
    found = list[ast.Attribute]()
    for node in _reads_of(part, file):
        parent = file.tree.parents[node]
        if isinstance(node, ast.Name) and isinstance(parent, ast.Attribute):
            continue
        is_called = isinstance(parent, ast.Call) and parent.func is node
        if is_called or isinstance(parent, (ast.Attribute, ast.Subscript)):
            return []
        if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load):
            return []
        found.append(node)
    return found


def _reads_of(part: ast.expr, file: FileEdit) -> Iterator[ast.AST]:
    """The nodes of a called function that read what it is given, or an attribute of that."""
    call = file.tree.parents[part]
    name = call.arg if isinstance(call, ast.keyword) else ""
    call = file.tree.parents[call] if name else call
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return
    for function in file.tree.module.body:
        if not isinstance(function, ast.FunctionDef) or function.name != call.func.id:
            continue
        places = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
        own = name
        if not name and part in call.args and call.args.index(part) < len(places):
            own = places[call.args.index(part)]
        for node in ast.walk(function):
            whole = node.value if isinstance(node, ast.Attribute) else node
            if getattr(whole, "id", "") == own:
                yield node


def calls_argument(name: str, place: int, file: FileEdit) -> bool:
    """Whether a function of the file with this name calls the argument at a place."""
    return any(
        _calls_given(function, given.arg, file)
        for function in file.tree.of(ast.FunctionDef)
        if function.name == name
        for given in function.args.args[place : place + 1]
    )


def _calls_given(
    function: ast.FunctionDef, name: str, file: FileEdit, seen: frozenset[str] = frozenset()
) -> bool:
    """Whether a function calls what a parameter holds, asks it as a network, or hands it to one
    of the file that does."""
    for call in calls_in(function.body):
        if getattr(call.func, "id", "") == name:
            return True
        use = file.use(call.func)
        is_asked = getattr(getattr(call.func, "value", None), "id", "") == name
        if is_asked and use is not None and use.api.startswith("torch.nn.Module."):
            return True
        for other in file.tree.of(ast.FunctionDef):
            if other.name != getattr(call.func, "id", "") or other.name in seen:
                continue
            pairs = zip(other.args.args, call.args, strict=False)
            inner = [own.arg for own, given in pairs if getattr(given, "id", "") == name]
            if any(_calls_given(other, one, file, seen | {function.name}) for one in inner):
                return True
    return False

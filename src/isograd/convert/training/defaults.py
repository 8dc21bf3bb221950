"""Default values that the compiler does not find: names of a function, or of a class's body."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_REASON = "has a default value that the static graph does not find"
#: Methods that run before anything is compiled.
_BEFORE = frozenset(("__init__", "__new__", "__post_init__"))


def unfound_defaults(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    """Functions whose default value reads a name of the function or the class around them.

    A function that is passed on at once where nothing is compiled (`sorted(names, key=lambda …)`)
    is left to what takes it.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            bound = {name for part in node.body for name in _bound_by(part)}
            for method in node.body:
                if isinstance(method, _FUNCTIONS) and method.name not in _BEFORE:
                    if _read(method) & bound:
                        yield method, f"{method.name} {_REASON}"
                    yield from _inner(method, is_compiled=True)
                elif isinstance(method, _FUNCTIONS):
                    yield from _inner(method, is_compiled=False)
        elif isinstance(node, ast.Module):
            for function in _of_modules(node):
                yield from _inner(function, is_compiled=False)


def _of_modules(tree: ast.Module) -> Iterator[_Function]:
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, _FUNCTIONS):
            yield node
        elif not isinstance(node, (ast.ClassDef, ast.Lambda)):
            waiting += ast.iter_child_nodes(node)


def _inner(function: _Function, *, is_compiled: bool) -> Iterator[tuple[ast.AST, str]]:
    """The functions inside of another whose defaults read what that one binds."""
    bound = _bound(function) | {p.arg for p in ast.walk(function.args) if isinstance(p, ast.arg)}
    passed = set() if is_compiled else set(_passed_on(function))
    for node in ast.walk(function):
        is_inner = isinstance(node, (*_FUNCTIONS, ast.Lambda)) and node is not function
        if is_inner and node not in passed and _read(node) & bound:  # type: ignore[arg-type]
            yield node, f"{getattr(node, 'name', 'a lambda')} {_REASON}"


def _passed_on(function: _Function) -> Iterator[ast.AST]:
    """Lambdas that are arguments of a call, unless it is a method that keeps them in a list."""
    for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
        if not (isinstance(call.func, ast.Attribute) and call.func.attr in ("append", "insert")):
            yield from call.args
            yield from (keyword.value for keyword in call.keywords)


def _bound(around: ast.AST) -> set[str]:
    return {
        node.id
        for node in ast.walk(around)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def _bound_by(part: ast.stmt) -> set[str]:
    """The names that a statement of a class's body binds by an assignment."""
    return _bound(part) if isinstance(part, (ast.Assign, ast.AnnAssign)) else set()


def _read(function: _Function | ast.Lambda) -> set[str]:
    """The names that default values read."""
    defaults = [*function.args.defaults, *function.args.kw_defaults]
    return {
        part.id
        for default in defaults
        if default is not None
        for part in ast.walk(default)
        if isinstance(part, ast.Name)
    }

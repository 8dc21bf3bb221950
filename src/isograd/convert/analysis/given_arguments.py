"""What calls of a method give one of its parameters."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from isograd.convert.tree import Tree

Function = ast.FunctionDef | ast.AsyncFunctionDef


def given_for(name: str, method: Function, tree: Tree) -> Iterator[tuple[ast.Call, ast.expr]]:
    """The calls of the file that may call a method, with what each gives a parameter."""
    for call, given in calls_of(method, tree):
        if isinstance(call.func, ast.Attribute) and name in given:
            yield call, given[name]


def calls_of(function: Function, tree: Tree) -> Iterator[tuple[ast.Call, dict[str, ast.expr]]]:
    """The calls of the file that may call a function, with what each gives its parameters.

    By the name alone: whose method is called is seldom known.
    """
    places = [part.arg for part in (*function.args.posonlyargs, *function.args.args)]
    is_static = any(getattr(part, "id", "") == "staticmethod" for part in function.decorator_list)
    owner = getattr(tree.parents.get(function), "name", "")
    for call in tree.of(ast.Call):
        called = call.func
        is_member = isinstance(called, ast.Attribute)
        if getattr(called, "attr", getattr(called, "id", "")) != function.name:
            continue
        is_bound = is_member and bool(owner) and not is_static
        is_bound = is_bound and getattr(getattr(called, "value", None), "id", "") != owner
        given = dict(zip(places[is_bound:], _plain(call), strict=False))
        yield call, given | {part.arg: part.value for part in call.keywords if part.arg}


def _plain(call: ast.Call) -> Iterator[ast.expr]:
    """The arguments by position, up to those of a list whose length is not known."""
    for argument in call.args:
        if isinstance(argument, ast.Starred):
            return
        yield argument

"""What calls of a method give one of its parameters."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from isograd.convert.tree import Tree

Function = ast.FunctionDef | ast.AsyncFunctionDef


def given_for(name: str, method: Function, tree: Tree) -> Iterator[tuple[ast.Call, ast.expr]]:
    """The calls of the file that may call a method, with what each gives a parameter.

    By the method's name alone: whose method is called is seldom known.
    """
    places = [part.arg for part in (*method.args.posonlyargs, *method.args.args)]
    is_static = any(getattr(part, "id", "") == "staticmethod" for part in method.decorator_list)
    owner = getattr(tree.parents.get(method), "name", "")
    for call in tree.of(ast.Call):
        if not isinstance(call.func, ast.Attribute) or call.func.attr != method.name:
            continue
        is_bound = not is_static and getattr(call.func.value, "id", "") != owner
        given = dict(zip(places[is_bound:], _plain(call), strict=False))
        given |= {part.arg: part.value for part in call.keywords if part.arg is not None}
        if name in given:
            yield call, given[name]


def _plain(call: ast.Call) -> Iterator[ast.expr]:
    """The arguments by position, up to those of a list whose length is not known."""
    for argument in call.args:
        if isinstance(argument, ast.Starred):
            return
        yield argument

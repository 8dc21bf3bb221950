"""Dictionaries that compiled steps make."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from isograd.convert.training.record_elements import run_by
from isograd.static_graph.scope import FileScope, below

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_ORDERED = "collections.OrderedDict"
_MAKERS = ("builtins.dict", _ORDERED)
#: What an OrderedDict does otherwise than a dictionary.
_OWN = frozenset(("move_to_end", "popitem"))


def is_ordered_dictionary(call: ast.Call, scope: FileScope) -> bool:
    """Whether a call makes an OrderedDict of items that it names."""
    if scope.qualified(call.func) != _ORDERED or any(one.arg is None for one in call.keywords):
        return False
    return not call.args or (len(call.args) == 1 and _are_pairs(call.args[0]))


def _are_pairs(value: ast.expr) -> bool:
    return isinstance(value, (ast.List, ast.Tuple)) and all(
        isinstance(part, ast.Tuple)
        and len(part.elts) == 2
        and not any(isinstance(one, ast.Starred) for one in part.elts)
        for part in value.elts
    )


def tells_ordered(trees: Iterable[ast.Module], scopes: Iterable[FileScope]) -> bool:
    """Whether anything of a project tells an OrderedDict from a dictionary."""
    for tree, scope in zip(trees, scopes, strict=True):
        for node in below(tree):
            if isinstance(node, ast.Attribute) and node.attr in _OWN:
                return True
            is_question = isinstance(node, ast.Call) and scope.qualified(node.func) in (
                "builtins.isinstance", "builtins.type", "builtins.issubclass",
            )  # fmt: skip
            if is_question and any(scope.qualified(one) == _ORDERED for one in below(node)):
                return True
            if isinstance(node, ast.Compare) and any(
                scope.qualified(one) == _ORDERED for one in below(node)
            ):
                return True
    return False


def returns_dictionary(function: _Function, scope: FileScope) -> bool:
    """Whether a function returns a dictionary that it makes."""
    nodes = [*run_by(function)]
    named = {
        getattr(target, "id", "")
        for node in nodes
        if isinstance(node, ast.Assign) and _makes(node.value, scope)
        for target in node.targets
    }
    for node in nodes:
        for part in below(node.value) if isinstance(node, ast.Return) and node.value else ():
            if _makes(part, scope) or getattr(part, "id", "") in named - {""}:
                return True
    return False


def _makes(node: ast.AST, scope: FileScope) -> bool:
    is_call = isinstance(node, ast.Call) and scope.qualified(node.func) in _MAKERS
    return is_call or isinstance(node, (ast.Dict, ast.DictComp))

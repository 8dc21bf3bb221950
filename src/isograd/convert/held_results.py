"""Calls that give what something holds: `state.get(key)`, `next(net.parameters())`, `bank.get()`.

A change in place of such a tensor is seen by what holds it.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from isograd.convert.origins import Reach, origin_of_write
from isograd.convert.tree import Tree

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
#: Python's functions that give one of what they are given.
_PICKING = frozenset("next getattr max min".split())
#: Those that list what they are given.
LISTING = frozenset("list tuple dict sorted reversed set OrderedDict".split())
#: Methods of dictionaries, lists and networks.
_ASKING = frozenset("get setdefault pop get_parameter get_buffer".split())
_PROPERTIES = frozenset(("property", "cached_property"))
_CACHES = frozenset(("cache", "lru_cache"))
_ASKING_ALL = frozenset("parameters buffers values".split())


def gives_held(node: ast.expr, tree: Tree, named: Mapping[ast.AST, str]) -> bool:
    """Whether an expression is a call that gives what something holds, or an element of a list.

    named: the functions of torch that names, attributes and layers of the file mean.
    """
    if isinstance(node, (ast.ListComp, ast.List, ast.Tuple)):
        return True  # of which an element is asked for
    if not isinstance(node, ast.Call) or node.func in named:
        return False
    if isinstance(node.func, ast.Name):
        name = node.func.id
        return name in _PICKING or name in LISTING or _returns_held(name, tree, named)
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    return name in _ASKING or _returns_held(name, tree, named)


def gives_several_held(node: ast.expr, tree: Tree, named: Mapping[ast.AST, str]) -> bool:
    """Whether an expression lists what something holds: `net.parameters()`, `list(tensors)`."""
    if not isinstance(node, ast.Call) or node.func in named:
        return False
    if isinstance(node.func, ast.Name):
        is_listed = node.func.id in LISTING
        return is_listed or _returns_held(node.func.id, tree, named)
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    return name in _ASKING_ALL or _returns_held(name, tree, named)


def reach_of_held(node: ast.expr, tree: Tree, named: Mapping[ast.AST, str]) -> Reach:
    """How a property, or what a call returns, is one with an attribute of its object."""
    name, is_property = getattr(node, "attr", ""), isinstance(node, ast.Attribute)
    if isinstance(node, ast.Call) and node.func not in named:
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    return _reach_returned(name, tree, named, is_property=is_property) if name else Reach.ALONE


def _returns_held(name: str, tree: Tree, named: Mapping[ast.AST, str]) -> bool:
    """Whether a function of the file may return an attribute or a name from around it."""
    return _reach_returned(name, tree, named) is not Reach.ALONE


def _reach_returned(
    name: str, tree: Tree, named: Mapping[ast.AST, str], *, is_property: bool = False
) -> Reach:
    """How what functions of a name return is one with an attribute, or a name from around them."""
    origins: list[tuple[ast.expr, Reach, _Function]] = [
        (*origin_of_write(value, named), function)
        for function in tree.of(*_FUNCTIONS)
        if function.name == name and (not is_property or _is_property(function))
        for part in tree.walked(function)
        if isinstance(part, ast.Return) and part.value is not None
        if tree.function(part) is function
        for value in _values(part.value, function, tree)
    ]
    origins += [
        (*origin_of_write(one.value.body, named), one.value)
        for one in tree.of(ast.Assign)
        if isinstance(one.value, ast.Lambda) and not is_property
        if any(name == getattr(target, "id", "") for target in one.targets)
    ]
    if not is_property and any(
        function.name == name and _is_cached(function) for function in tree.of(*_FUNCTIONS)
    ):
        return Reach.SHARED
    reaches = [
        reach
        for root, reach, function in origins
        if isinstance(root, ast.Attribute) or _is_from_around(root, function, tree)
    ]
    return max([Reach.SHARED, *reaches]) if reaches else Reach.ALONE


def _is_from_around(node: ast.expr, function: _Function, tree: Tree) -> bool:
    """Whether a function reads a name that the module, or a function around it, binds."""
    if not isinstance(node, ast.Name) or node.id not in tree.own_names:
        return False
    given = function.args
    parameters = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    if any(part is not None and part.arg == node.id for part in parameters):
        return False
    inside = tree.walked(function)
    if any(
        isinstance(part, (ast.Global, ast.Nonlocal)) and node.id in part.names for part in inside
    ):
        return True
    return not any(
        isinstance(part, ast.Name) and part.id == node.id and isinstance(part.ctx, ast.Store)
        for part in inside
    )


def _is_cached(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function keeps what it has returned, and returns it again."""
    called = [getattr(one, "func", one) for one in function.decorator_list]
    return not _CACHES.isdisjoint(getattr(one, "attr", getattr(one, "id", "")) for one in called)


def _is_property(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    decorators = [getattr(one, "attr", getattr(one, "id", "")) for one in function.decorator_list]
    return not _PROPERTIES.isdisjoint(decorators)


def _values(node: ast.expr, function: _Function, tree: Tree) -> list[ast.expr]:
    """What is returned: an expression, its parts, or what the function binds to its name."""
    if isinstance(node, (ast.Tuple, ast.List)):
        return [value for part in node.elts for value in _values(part, function, tree)]
    if not isinstance(node, ast.Name):
        return [node]
    if _is_from_around(node, function, tree):
        return [node]
    return [
        part.value
        for part in tree.walked(function)
        if isinstance(part, ast.Assign)
        if any(isinstance(target, ast.Name) and target.id == node.id for target in part.targets)
    ]

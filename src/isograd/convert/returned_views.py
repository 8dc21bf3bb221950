"""Functions of a file that return an argument or a view of it: `def f(t): return t[:, 0]`.

What is done in place to the result is done to the argument.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from isograd.convert.aliases import Scope
from isograd.convert.origins import Origin, Reach, argument_of_own, origin_of_write, own_name
from isograd.convert.tree import Tree

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_NAMED = (ast.Name, ast.Attribute, ast.Subscript)
#: The place and the name of a parameter; more than any call gives by its place.
_Parameter = tuple[int, str]
_NO_PLACE = 1000
_VIEWING = (ast.Name, ast.Subscript, ast.Attribute, ast.Call, ast.IfExp)


def calls_that_view(tree: Tree, named: Mapping[ast.AST, str]) -> dict[ast.AST, str]:
    """What is called in `col(x, 1)` of such functions, with what the result is of x (`own_name`).

    By the function's name alone.  named: the torch APIs that names and attributes of the file mean.
    """
    called: dict[str, list[ast.Call]] = {}
    for call in tree.of(ast.Call):
        if call.func not in named and (call.args or call.keywords):
            name = getattr(call.func, "attr", getattr(call.func, "id", ""))
            called.setdefault(name, []).append(call)
    found: dict[ast.AST, str] = {}
    for function in tree.of(*_FUNCTIONS):
        calls = called.get(function.name, ())
        returned = _returned_of(function, tree, named) if calls else {}
        found |= {call.func: _meant(call, returned) for call in calls if returned}
    for name, small in _lambdas(tree).items():
        root, reach = origin_of_write(small.body, named)
        for parameter in _parameters(small.args):
            if getattr(root, "id", "") == parameter[1]:
                own = {parameter: max(reach, Reach.SHARED)}
                calls = [one for one in called.get(name, ()) if isinstance(one.func, ast.Name)]
                found |= {call.func: _meant(call, own) for call in calls}
    return found


def _meant(call: ast.Call, returned: Mapping[_Parameter, Reach]) -> str:
    """What a call returns: of several arguments one that has a name, then one that sees most."""

    def rank(parameter: _Parameter) -> tuple[bool, Reach]:
        own = argument_of_own(call, own_name(*parameter, returned[parameter]))
        return own is not None and isinstance(own[0], _NAMED), returned[parameter]

    best = max(returned, key=rank)
    return own_name(*best, returned[best])


def _parameters(arguments: ast.arguments) -> list[_Parameter]:
    """The parameters of a function by place and name; those by name alone have no call's place."""
    placed = [*arguments.posonlyargs, *arguments.args]
    by_name = [(_NO_PLACE, part.arg) for part in arguments.kwonlyargs]
    return [(place, part.arg) for place, part in enumerate(placed)] + by_name


def _lambdas(tree: Tree) -> dict[str, ast.Lambda]:
    """The names that are bound to a lambda."""
    return {
        target.id: node.value
        for node in tree.of(ast.Assign)
        if isinstance(node.value, ast.Lambda)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _returned_of(
    function: ast.FunctionDef | ast.AsyncFunctionDef, tree: Tree, named: Mapping[ast.AST, str]
) -> dict[_Parameter, Reach]:
    """The parameters with which what a function returns is one, and how."""
    decorators = {getattr(part, "id", "") for part in function.decorator_list}
    is_method = isinstance(tree.parents.get(function), ast.ClassDef)
    given = _parameters(function.args)
    if is_method and "staticmethod" not in decorators:
        given = [(place - 1, name) for place, name in given[1:]]
    returned = [
        (part.value, part)
        for part in tree.walked(function)
        if isinstance(part, ast.Return) and isinstance(part.value, _VIEWING)
        if tree.function(part) is function
    ]
    if not given or not returned:
        return {}
    scope = Scope(function, tree, named)
    reaches = {
        parameter: max(_reach_of(value, parameter[1], part, scope) for value, part in returned)
        for parameter in given
    }
    return {parameter: reach for parameter, reach in reaches.items() if reach}


def _reach_of(value: ast.expr, argument: str, at: ast.AST, scope: Scope) -> Reach:
    """How a value is one with an argument, through the names that it was bound to."""
    found = Reach.ALONE
    waiting = [(origin, Reach.ALONE, at) for origin in scope.origins_of(value)]
    known = set[tuple[Origin, ast.AST]]()
    while waiting:
        origin, before, node = waiting.pop()
        if origin.root is None or origin.is_array or (origin, node) in known:
            continue
        known.add((origin, node))
        reach = max(before, Reach.LOST if origin.is_copied else origin.reach)
        bindings = scope.reaching(origin.root, node)
        if not bindings and origin.root == argument:
            found = max(found, reach)
        for binding in bindings:
            waiting += [(further, reach, binding.statement) for further in binding.origins]
    return found

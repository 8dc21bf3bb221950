"""Functions of a file that return their first argument or a view of it: `def f(t): return t[:, 0]`.

What is done in place to the result is done to the argument.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from isograd.convert.aliases import Scope
from isograd.convert.origins import REACH_OF_OWN, Origin, Reach, origin_of_write
from isograd.convert.tree import Tree

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_MEANINGS = {reach: meaning for meaning, reach in REACH_OF_OWN.items()}
_VIEWING = (ast.Name, ast.Subscript, ast.Attribute, ast.Call, ast.IfExp)


def calls_that_view(tree: Tree, named: Mapping[ast.AST, str]) -> dict[ast.AST, str]:
    """What is called in `col(x, 1)` of such functions, with how much the result is one with x.

    By the function's name alone.  named: the torch APIs that names and attributes of the file mean.
    """
    called: dict[str, list[ast.expr]] = {}
    for call in tree.of(ast.Call):
        if call.func not in named and (call.args or call.keywords):
            name = getattr(call.func, "attr", getattr(call.func, "id", ""))
            called.setdefault(name, []).append(call.func)
    found: dict[ast.AST, str] = {}
    for function in tree.of(*_FUNCTIONS):
        for one in called.get(function.name, ()):
            if reach := _reach_of_result(function, tree, named):
                found[one] = _MEANINGS[reach]
    for name, small in _lambdas(tree).items():
        root, reach = origin_of_write(small.body, named)
        if small.args.args and getattr(root, "id", "") == small.args.args[0].arg:
            for one in called.get(name, ()):
                if isinstance(one, ast.Name):
                    found[one] = _MEANINGS[max(reach, Reach.SHARED)]
    return found


def _lambdas(tree: Tree) -> dict[str, ast.Lambda]:
    """The names that are bound to a lambda."""
    return {
        target.id: node.value
        for node in tree.of(ast.Assign)
        if isinstance(node.value, ast.Lambda)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _reach_of_result(
    function: ast.FunctionDef | ast.AsyncFunctionDef, tree: Tree, named: Mapping[ast.AST, str]
) -> Reach:
    """How what a function returns is one with its first argument."""
    given = [*function.args.posonlyargs, *function.args.args]
    decorators = {getattr(part, "id", "") for part in function.decorator_list}
    is_method = isinstance(tree.parents.get(function), ast.ClassDef)
    given = given[1:] if is_method and "staticmethod" not in decorators else given
    returned = [
        (part.value, part)
        for part in tree.walked(function)
        if isinstance(part, ast.Return) and isinstance(part.value, _VIEWING)
        if tree.function(part) is function
    ]
    if not given or not returned:
        return Reach.ALONE
    scope = Scope(function, tree, named)
    reaches = (_reach_of(value, given[0].arg, part, scope) for value, part in returned)
    return max(reaches, default=Reach.ALONE)


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

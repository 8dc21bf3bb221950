"""Lists of modules that hold None: torch's take it, MindSpore's own refuse it."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterator

from isograd.convert.tree import Tree, defaults_of, is_none, pairs_of

CONTAINERS = frozenset(("torch.nn.ModuleList", "torch.nn.ModuleDict"))
#: Methods of lists by the place of what they put in.
_PUT = {"append": 0, "extend": 0, "insert": 1}
_COMPREHENSIONS = (ast.ListComp, ast.GeneratorExp)
_Scope = ast.FunctionDef | ast.AsyncFunctionDef | None


def hold_none(tree: Tree, api_of_call: Callable[[ast.AST], str]) -> bool:
    """Whether something in a file that makes lists of modules may put None into one."""
    calls = tree.of(ast.Call)
    made = [call for call in calls if api_of_call(call) in CONTAINERS]
    if not made:
        return False
    values = _Values(tree)
    put = [argument for call in made for argument in call.args[:1]]
    for call in calls:
        place = _PUT.get(getattr(call.func, "attr", ""))
        if place is not None and isinstance(call.func, ast.Attribute):
            if not _stays_apart(call.func.value, tree):
                put += call.args[place : place + 1]
    return any(values.may_be_none(value, inside=True) for value in put)


def _stays_apart(node: ast.expr, tree: Tree) -> bool:
    """Whether a list is a function's own, which nothing in the file can put into modules.

    It is made empty there, and read, or returned by a function that the file itself never calls.
    """
    function = tree.function(node)
    if not isinstance(node, ast.Name) or function is None:
        return False
    is_returned = False
    for part in tree.walked(function):
        if isinstance(part, ast.arg) and part.arg == node.id:
            return False
        if not isinstance(part, ast.Name) or part.id != node.id:
            continue
        around = tree.parents[part]
        if isinstance(part.ctx, ast.Store):
            is_made = isinstance(around, ast.Assign) and around.targets == [part]
            if not is_made or not isinstance(around.value, ast.List) or around.value.elts:  # type: ignore[attr-defined]
                return False
            continue
        while isinstance(around, (ast.Tuple, ast.IfExp)):
            around = tree.parents[around]
        is_returned |= isinstance(around, ast.Return)
        if not isinstance(around, (ast.Return, ast.Attribute, ast.For, ast.comprehension)):
            return False
    called = {
        getattr(call.func, "attr", getattr(call.func, "id", "")) for call in tree.of(ast.Call)
    }
    return not is_returned or function.name not in called


def _something(node: ast.IfExp) -> ast.Name | None:
    """The part of `x if y is None else y` that is a name, and not None by the question."""
    test = node.test
    if not isinstance(test, ast.Compare) or not is_none(test.comparators[0]) or len(test.ops) > 1:
        return None
    parts = {ast.Is: node.orelse, ast.IsNot: node.body}
    part = parts.get(type(test.ops[0]))
    is_asked = isinstance(part, ast.Name) and getattr(test.left, "id", "") == part.id
    return part if isinstance(part, ast.Name) and is_asked else None


class _Values:
    """What the names of a file are bound to."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._bound: defaultdict[tuple[_Scope, str], list[ast.expr]] = defaultdict(list)
        for node in tree.of(ast.Assign):
            for target, value in (p for t in node.targets for p in pairs_of(t, node.value)):
                if isinstance(target, ast.Name):
                    self._bound[tree.function(node), target.id].append(value)
        for function in tree.of(ast.FunctionDef):
            for name, value in defaults_of(function).items():
                self._bound[function, name].append(value)

    def may_be_none(
        self, node: ast.expr, *, inside: bool = False, seen: frozenset[object] = frozenset()
    ) -> bool:
        """Whether an expression may be None by how it is written; inside: or holds one."""

        def also(part: ast.expr, *, inside: bool = inside) -> bool:
            return self.may_be_none(part, inside=inside, seen=seen)

        if isinstance(node, ast.Constant):
            return node.value is None
        if isinstance(node, ast.IfExp):
            parts = (part for part in (node.body, node.orelse) if part is not _something(node))
            return any(map(also, parts)) or self._holds_none(_something(node), inside, seen)
        if isinstance(node, ast.Starred):
            return also(node.value, inside=True)
        if inside and isinstance(node, (ast.List, ast.Tuple)):
            return any(also(part) for part in node.elts)
        if inside and isinstance(node, ast.Dict):
            return any(also(part) for part in node.values)
        if inside and isinstance(node, _COMPREHENSIONS):
            return also(node.elt)
        if isinstance(node, ast.Name):
            return self._of_name(node, node.id, inside, seen)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return self._of_name(node, node.func.id, False, seen, is_called=True)
        return False

    def _holds_none(self, node: ast.Name | None, inside: bool, seen: frozenset[object]) -> bool:
        """Whether a name that is not None may hold it."""
        if node is None or not inside:
            return False
        scope = self._tree.function(node)
        if (scope, node.id, "some") in seen:
            return False
        seen |= {(scope, node.id, "some")}
        values = self._bound.get((scope, node.id)) or self._bound.get((None, node.id), [])
        some = (value for value in values if not is_none(value))
        return any(self.may_be_none(value, inside=True, seen=seen) for value in some)

    def _of_name(
        self,
        at: ast.expr,
        name: str,
        inside: bool,
        seen: frozenset[object],
        is_called: bool = False,
    ) -> bool:
        scope = self._tree.function(at)
        if (scope, name, inside) in seen:
            return False
        seen |= {(scope, name, inside)}
        values = self._bound.get((scope, name)) or self._bound.get((None, name), [])
        if is_called:
            values = [value.body for value in values if isinstance(value, ast.Lambda)]
            values += self._returned_by(name)
        return any(self.may_be_none(value, inside=inside, seen=seen) for value in values)

    def _returned_by(self, name: str) -> Iterator[ast.expr]:
        """What the file's functions of a name return."""
        for node in self._tree.of(ast.Return):
            function = self._tree.function(node)
            if function is not None and function.name == name and node.value is not None:
                yield node.value

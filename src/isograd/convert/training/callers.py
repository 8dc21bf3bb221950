"""Which calls of a project call a function, and with what.

A method is called by its name; `__call__` by the names that hold an object of its class, and a
function that is handed on by the names that it gets.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from isograd.convert.training.index import Index, last_name

_Function = ast.FunctionDef | ast.AsyncFunctionDef
#: Methods that a call of the object itself runs.
_OF_OBJECTS = ("__call__", "forward")


@dataclass
class Callers:
    """Asks of one project."""

    project: Index
    _known: dict[ast.AST, list[ast.Call]] = field(default_factory=dict)

    def calls(self, function: _Function) -> list[ast.Call]:
        """The calls that may run a function."""
        if function not in self._known:
            self._known[function] = [
                call for call in self._named(function) if _fits(call, self.parameters(function))
            ]
        return self._known[function]

    def given(self, call: ast.Call, function: _Function, name: str) -> list[ast.expr]:
        """What a call gives to a parameter; empty where its default holds."""
        found = [keyword.value for keyword in call.keywords if keyword.arg in (name, None)]
        places = self.parameters(function)
        first = next((n for n, a in enumerate(call.args) if isinstance(a, ast.Starred)), None)
        at = places.index(name) if name in places else None
        if first is not None and (at is None or at >= first):
            return found + call.args[first:]
        if at is None:
            return found + (call.args[len(places) :] if _is_rest(function, name) else [])
        return found + call.args[at : at + 1]

    def parameters(self, function: _Function) -> list[str]:
        """The parameters by their places, without the object of a method."""
        names = [part.arg for part in (*function.args.posonlyargs, *function.args.args)]
        decorators = {getattr(part, "id", "") for part in function.decorator_list}
        is_method = self.project.owner(function) is not None and "staticmethod" not in decorators
        return names[1:] if is_method else names

    def _named(self, function: _Function) -> Iterator[ast.Call]:
        own = self.project.owner(function)
        if own is not None and function.name in _OF_OBJECTS:
            if function.name == "forward":
                yield from self._unless_other(function, own)
            yield from self._handed(self.project.calls.get(own.name, ()), made_by_call=True)
            return
        if own is None:
            named = self.project.calls.get(function.name, ())
            yield from (call for call in named if self.project.means(call.func, function))
        else:
            yield from self._unless_other(function, own)
        reads = (n for n in self._passed(function.name) if self.project.means(n, function))
        yield from self._handed(reads, made_by_call=False)

    def _unless_other(self, function: _Function, own: ast.ClassDef) -> Iterator[ast.Call]:
        """The calls of a method that are not shown to be another class's of this name."""
        for call in self.project.calls.get(function.name, ()):
            receiver = getattr(call.func, "value", None)
            if receiver is None:
                continue
            if getattr(receiver, "id", "") == "self":
                around = (p for p in self.project.above(call) if isinstance(p, ast.ClassDef))
                inner = next(around, None)
                methods = () if inner is None else inner.body
                is_others = inner is not own and any(
                    getattr(part, "name", "") == function.name for part in methods
                )
                if not is_others:
                    yield call
                continue
            made = self._made(receiver)
            if not made or any(name == own.name or self._derives(name, own.name) for name in made):
                yield call

    def _made(self, receiver: ast.expr) -> set[str]:
        """The classes whose calls alone bind a name or an attribute; empty where not known."""
        name = getattr(receiver, "attr", "") or getattr(receiver, "id", "")
        values = self.project.values.get(name, ())
        made = {last_name(value.func) if isinstance(value, ast.Call) else "" for value in values}
        is_given = name in self.project.arguments
        return set() if is_given or not made <= set(self.project.classes) else made

    def _derives(self, name: str, base: str) -> bool:
        """Whether a class of the project has another one among its bases, by their names."""
        seen: set[str] = set()
        waiting = [name]
        while waiting:
            one = waiting.pop()
            for own in self.project.classes.get(one, ()) if one not in seen else ():
                waiting += [last_name(part) for part in own.bases]
            seen.add(one)
        return base in seen

    def _passed(self, name: str) -> list[ast.expr]:
        """Where a name is read and not called."""
        return [n for n in self.project.reads.get(name, ()) if not self._is_called(n)]

    def _handed(self, of: Iterable[ast.AST], *, made_by_call: bool) -> Iterator[ast.Call]:
        """The calls of what reads hold; made_by_call: of the objects that calls make."""
        starts: list[ast.AST] = list(of)
        seen: set[str] = set()
        while starts:
            node = starts.pop()
            if made_by_call and self._is_called(node):
                parent = self.project.parents[node]
                assert isinstance(parent, ast.Call)
                yield parent
            for name in self._holders(node) - seen:
                seen.add(name)
                yield from self.project.calls.get(name, ())
                starts += self._passed(name)

    def _is_called(self, node: ast.AST) -> bool:
        parent = self.project.parents.get(node)
        return isinstance(parent, ast.Call) and parent.func is node

    def _holders(self, node: ast.AST) -> set[str]:
        """The names that a value gets where it stands: targets and parameters."""
        parent = self.project.parents.get(node)
        if isinstance(parent, ast.Assign) and parent.value is node:
            return {last_name(target) for target in parent.targets} - {""}
        if isinstance(parent, ast.keyword):
            return {parent.arg or ""} - {""}
        if not isinstance(parent, ast.Call) or node not in parent.args:
            return set()
        at = parent.args.index(node)
        found = set()
        for function in self.project.called(parent):
            found |= {*self.parameters(function)[at : at + 1]}
        return found


def _fits(call: ast.Call, places: list[str]) -> bool:
    """Whether a call may give these parameters what it gives: `d.update(a=1)` is no step's."""
    return len(call.args) <= len(places) or any(isinstance(a, ast.Starred) for a in call.args)


def _is_rest(function: _Function, name: str) -> bool:
    rest = function.args.vararg
    return rest is not None and rest.arg == name

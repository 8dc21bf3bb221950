"""Calls of what takes gradients of its own, which no step can hold.

adversarial = attack(net, x, y)     # a function, one that is handed on, or an object that is called
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from isograd.convert.training.callers import Callers
from isograd.convert.training.index import last_name
from isograd.convert.training.other_files import OtherFiles
from isograd.convert.training.paths import calls_in

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def takes_gradients(function: ast.AST) -> bool:
    """Whether a function itself calls `backward` or asks for gradients."""
    return any(
        getattr(call.func, "attr", "") == "backward"
        or ast.unparse(call.func).endswith("autograd.grad")
        for call in calls_in([function])
    )


@dataclass
class OwnGradients:
    """Asks of one project."""

    others: OtherFiles
    _known: dict[ast.AST, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._callers = Callers(self.others.index)

    def are_taken_by(self, function: ast.expr, file: str) -> bool:
        """Whether all that an expression may call in a file takes gradients."""
        found = list(self._called(function, file))
        return bool(found) and all(one is not None and self._takes(one) for one in found)

    def _called(self, function: ast.expr, file: str) -> Iterator[_Function | None]:
        """The functions that an expression may call; None for one that is not known."""
        index = self.others.index
        if isinstance(function, ast.Attribute):
            if not index.is_of_library(function):
                named = index.functions.get(function.attr, ())
                yield from (one if index.owner(one) is not None else None for one in named)
            return
        if not isinstance(function, ast.Name):
            return
        above = (part for part in index.above(function) if isinstance(part, _Function))
        around = next(above, None)
        given = [] if around is None else [one.arg for one in around.args.args]
        if around is not None and function.id in given:
            for call in self._callers.calls(around):
                several = self._callers.given(call, around, function.id)
                yield from (None,) if not several else ()
                for part in several:
                    yield from self._held(part, file)
            return
        yield from self._held(function, file)

    def _held(self, value: ast.expr, file: str) -> Iterator[_Function | None]:
        """What is called where a value is: a function, or an object of a class."""
        index = self.others.index
        if isinstance(value, ast.Call):
            made = index.classes.get(last_name(value.func), ())
            methods = [self._method(own, "__call__") for own in made]
            yield from methods or [None]
            return
        name = value.id if isinstance(value, ast.Name) else ""
        plain = [one for one in index.functions.get(name, ()) if index.owner(one) is None]
        if plain:
            yield from (one if len(plain) == 1 else None for one in plain)
            return
        bound = index.values.get(name, ())
        calls = [one for one in bound if isinstance(one, ast.Call)]
        if not calls or len(calls) < len(bound) or name in index.arguments:
            yield None
            return
        for call in calls:
            yield from self._held(call, file)

    def _method(self, own: ast.ClassDef, name: str) -> _Function | None:
        """A method of a class, or of those of the project from which it is derived."""
        waiting, seen = [own], set[ast.ClassDef]()
        while waiting:
            one = waiting.pop(0)
            found = [part for part in one.body if getattr(part, "name", "") == name]
            if found:
                return found[-1] if isinstance(found[-1], _Function) else None
            seen.add(one)
            for base in one.bases:
                bases = self.others.index.classes.get(last_name(base), ())
                waiting += [part for part in bases if part not in seen]
        return None

    def _takes(self, function: _Function) -> bool:
        """Whether a function takes gradients, by another method of its object, too."""
        if function not in self._known:
            self._known[function] = False  # one that calls itself
            own = self.others.index.owner(function)
            self._known[function] = takes_gradients(function) or (
                own is not None
                and any(
                    method is not None and self._takes(method)
                    for call in calls_in([function])
                    for method in [self._own_method(call.func, own)]
                )
            )
        return self._known[function]

    def _own_method(self, function: ast.expr, own: ast.ClassDef) -> _Function | None:
        """The method that `self(…)` or `self.method(…)` calls."""
        if getattr(function, "id", "") == "self":
            return self._method(own, "__call__")
        is_own = getattr(getattr(function, "value", None), "id", "") == "self"
        return self._method(own, function.attr) if is_own else None  # type: ignore[attr-defined] # a method

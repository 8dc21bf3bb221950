"""Classes of a program that is followed: what they derive from, and what their objects hold."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from isograd.init.values import Api, Defined, Instance, Known, Method, Output, Scalar, Value

if TYPE_CHECKING:
    from isograd.init.reading import Reading

Arguments = tuple[list[Value], dict[str, Value]]
#: The methods that are a module's forward pass.
FORWARD = ("forward", "construct")


class Classes:
    """Classes of the user's files."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._kinds: dict[int, str] = {}

    def class_kind(self, function: Defined) -> str:
        """Whether a class of the user's is a module, a data set, or anything else."""
        key = id(function.node)
        if key not in self._kinds:
            self._kinds[key] = ""
            self._kinds[key] = self._kind_of(function)
        return self._kinds[key]

    def _kind_of(self, function: Defined) -> str:
        for base in function.node.bases:
            found = self._look_up(base, function)
            if isinstance(found, Api) and self._reading.apis.is_base(found.name):
                return "module"
            if isinstance(found, Defined) and isinstance(found.node, ast.ClassDef):
                if kind := self.class_kind(found):
                    return kind
        if any(getattr(part, "name", "") == "__getitem__" for part in function.node.body):
            return "dataset"
        return ""

    def _look_up(self, node: ast.expr, function: Defined) -> Value:
        if isinstance(node, ast.Name):
            return found if (found := function.scope.lookup(node.id)) is not None else Value()
        if isinstance(node, ast.Attribute):
            owner = self._look_up(node.value, function)
            if isinstance(owner, Api):
                return Api(None, f"{owner.name}.{node.attr}")
        return Value()

    def loss_of_class(self, function: Defined, arguments: Arguments) -> Scalar | None:
        """What a module of the user's returns, if it is the value of a loss of its arguments."""
        method = self.method_of(function, FORWARD)
        if method is None:
            return None
        seen = len(self._reading.found.calls)
        made = self.instance(function, arguments)
        count = len(method.args.args) - 1
        given: list[Value] = [Output("output")]
        given += [self._reading.placeholder() for _ in range(max(0, count - 1))]
        found = self._reading.run(method, function.scope, [made, *given[:count]], {})
        called = self._reading.found.calls[seen:]
        del self._reading.found.calls[seen:]
        if isinstance(found, Scalar) and not called:
            return found
        return None

    def instance(self, function: Defined, arguments: Arguments) -> Instance:
        """An object of a class, with what its `__init__` sets."""
        made = Instance(None, function)
        method = self.method_of(function, ("__init__",))
        found = self._reading.found
        counts = len(found.networks), len(found.losses)
        if method is not None:
            self._reading.run(method, function.scope, [made, *arguments[0]], arguments[1])
        else:
            self._fields(function, made, arguments)
        if self.class_kind(function) == "module":
            made.code = "model"
            del found.networks[counts[0] :], found.losses[counts[1] :]
        return made

    def _fields(self, function: Defined, made: Instance, arguments: Arguments) -> None:
        """Of a dataclass or a plain class: the values in its body, then those that are given."""
        from isograd.init.scopes import Scope

        outer = function.scope if isinstance(function.scope, Scope) else None
        scope = Scope(outer.source if outer else function.scope, outer)
        names = []
        for part in function.node.body:
            if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                names.append(part.target.id)
                if part.value is not None:
                    made.attributes[part.target.id] = self._reading.value(part.value, scope)
            elif isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Name):
                made.attributes[part.targets[0].id] = self._reading.value(part.value, scope)
        made.attributes.update(zip(names, arguments[0], strict=False))
        made.attributes.update(arguments[1])

    def method_of(self, function: Defined, names: tuple[str, ...]) -> Any:
        for part in function.node.body:
            if isinstance(part, ast.FunctionDef) and part.name in names:
                return part
        for base in function.node.bases:
            found = self._look_up(base, function)
            if isinstance(found, Defined) and isinstance(found.node, ast.ClassDef):
                if (method := self.method_of(found, names)) is not None:
                    return method
        return None

    def member(self, owner: Instance, name: str) -> Value | None:
        if name in owner.attributes:
            return owner.attributes[name]
        if owner.definition is None:
            return None
        method = self.method_of(owner.definition, (name,))
        if method is not None:
            return Method(None, method, owner)
        for part in owner.definition.node.body:
            if isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Name):
                if part.targets[0].id == name and isinstance(part.value, ast.Constant):
                    return Known(repr(part.value.value), part.value.value)
        return None

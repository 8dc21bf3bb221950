"""Functions of a fake network, found and changed where its code calls them."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from isograd import tree
from isograd.frameworks.base import FunctionSite, Intervention, Operand, Place
from isograd.frameworks.fake.convert import to_value
from isograd.frameworks.fake.network import Module
from isograd.frameworks.fake.observe import Forward, is_tensor, replaced
from isograd.frameworks.fake.tape import Node, Parameter, Run, Tensor, Tracing

#: The module of places outside every module: the loss.
OUTSIDE = "(loss)"


@dataclass(frozen=True)
class ChangedCall:
    """A call as a hypothesis sees it (`isograd.diagnose.hypothesis.Call`)."""

    function: str
    arguments: dict[str, Any]
    run: Callable[..., Any]
    module: Module | None
    number: int

    def __getitem__(self, name: str) -> Any:
        return self.arguments[name]

    def together(self, name: str, changes: tuple[Intervention, ...]) -> Any:
        """Run the module whose call this is, named `name`, with changes at places within it."""
        assert self.module is not None
        inner = Interventions(dict(self.module.named_modules(name)), changes)
        with inner.watching(name):
            return self.run()


class Interventions:
    """Notes the functions that are called, or changes those at given places.

    modules: by name; none for the loss.  sites: what was called, where `notes` is set.
    """

    def __init__(
        self,
        modules: Mapping[str, Module],
        changes: tuple[Intervention, ...] = (),
        *,
        notes: bool = False,
        with_values: bool = False,
    ) -> None:
        self.sites: list[FunctionSite] = []
        self._modules = modules
        self._changes = changes
        self._notes, self._with_values = notes, with_values
        self._inside: list[tuple[str, dict[str, int]]] = []
        self._passed: dict[Place, int] = {}
        self._sources: dict[Node, str] = {}
        self._is_changing = False

    def know(self, node: Node, source: str) -> None:
        """Remember where a tensor comes from."""
        self._sources[node] = source

    @contextlib.contextmanager
    def watching(self, inside: str | None = None) -> Iterator[None]:
        """Watch until the end of the block; inside: the module whose code runs already."""
        for name, module in self._modules.items():
            for attribute, parameter in module.own_parameters():
                own = f"{name}.{attribute}" if name else attribute
                self._sources.setdefault(parameter.node, f"parameter.{own}")
        first = OUTSIDE if inside is None else inside
        self._inside = [(first, {})] if inside is not None or not self._modules else []
        before, Tracing.on_call = Tracing.on_call, self._function
        try:
            with replaced(dict(self._modules), self._forward):
                yield
        finally:
            Tracing.on_call = before

    def _function(self, name: str, run: Run, arguments: dict[str, Any]) -> Tensor:
        if not self._inside or self._is_changing:
            return run()
        module, counts = self._inside[-1]
        place = Place(module, name, counts.get(name, 0))
        counts[name] = place.index + 1
        result: Tensor = self._changed(place, name, arguments, run, None)
        return result

    def _forward(self, name: str, original: Forward) -> Forward:
        def forward(*args: Any, **kwargs: Any) -> Any:
            arguments = {**{str(i): one for i, one in enumerate(args)}, **kwargs}

            def run(**changed: Any) -> Any:
                own = [changed.pop(str(i), one) for i, one in enumerate(args)]
                self._inside.append((name, {}))
                before, self._is_changing = self._is_changing, False
                try:
                    return original(*own, **{**kwargs, **changed})
                finally:
                    self._is_changing = before
                    self._inside.pop()

            place = Place(name, "module", 0)
            return self._changed(place, "module", arguments, run, self._modules[name])

        return forward

    def _changed(
        self, place: Place, name: str, arguments: dict[str, Any], run: Run, module: Module | None
    ) -> Any:
        """What the call yields under the changes at its place; functions within are no places."""
        number = self._passed.get(place, 0)
        self._passed[place] = number + 1
        for one in self._changes:
            if one.place == place:
                run = functools.partial(_apply, one, name, arguments, run, module, number)
        described = {key: self._described(value) for key, value in arguments.items()}
        before = self._is_changing
        self._is_changing = True
        try:
            result = run()
        finally:
            self._is_changing = before
        if self._notes:
            self._note(place, described, result, name if module is None else type(module).__name__)
        return result

    def _note(self, place: Place, arguments: dict[str, Any], result: Any, kind: str) -> None:
        tensors, _ = tree.flatten(result, is_tensor)
        event = len(self.sites)
        outputs = tuple(
            Operand(f"event.{event}.{slot}", one.shape, str(one.values.dtype))
            for slot, one in enumerate(tensors)
        )
        values = tuple(to_value(one.node) for one in tensors) if self._with_values else ()
        self.sites.append(FunctionSite(place, event, arguments, outputs, kind, values))
        for one, operand in zip(tensors, outputs, strict=True):
            self.know(one.node, operand.source)

    def _described(self, value: Any) -> Any:
        if isinstance(value, (Tensor, Parameter)):
            source = self._sources.get(value.node, "other")
            return Operand(source, value.shape, str(value.values.dtype))
        if isinstance(value, (tuple, list)):
            return tuple(map(self._described, value))
        return value if isinstance(value, (bool, int, float, str, type(None))) else str(value)


def _apply(
    one: Intervention,
    name: str,
    arguments: dict[str, Any],
    run: Run,
    module: Module | None,
    number: int,
    /,
    **changed: Any,
) -> Any:
    call = ChangedCall(name, {**arguments, **changed}, run, module, number)
    return one.change(call, one.values)


@contextlib.contextmanager
def intervening(modules: Mapping[str, Module], changes: tuple[Intervention, ...]) -> Iterator[None]:
    """Change what these interventions say until the end of the block."""
    with contextlib.ExitStack() as stack:
        if changes:
            stack.enter_context(Interventions(modules, changes).watching())
        yield

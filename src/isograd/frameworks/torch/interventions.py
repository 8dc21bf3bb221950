"""Functions of a torch network, found and changed where the user's code calls them.

A hypothesis about a port is tried on the reference: the function that the port is suspected to
compute otherwise is computed so here, in float64, and everything behind it follows.  A place is a
function call within the code of one module, or the call of a module itself.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.overrides import TorchFunctionMode

from isograd import tree
from isograd.frameworks.base import FunctionSite, Intervention, Operand, Place
from isograd.frameworks.common import users_instruction
from isograd.frameworks.torch.convert import to_value
from isograd.frameworks.torch.function_names import canonical, signature_of

#: Of these, what yields the same numbers: `x.contiguous()`, `x.mT`.
_SAME_TENSOR = frozenset(("__get__", "contiguous", "requires_grad_"))
#: The module of places outside every module: the loss.
OUTSIDE = "(loss)"


@dataclass
class SiteCall:
    """One call of a function at a place, as a hypothesis sees it.

    arguments: by torch's names, defaults included where they are known; of a module's call by
    position ("0", "1") and keyword.  run: the function itself, with some arguments changed.
    module: the module whose call this is, for places of the function "module".
    number: how many calls at this place the pass has made before.
    """

    function: str
    arguments: dict[str, Any]
    values: Mapping[str, Any]
    run: Callable[..., Any]
    module: nn.Module | None = None
    number: int = 0

    def __getitem__(self, name: str) -> Any:
        return self.arguments[name]

    def together(self, name: str, changes: tuple[Intervention, ...]) -> Any:
        """Run the module whose call this is, named `name`, with changes at places within it."""
        assert self.module is not None
        modules = {
            ".".join(part for part in (name, inner) if part): module
            for inner, module in self.module.named_modules()
        }
        mode = Interventions(modules, changes)
        mode._frames.append((name, {}))
        with mode.watching(""), mode:
            return self.run()


class _Changing:
    """How deep in changes of hypotheses the code is: their own functions are no places."""

    depth = 0


@contextlib.contextmanager
def _unseen() -> Iterator[None]:
    """Functions that are called until the end of the block are no places."""
    _Changing.depth += 1
    try:
        yield
    finally:
        _Changing.depth -= 1


class Interventions(TorchFunctionMode):
    """Notes the functions that are called, and changes those at given places."""

    def __init__(
        self,
        modules: dict[str, nn.Module],
        interventions: tuple[Intervention, ...] = (),
        *,
        note: bool = False,
        with_values: bool = False,
    ) -> None:
        super().__init__()
        self._modules = modules
        self._changes: dict[Place, list[Intervention]] = {}
        for one in interventions:
            self._changes.setdefault(one.place, []).append(one)
        self.sites: list[FunctionSite] = []
        self._note_sites = note
        self._with_values = with_values
        self._frames: list[tuple[str, dict[str, int]]] = [(OUTSIDE, {})]
        self._passed: dict[Place, int] = {}
        self._known: dict[int, str] = {}
        self._alive: list[Any] = []
        if note:
            for prefix, module in modules.items():
                for name, parameter in module.named_parameters(recurse=False):
                    self.know(
                        parameter, f"parameter.{prefix}.{name}" if prefix else f"parameter.{name}"
                    )

    def know(self, tensor: torch.Tensor, reference: str) -> None:
        """Remember where a tensor comes from."""
        self._known[id(tensor)] = reference
        self._alive.append(tensor)

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = dict(kwargs or {})
        if _Changing.depth:
            return func(*args, **kwargs)
        name = canonical(func)
        if func is F.multi_head_attention_forward:
            return self._descend(func, args, kwargs)
        outside = self._frames[-1][0] == OUTSIDE and bool(self._modules)
        if not name or outside:
            result = func(*args, **kwargs)
            if self._note_sites and getattr(func, "__name__", "") in _SAME_TENSOR:
                self._pass_on(args, result)
            return result
        if name in ("clone", "detach", "to", "float", "double", "half", "bfloat16", "type_as"):
            if not self._wanted(name):
                result = func(*args, **kwargs)
                if name != "detach" or not result.requires_grad:
                    self._pass_on(args, result)
                self._count(name)
                return result
        module, counts = self._frames[-1]
        index = counts.get(name, 0)
        counts[name] = index + 1
        place = Place(module, name, index)
        changes = self._changes.get(place, ())
        if not changes and not self._note_sites:
            return func(*args, **kwargs)
        names, defaults = signature_of(func, name)
        positional = _varargs(name, args)
        if not names:
            names = tuple(map(str, range(len(positional))))
        arguments = {**defaults, **dict(zip(names, positional, strict=False)), **kwargs}
        result = self._changed(func, name, names, positional, kwargs, arguments, place)
        raw = getattr(func, "__name__", "")
        if changes and _is_in_place(raw) and isinstance(result, torch.Tensor):
            args[0].copy_(result)
            result = args[0]
        if self._note_sites:
            self._note(place, name, arguments, result)
        return result

    def _wanted(self, name: str) -> bool:
        return any(place.function == name for place in self._changes) or (
            self._note_sites and name in ("detach", "half", "bfloat16", "to")
        )

    def _count(self, name: str) -> None:
        counts = self._frames[-1][1]
        counts[name] = counts.get(name, 0) + 1

    def _changed(
        self,
        func: Any,
        name: str,
        names: tuple[str, ...],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        arguments: dict[str, Any],
        place: Place,
    ) -> Any:
        changes = self._changes.get(place, ())

        def run(**changed: Any) -> Any:
            own = list(args)
            keywords = dict(kwargs)
            for key, value in changed.items():
                if key in names and names.index(key) < len(own):
                    own[names.index(key)] = value
                else:
                    keywords[key] = value
            if _is_in_place(getattr(func, "__name__", "")) and changes:
                own[0] = own[0].clone()
            return func(*own, **keywords)

        number = self._number(place)
        for one in changes:
            run = functools.partial(_apply, one, name, arguments, run, None, number)
        return run()

    def _number(self, place: Place) -> int:
        """How many calls at a place the pass has made before this one."""
        number = self._passed.get(place, 0)
        self._passed[place] = number + 1
        return number

    def _descend(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Look into a function of torch that is written in Python."""
        namespace = vars(F)
        check = namespace["has_torch_function"]
        namespace["has_torch_function"] = lambda _: False
        try:
            with self:
                return func(*args, **kwargs)
        finally:
            namespace["has_torch_function"] = check

    def _pass_on(self, args: tuple[Any, ...], result: Any) -> None:
        if args and isinstance(result, torch.Tensor):
            source = self._known.get(id(args[0]))
            if source is not None:
                self.know(result, source)

    def _note(self, place: Place, name: str, arguments: dict[str, Any], result: Any) -> None:
        tensors, _ = tree.flatten(result, lambda v: isinstance(v, torch.Tensor))
        with _unseen():  # taking a module's results calls functions, which are no sites
            values = tuple(to_value(t.detach()) for t in tensors) if self._with_values else ()
        event = len(self.sites)
        self.sites.append(
            FunctionSite(
                place,
                event,
                {key: self._described(value) for key, value in arguments.items()},
                tuple(
                    Operand(f"event.{event}.{i}", tuple(t.shape), _dtype(t))
                    for i, t in enumerate(tensors)
                ),
                kind=name
                if place.function != "module"
                else type(self._modules.get(place.module)).__name__,
                values=values,
                origin=users_instruction(),
            )
        )
        for position, tensor in enumerate(tensors):
            self.know(tensor, f"event.{event}.{position}")

    def _described(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            source = self._known.get(id(value), "other")
            return Operand(source, tuple(value.shape), _dtype(value))
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, (tuple, list)):
            return tuple(self._described(part) for part in value)
        return str(value)

    @contextlib.contextmanager
    def watching(self, root: str) -> Iterator[None]:
        """Know in which module a function is called, and change calls of modules."""
        patched: list[tuple[nn.Module, bool, Any]] = []
        try:
            for name, module in self._modules.items():
                if root and name != root and not name.startswith(f"{root}."):
                    continue
                own = "forward" in module.__dict__
                patched.append((module, own, module.__dict__.get("forward")))
                module.__dict__["forward"] = self._forward(name, module, module.forward)
            yield
        finally:
            for module, own, before in reversed(patched):
                if own:
                    module.__dict__["forward"] = before
                else:
                    module.__dict__.pop("forward", None)

    def _forward(
        self, name: str, module: nn.Module, original: Callable[..., Any]
    ) -> Callable[..., Any]:
        def forward(*args: Any, **kwargs: Any) -> Any:
            place = Place(name, "module", 0)
            changes = self._changes.get(place, ())
            arguments = {**{str(i): a for i, a in enumerate(args)}, **kwargs}

            def run(**changed: Any) -> Any:
                own = [changed.pop(str(i), a) for i, a in enumerate(args)]
                self._frames.append((name, {}))
                before, _Changing.depth = _Changing.depth, 0
                try:
                    return original(*own, **{**kwargs, **changed})
                finally:
                    _Changing.depth = before
                    self._frames.pop()

            number = self._number(place)
            for one in changes:
                run = functools.partial(_apply, one, "module", arguments, run, module, number)
            result = run()
            if self._note_sites:
                self._note(place, name, arguments, result)
            return result

        return forward


def _apply(
    one: Intervention,
    name: str,
    arguments: dict[str, Any],
    run: Callable[..., Any],
    module: nn.Module | None,
    number: int,
    /,
    **changed: Any,
) -> Any:
    call = SiteCall(name, {**arguments, **changed}, one.values, run, module, number)
    with _unseen():
        return one.change(call, one.values)


def _varargs(name: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """`x.permute(0, 2, 1)` and the like hold their dimensions as separate arguments."""
    if name in ("permute", "reshape", "view", "flip", "expand", "repeat") and len(args) > 2:
        return (args[0], tuple(args[1:]))
    if name == "einsum" and len(args) > 2:
        return (args[0], tuple(args[1:]))
    return args


def _is_in_place(name: str) -> bool:
    bare = name.strip("_")
    return (name.endswith("_") and not name.startswith("__")) or bare in (
        "iadd",
        "isub",
        "imul",
        "itruediv",
        "ipow",
    )


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


@contextlib.contextmanager
def intervening(
    model: nn.Module | None, interventions: tuple[Intervention, ...], root: str = ""
) -> Iterator[None]:
    """Change what these interventions say until the end of the block."""
    if not interventions:
        yield
        return
    modules = dict(model.named_modules()) if model is not None else {}
    mode = Interventions(modules, interventions)
    with mode.watching(root), mode:
        yield

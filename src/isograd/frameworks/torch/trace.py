"""Which functions a replay calls, with their results: to name the one that first differs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from isograd.frameworks.base import FunctionCall
from isograd.frameworks.torch.convert import to_value

_SILENT = frozenset(
    "__get__ __set__ size dim stride detach clone contiguous requires_grad_ copy_".split()
)


class FunctionTrace(TorchFunctionMode):
    """Notes every function that returns a floating tensor, and where its inputs came from."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[FunctionCall] = []
        self._makers: dict[int, int] = {}
        self._alive: list[torch.Tensor] = []
        self._open: list[str] = []

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        if name in _SILENT:
            self._pass_on(args, result)
            return result
        sources = tuple(
            sorted({self._makers[id(a)] for a in _tensors(args) if id(a) in self._makers})
        )
        for tensor in _tensors((result,)):
            if tensor.is_floating_point() and self._open:
                value = to_value(tensor)
                self.events.append(FunctionCall(self._open[-1], name.strip("_"), sources, value))
                self._makers[id(tensor)] = len(self.events) - 1
                self._alive.append(tensor)
        return result

    def _pass_on(self, args: tuple[Any, ...], result: Any) -> None:
        source = next((id(a) for a in _tensors(args) if id(a) in self._makers), None)
        if source is not None and isinstance(result, torch.Tensor):
            self._makers[id(result)] = self._makers[source]
            self._alive.append(result)

    @contextlib.contextmanager
    def inside(self, module: nn.Module, name: str) -> Iterator[None]:
        """Know in which of a module's children a function is called."""

        def hooks(path: str) -> tuple[Callable[..., None], Callable[..., None]]:
            def before(*_: Any) -> None:
                self._open.append(path)

            def after(*_: Any) -> None:
                self._open.pop()

            return before, after

        handles = []
        try:
            for suffix, child in module.named_modules():
                path = ".".join(filter(None, (name, suffix)))
                before, after = hooks(path)
                handles.append(child.register_forward_pre_hook(before))
                handles.append(child.register_forward_hook(after))
            yield
        finally:
            for handle in handles:
                handle.remove()


def _tensors(values: Any) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from _tensors(value)

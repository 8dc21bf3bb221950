"""Times of torch's modules in forward and backward, children included.

Backward times come from hooks on tensors, not on modules: a module's backward hook forbids in-place
operations on its output. A module's gradient takes from the arrival of its output's gradient until
that of its inputs' and parameters' gradients.
"""

from __future__ import annotations

import contextlib
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from isograd.profile.model import ModuleTime


class ModuleClock:
    """Hooks on all modules between start and stop."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._undo = contextlib.ExitStack()
        self._forward: defaultdict[str, list[float]] = defaultdict(list)
        self._calls: defaultdict[str, int] = defaultdict(int)
        self._shapes: dict[str, str] = {}
        self._open: defaultdict[str, list[float]] = defaultdict(list)
        self._spans: defaultdict[str, list[list[float]]] = defaultdict(list)
        self._kinds: dict[str, str] = {}
        self._root_calls = 0
        self._is_on = False

    def start(self, settle: Callable[[], None]) -> None:
        """Hook all modules. settle: waits for the device before each time is taken."""
        self._is_on = True
        self._settle = settle
        for name, module in self._model.named_modules():
            self._kinds[name] = type(module).__name__
            before = module.register_forward_pre_hook(self._before(name), with_kwargs=True)
            after = module.register_forward_hook(self._after(name))
            self._undo.callback(before.remove)
            self._undo.callback(after.remove)
            for parameter in module.parameters(recurse=False):
                if parameter.requires_grad:
                    handle = parameter.register_post_accumulate_grad_hook(self._arrived(name))
                    self._undo.callback(handle.remove)

    def stop(self) -> None:
        """Remove the hooks; a second call does nothing."""
        self._is_on = False
        self._undo.close()

    def times(self) -> tuple[ModuleTime, ...]:
        """Seconds per step of each module that was called."""
        steps = max(self._root_calls, 1)
        found = []
        for name, forward in self._forward.items():
            backward = [end - begin for begin, end in self._spans.get(name, []) if end > begin]
            calls = max(round(self._calls[name] / steps), 1)
            found.append(
                ModuleTime(
                    name,
                    self._kinds[name],
                    _per_step(forward, calls),
                    _per_step(backward, calls),
                    calls,
                    self._shapes.get(name, ""),
                )
            )
        return tuple(found)

    def _before(self, name: str) -> Callable[..., None]:
        def hook(module: Any, arguments: Any, options: Any = None) -> None:
            if not self._is_on:  # torch still calls hooks that were removed during this very call
                return
            self._settle()
            self._open[name].append(time.perf_counter())
            for tensor in _tensors((arguments, options)):
                if tensor.requires_grad and tensor.grad_fn is not None:
                    tensor.register_hook(self._arrived(name))

        return hook

    def _after(self, name: str) -> Callable[..., None]:
        def hook(module: Any, arguments: Any, output: Any) -> None:
            if not self._is_on:
                return
            self._settle()
            now = time.perf_counter()
            if self._open[name]:
                self._forward[name].append(now - self._open[name].pop())
                self._calls[name] += 1
            if not name:
                self._root_calls += 1
            tensors = _tensors(output)
            if tensors:
                self._shapes.setdefault(name, "×".join(map(str, tensors[0].shape)))
            for tensor in tensors[:1]:
                if tensor.requires_grad:
                    tensor.register_hook(self._began(name))

        return hook

    def _began(self, name: str) -> Callable[[Any], None]:
        def hook(gradient: Any) -> None:
            if self._is_on:
                self._settle()
                now = time.perf_counter()
                self._spans[name].append([now, now])

        return hook

    def _arrived(self, name: str) -> Callable[[Any], None]:
        def hook(gradient: Any) -> None:
            if self._is_on and self._spans[name]:
                self._settle()
                now = time.perf_counter()
                parts = name.split(".") if name else []
                for depth in range(len(parts) + 1):  # parameters of children end their parents, too
                    outer = self._spans.get(".".join(parts[:depth]))
                    if outer:
                        outer[-1][1] = now

        return hook


def _per_step(seconds: list[float], calls: int) -> float:
    """Median of a call times calls per step, NaN where nothing was seen."""
    return float(np.median(seconds)) * calls if seconds else float("nan")


def _tensors(value: Any) -> list[Any]:
    """Tensors in a nest of tuples, lists and dictionaries."""
    import torch

    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [tensor for part in value for tensor in _tensors(part)]
    return []

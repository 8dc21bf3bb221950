"""One step of a training with the line of each operator; what differs is in the two adapters."""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from isograd.profile.model import Phase, SourceOperator
from isograd.profile.record.places import place_of, users_frame

_Key = tuple[str, str, str, str, str, Phase, str, str]
#: Gets an operator's name, arguments and result.
See = Callable[[str, Any, Any], None]


class OperatorCounter:
    """Counts operators by name, shapes, dtypes, line, module and phase between start and stop."""

    def __init__(
        self,
        modules: Callable[[], Iterable[tuple[str, Any]]],
        make_mode: Callable[[See], contextlib.AbstractContextManager[object]],
        tensors: Callable[[Any], list[Any]],
        hook_options: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        """modules: names and modules of the network.

        make_mode: a context in which each operator is shown as (name, arguments, result).
        tensors: all tensors among some arguments.  hook_options: of `register_forward_hook`.
        """
        self._modules, self._make_mode, self._tensors = modules, make_mode, tensors
        self._hook_options = hook_options
        self._undo = contextlib.ExitStack()
        self._count: Counter[_Key] = Counter()
        self._stack: list[str] = []
        self._phase: Callable[[], Phase | None] = lambda: None
        self._is_paused = False

    def start(self, phase: Callable[[], Phase | None]) -> None:
        """Look at every operator that Python issues, and at those of the backward pass in torch."""
        self._phase = phase
        for name, module in self._modules():
            before = module.register_forward_pre_hook(self._enter(name))
            after = module.register_forward_hook(self._leave, **self._hook_options)
            self._undo.callback(before.remove)
            self._undo.callback(after.remove)
        self._undo.enter_context(self._make_mode(self._see))

    def stop(self) -> None:
        """Look no more; a second call does nothing."""
        self._undo.close()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """What isograd itself calls meanwhile is no operator of the training."""
        self._is_paused = True
        try:
            yield
        finally:
            self._is_paused = False

    def operators(self) -> tuple[SourceOperator, ...]:
        """What was seen, most frequent first."""
        return tuple(
            SourceOperator(name, shapes, dtypes, where, module, phase, count, results, made)
            for (name, shapes, dtypes, where, module, phase, results, made), count in (
                self._count.most_common()
            )
        )

    def _enter(self, name: str) -> Callable[[Any, Any], None]:
        def hook(module: Any, arguments: Any) -> None:
            self._stack.append(name)

        return hook

    def _leave(self, module: Any, arguments: Any, output: Any) -> None:
        if self._stack:
            self._stack.pop()

    def _see(self, name: str, arguments: Any, result: Any) -> None:
        if self._is_paused:
            return
        # This frame, the mode's, the user's.
        frame = users_frame(sys._getframe(2))
        where = place_of(frame) if frame is not None else ""
        # A Python number in an expression is a tensor without axes: it says nothing.
        given = [tensor for tensor in self._tensors(arguments) if tensor.ndim]
        made = self._tensors((result,))
        module = self._stack[-1] if self._stack else ""
        phase = self._phase() or Phase.OTHER
        key = (
            name,
            _shapes(given),
            _dtypes(given),
            where,
            module,
            phase,
            _dtypes(made),
            _shapes(made),
        )
        self._count[key] += 1


def _shapes(tensors: list[Any]) -> str:
    return ", ".join("×".join(map(str, tensor.shape)) for tensor in tensors if tensor.ndim)


def _dtypes(tensors: list[Any]) -> str:
    names = (str(tensor.dtype).removeprefix("torch.").lower() for tensor in tensors)
    return ", ".join(dict.fromkeys(names))

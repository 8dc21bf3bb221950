"""Typed requests: a method of a service's protocol, with its arguments and its answer's type."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

Answer = TypeVar("Answer")
Arguments = ParamSpec("Arguments")


class Asker:
    """Whoever sends a request's name and arguments, and receives what the service returns."""

    def send(self, method: str, *arguments: Any) -> None:
        """Send a request."""
        raise NotImplementedError

    def receive(self, patience_s: float | None = None) -> Any:
        """The answer to the last request; patience_s: how long to wait for it."""
        raise NotImplementedError

    def ask(
        self,
        method: Callable[Concatenate[Any, Arguments], Answer],
        *arguments: Arguments.args,
        **keywords: Arguments.kwargs,
    ) -> Answer:
        """Send a request and wait for its answer; method: of a protocol, as `Passes.forward`."""
        return self.begin(method, *arguments, **keywords).answer()

    def begin(
        self,
        method: Callable[Concatenate[Any, Arguments], Answer],
        *arguments: Arguments.args,
        **keywords: Arguments.kwargs,
    ) -> Pending[Answer]:
        """Send a request; nothing else can be asked until its answer is fetched."""
        given = _signature(method).bind(None, *arguments, **keywords)
        given.apply_defaults()
        self.send(method.__name__, *given.args[1:])
        return Pending(self)


class Pending(Generic[Answer]):
    """An answer that is under way."""

    def __init__(self, asker: Asker) -> None:
        self._asker = asker

    def answer(self, patience_s: float | None = None) -> Answer:
        """Wait for it; raises what the service raised."""
        found: Answer = self._asker.receive(patience_s)
        return found


@functools.cache
def _signature(method: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(method)

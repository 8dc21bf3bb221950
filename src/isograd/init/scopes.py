"""What a program was seen to do, and the scopes of its names."""

from __future__ import annotations

from dataclasses import dataclass, field

from isograd.init.source import Source
from isograd.init.values import Network, Optimizer, Scalar, Tensor, Value


@dataclass
class NetworkCall:
    """A network that is called: with what."""

    network: Network
    positional: list[Value]
    keywords: dict[str, Value]
    line: int


@dataclass
class Found:
    """What a program was seen to do, in its order; losses are those that are differentiated."""

    calls: list[NetworkCall] = field(default_factory=list)
    losses: list[Scalar] = field(default_factory=list)
    optimizers: list[Optimizer] = field(default_factory=list)
    networks: list[Network] = field(default_factory=list)
    schedulers: list[int] = field(default_factory=list)
    tensors: list[Tensor] = field(default_factory=list)


class Returned(Exception):  # noqa: N818 - it leaves a function's body, as `return` does
    """A function's value."""

    def __init__(self, value: Value) -> None:
        super().__init__()
        self.value = value


class Scope:
    """Names in a function, over those of the file."""

    def __init__(self, source: Source, outer: Scope | None = None) -> None:
        self.source = source
        self.outer = outer
        self.names: dict[str, Value] = {}

    def lookup(self, name: str) -> Value | None:
        """What a name is bound to, or None for a builtin or an unknown name."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.outer
        return self.source.lookup(name)

"""What a file offers for a case, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from isograd.init.values import Tensor, Value


@dataclass(frozen=True)
class Callee:
    """What a case calls: a name of the file, or a text that has to be put into a function.

    kwargs: keyword arguments of the name.  parameters: those that it takes; missing: those that it
    needs and nobody gives.
    """

    name: str | None
    code: str
    line: int = 0
    kwargs: dict[str, Any] = field(default_factory=dict)
    parameters: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class LossCallee(Callee):
    """A loss; kind: what its target is, by apis.toml; targets: how many, with what is known."""

    kind: str = ""
    targets: tuple[Tensor, ...] = ()


@dataclass(frozen=True)
class SideFound:
    """What a file offers; inputs: by position or keyword, None where no call was seen.

    arguments: names of the network's own arguments, required: of those without a default; None
    where they are not known.
    consumers: the module that an argument goes into first, by the argument's name.
    others: further networks that could have been meant.
    """

    path: Path
    module: str
    framework: str | None
    model: Callee | None
    loss: LossCallee | None = None
    optimizer: Callee | None = None
    inputs: dict[str, Value] | None = None
    arguments: tuple[str, ...] | None = None
    required: tuple[str, ...] | None = None
    consumers: dict[str, str] = field(default_factory=dict)
    others: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

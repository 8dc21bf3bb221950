"""What an expression of a program is to `isograd init`, as far as its text tells."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

#: Marks a tensor in the text of a loss, until it becomes an argument of the loss.
MARK = "__isograd_tensor_{}__"


@dataclass
class Value:
    """An expression; code: its text in the file that is written, or None where it has none."""

    code: str | None = None


@dataclass
class Known(Value):
    """A constant."""

    value: Any = None


@dataclass
class Parts(Value):
    """A list or dictionary of values, or a tuple where is_tuple."""

    items: list[Value] = field(default_factory=list)
    keys: list[Any] | None = None
    is_tuple: bool = False


@dataclass
class Api(Value):
    """A name of a package that is not the user's."""

    name: str = ""


@dataclass
class Defined(Value):
    """A function or class of the user's, or a lambda; scope: where its names are looked up."""

    node: Any = None
    scope: Any = None


@dataclass
class Method(Value):
    """A function of an object of the user's."""

    node: Any = None
    owner: Instance | None = None


@dataclass
class Instance(Value):
    """An object of a class of the user's with the attributes that its `__init__` sets."""

    definition: Defined | None = None
    attributes: dict[str, Value] = field(default_factory=dict)


@dataclass
class Network(Value):
    """A module or cell.

    construction: the text that builds it; definition: its class, where that is the user's;
    call: how its constructor was called.
    """

    construction: str | None = None
    definition: Defined | None = None
    line: int = 0
    call: ast.Call | None = None
    arguments: tuple[list[Value], dict[str, Value]] = field(default_factory=lambda: ([], {}))


@dataclass
class Loss(Value):
    """A callable loss; kind: what its target is, by apis.toml."""

    kind: str = ""


@dataclass
class Scalar(Value):
    """The value of a loss."""

    kind: str = ""
    line: int = 0


@dataclass
class Optimizer(Value):
    """An optimizer."""

    line: int = 0


@dataclass
class Output(Value):
    """What the network returned, or a part of it."""


@dataclass
class Tensor(Value):
    """A tensor; shape None where it is not known.  is_batch: the first axis is a loader's batch."""

    shape: tuple[int, ...] | None = None
    dtype: str = "float32"
    fill: str = "normal"
    low: float | None = None
    high: float | None = None
    is_batch: bool = False
    line: int = 0


@dataclass
class Data(Value):
    """A data set or a loader, by what iterating over it gives."""

    item: Value = field(default_factory=Value)
    is_batched: bool = False


@dataclass
class Parser(Value):
    """An argparse parser with the defaults of its arguments."""

    defaults: dict[str, Value] = field(default_factory=dict)


@dataclass
class Gradient(Value):
    """The function that mindspore.value_and_grad returns."""

    function: Value = field(default_factory=Value)

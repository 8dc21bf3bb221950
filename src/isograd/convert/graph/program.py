"""What `children/export_child.py` writes: the graphs of both modes, as frozen values."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Produced:
    """The result of the node of this name."""

    name: str


@dataclass(frozen=True)
class Given:
    """An argument of the whole network, by position."""

    position: int


@dataclass(frozen=True)
class Weight:
    """A parameter or buffer, by its full name."""

    name: str


@dataclass(frozen=True)
class Constant:
    """A tensor that depends on nothing, by its name among the tensors."""

    name: str


@dataclass(frozen=True)
class Dtype:
    """A dtype, by numpy's name."""

    name: str


@dataclass(frozen=True)
class Batched:
    """A number that grows with the batch: so many times its size; now: with the given inputs."""

    factor: int
    now: int


@dataclass(frozen=True)
class Word:
    """A device, layout or memory format, which MindSpore does not take."""

    text: str


Reference = Produced | Given | Weight | Constant
#: An argument: a reference, a dtype, a word, a plain value, or a tuple of these.
Value = Any


@dataclass(frozen=True)
class Node:
    """One call of an operator.

    target: "aten.conv2d.default", "operator.getitem"…  stack: the modules around it from the
    outermost, each as (call, path, class); a module that is called twice has two calls.  shape: of
    the result, or None for a number or several tensors.  batch: the first axis of the result that
    grows with the batch, and how many times the batch it is long.  trace: the reference's line.
    asks: whether it needs the network's first input for the size of the batch alone.
    """

    name: str
    target: str
    arguments: Mapping[str, Value]
    stack: tuple[tuple[str, str, str], ...]
    shape: tuple[int, ...] | None
    batch: tuple[int, int] | None
    dtype: str
    trace: str
    asks: bool = False

    def references(self) -> Iterator[Reference]:
        """Everything that its arguments refer to."""
        for value in self.arguments.values():
            yield from references_in(value)
        if self.asks:
            yield Given(0)

    def has_batched(self) -> bool:
        """Whether a number among its arguments grows with the batch."""
        return any(_holds_batched(value) for value in self.arguments.values())


def _holds_batched(value: Value) -> bool:
    if isinstance(value, tuple):
        return any(map(_holds_batched, value))
    return isinstance(value, Batched)


@dataclass(frozen=True)
class Graph:
    """One mode: the names of the network's arguments, the nodes in order, and the result.

    output is a reference, None, a tuple of these, or a list of (key, …) pairs for a dictionary.
    """

    inputs: tuple[str, ...]
    nodes: tuple[Node, ...]
    output: Value


@dataclass(frozen=True)
class Tensor:
    """A parameter or buffer; initial: how its first values are described, kind first."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    is_buffer: bool
    is_trained: bool
    is_persistent: bool
    tied: str | None
    initial: tuple[Any, ...]


@dataclass(frozen=True)
class Program:
    """An exported network; modules: the class of each by path.  problem: why a mode is absent.

    is_fixed: whether the size of the batch could not be left open.  functions: classes of
    torch.autograd.Function that were applied, of which the graph has the forward alone.  changed:
    parameters that the forward pass changes in training, which the graph does not.
    """

    tensors: tuple[Tensor, ...]
    modules: Mapping[str, str]
    train: Graph | None
    evaluate: Graph | None
    problem: str
    is_fixed: bool
    functions: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


def references_in(value: Value) -> Iterator[Reference]:
    """The references inside an argument."""
    if isinstance(value, (Produced, Given, Weight, Constant)):
        yield value
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from references_in(part)


def read_program(path: Path, *, computing: bool = False) -> Program:
    """Read what the child wrote; raises OSError, ValueError or KeyError where it is none.

    computing: the one whose nodes compute what depends on the size of the batch, which leaves the
    batch open in more networks.
    """
    table = json.loads(path.read_text(encoding="utf-8"))
    modes = {k: v for k, v in table["computing" if computing else "modes"].items() if v is not None}
    tensors = tuple(
        Tensor(
            entry["name"],
            tuple(entry["shape"]),
            entry["dtype"],
            entry["kind"] == "buffer",
            entry["trained"],
            entry["persistent"],
            entry["tied"],
            tuple(entry["initial"]),
        )
        for entry in table["parameters"]
    )
    train, evaluate = (_graph(modes[mode]) if mode in modes else None for mode in ("train", "eval"))
    return Program(
        tensors,
        table["modules"],
        train,
        evaluate,
        table["problem"],
        len(modes) < len(table["modes"]) if computing else table["fixed"],
        tuple(table["functions"]),
        tuple(table["changed"]),
    )


def _graph(entry: Mapping[str, Any]) -> Graph:
    nodes = tuple(_node(part) for part in entry["nodes"])
    return Graph(tuple(entry["inputs"]), nodes, _value(entry["output"]))


def _node(entry: Mapping[str, Any]) -> Node:
    shape = entry["shape"]
    return Node(
        entry["name"],
        entry["target"],
        {key: _value(part) for key, part in entry["arguments"].items()},
        tuple((call, path, kind) for call, path, kind in entry["stack"]),
        tuple(_size(size) for size in shape) if isinstance(shape, list) else None,
        _batch(shape),
        entry["dtype"],
        entry["trace"],
    )


def _size(size: Any) -> int:
    return int(size["now"] if isinstance(size, dict) else size)


def _batch(shape: Any) -> tuple[int, int] | None:
    for axis, size in enumerate(shape if isinstance(shape, list) else ()):
        if isinstance(size, dict):
            return axis, int(size["batch"])
    return None


def _value(part: Any) -> Value:
    if not isinstance(part, dict):
        return part
    if "batch" in part:
        return Batched(part["batch"], part["now"])
    ((kind, content),) = part.items()
    if kind == "list":
        return tuple(_value(item) for item in content)
    if kind == "dict":
        return [(key, _value(item)) for key, item in content]
    if kind == "infinity":
        return float("inf") if content else float("-inf")
    kinds = {
        "node": Produced,
        "input": Given,
        "parameter": Weight,
        "constant": Constant,
        "dtype": Dtype,
        "word": Word,
    }
    return kinds[kind](content)

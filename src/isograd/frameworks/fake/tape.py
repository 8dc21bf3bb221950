"""Numpy arrays that remember how they were made, so that gradients can be taken by hand.

A `Node` never changes; a `Tensor` is a handle on a node, so an operation in place gives the
handle another node and leaves everybody who read the old one alone.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isograd.frameworks.base import NATIVE, Arithmetic
from isograd.tensors import UNIT_ROUNDOFF

Values = NDArray[Any]
Rule = Callable[[Values], tuple[Values | None, ...]]


class Rounding:
    """The arithmetic that operators obey right now, with its source of noise."""

    arithmetic: Arithmetic = NATIVE
    generator = np.random.default_rng(0)


@contextlib.contextmanager
def computing(arithmetic: Arithmetic) -> Iterator[None]:
    """Let operators obey this arithmetic until the end of the block."""
    before = Rounding.arithmetic, Rounding.generator
    Rounding.arithmetic = arithmetic
    Rounding.generator = np.random.default_rng((arithmetic.seed, 17))
    try:
        yield
    finally:
        Rounding.arithmetic, Rounding.generator = before


def rounded(values: Values, *, cancels: bool = False) -> Values:
    """An operator's result, moved by simulated rounding where the arithmetic asks for it.

    Where terms may cancel, the error is relative to the typical element instead of the element.

    values: any shape and dtype.
    returns: the same shape and dtype.
    """
    arithmetic = Rounding.arithmetic
    unit = UNIT_ROUNDOFF.get(str(values.dtype))
    if not arithmetic.operator_noise or unit is None or values.dtype == np.float64:
        return values
    lowest = 0.0 if arithmetic.biased else -1.0
    draw = Rounding.generator.uniform(lowest, 1.0, values.shape)
    scale = np.abs(values)
    if cancels and values.size:
        scale = np.maximum(scale, np.sqrt(np.mean(np.square(values, dtype=np.float64))))
    moved = values + 2.0 * unit * arithmetic.amplitude * draw * scale
    return np.asarray(moved, values.dtype)


@dataclass(frozen=True, eq=False)
class Node:
    """One result: its numbers, what it was made of, and how its gradient goes back."""

    values: Values
    parents: tuple[Node, ...] = ()
    rule: Rule | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape


class Tensor:
    """A handle on a node, with the arithmetic that the layers need."""

    def __init__(self, values: Any, node: Node | None = None) -> None:
        self.node = Node(np.asarray(values)) if node is None else node

    @property
    def values(self) -> Values:
        """The node's numbers, in any shape and dtype."""
        return self.node.values

    @property
    def shape(self) -> tuple[int, ...]:
        return self.node.values.shape

    @property
    def is_floating(self) -> bool:
        return bool(np.issubdtype(self.node.values.dtype, np.floating))

    def __add__(self, other: Any) -> Tensor:
        return add(self, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Tensor:
        return add(self, multiply(other, -1.0))

    def __mul__(self, other: Any) -> Tensor:
        return multiply(self, other)

    __rmul__ = __mul__

    def __matmul__(self, other: Tensor) -> Tensor:
        return matmul(self, other)


class Parameter(Tensor):
    """A tensor that an optimizer may change; `gradient` is set before its step."""

    def __init__(self, values: Any, trainable: bool = True) -> None:
        super().__init__(values)
        self.trainable = trainable
        self.gradient: Values | None = None

    def assign(self, values: Values) -> None:
        """Overwrite the numbers, in the parameter's own dtype.

        values: the parameter's shape, any dtype.
        """
        self.node = Node(np.array(values, self.values.dtype))


class Buffer(Parameter):
    """A tensor that belongs to the state but is never trained."""

    def __init__(self, values: Any) -> None:
        super().__init__(values, trainable=False)


#: Runs a function with some of its arguments changed, by name.
Run = Callable[..., "Tensor"]


class Tracing:
    """What is called with every operator's result, and what runs the functions instead of us.

    on_call gets a function's name, how to run it, and its arguments by name.
    """

    on_result: Callable[[str, Node], None] | None = None
    on_call: Callable[[str, Run, dict[str, Any]], Tensor] | None = None


def function(name: str, arguments: str) -> Callable[[Callable[..., Tensor]], Callable[..., Tensor]]:
    """A function that can be watched and changed, under torch's name and names of arguments."""
    names = arguments.split()

    def decorate(body: Callable[..., Tensor]) -> Callable[..., Tensor]:
        signature = inspect.signature(body)

        @functools.wraps(body)
        def called(*args: Any, **kwargs: Any) -> Tensor:
            if Tracing.on_call is None:
                return body(*args, **kwargs)
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            given = dict(zip(names, bound.args, strict=True))
            return Tracing.on_call(
                name, lambda **changed: body(*{**given, **changed}.values()), given
            )

        return called

    return decorate


def make(values: Values, parents: Sequence[Tensor], rule: Rule) -> Tensor:
    """A result of an operator over these tensors.

    values: any shape and dtype.
    """
    nodes = tuple(parent.node for parent in parents)
    node = Node(np.asarray(values), nodes, rule)
    if Tracing.on_result is not None:
        Tracing.on_result(sys._getframe(1).f_code.co_name, node)
    return Tensor(None, node)


def _like(value: Any, other: Tensor) -> Tensor:
    return value if isinstance(value, Tensor) else Tensor(np.asarray(value, other.values.dtype))


def _tensors(first: Any, second: Any) -> tuple[Tensor, Tensor]:
    if isinstance(first, Tensor):
        return first, _like(second, first)
    return _like(first, second), second


def _unbroadcast(gradient: Values, shape: tuple[int, ...]) -> Values:
    """Sum a gradient over the axes along which its tensor was repeated."""
    while gradient.ndim > len(shape):
        gradient = gradient.sum(axis=0)
    for axis, length in enumerate(shape):
        if length == 1 and gradient.shape[axis] != 1:
            gradient = gradient.sum(axis=axis, keepdims=True)
    return gradient


@function("add", "input other")
def add(first: Any, second: Any) -> Tensor:
    """Sum, element by element."""
    a, b = _tensors(first, second)
    shapes = a.shape, b.shape
    return make(
        rounded(a.values + b.values),
        (a, b),
        lambda g: (_unbroadcast(g, shapes[0]), _unbroadcast(g, shapes[1])),
    )


@function("mul", "input other")
def multiply(first: Any, second: Any) -> Tensor:
    """Product, element by element."""
    a, b = _tensors(first, second)
    left, right = a.values, b.values
    return make(
        rounded(left * right),
        (a, b),
        lambda g: (_unbroadcast(g * right, left.shape), _unbroadcast(g * left, right.shape)),
    )


def _dot(first: Values, second: Values) -> Values:
    if Rounding.arithmetic.alternative_kernels:
        first, second = first[..., ::-1], second[::-1]
    return rounded(np.matmul(first, second), cancels=True)


@function("matmul", "input other")
def matmul(first: Tensor, second: Tensor) -> Tensor:
    """Product of two matrices."""
    left, right = first.values, second.values
    return make(_dot(left, right), (first, second), lambda g: (_dot(g, right.T), _dot(left.T, g)))


def transpose(tensor: Tensor) -> Tensor:
    """A matrix with its axes exchanged."""
    return make(tensor.values.T, (tensor,), lambda g: (g.T,))


def identity(tensor: Tensor) -> Tensor:
    """A copy that an operation in place may change."""
    return make(tensor.values, (tensor,), lambda g: (g,))


@function("relu", "input")
def relu(tensor: Tensor) -> Tensor:
    """max(x, 0)."""
    kept = tensor.values > 0
    result = np.where(kept, tensor.values, 0).astype(tensor.values.dtype)
    return make(result, (tensor,), lambda g: (g * kept,))


@function("tanh", "input")
def tanh(tensor: Tensor) -> Tensor:
    """Hyperbolic tangent."""
    result = rounded(np.tanh(tensor.values))
    return make(result, (tensor,), lambda g: (rounded(g * (1 - result * result)),))


@function("pow", "input exponent")
def power(tensor: Tensor, exponent: float) -> Tensor:
    """x ** exponent."""
    values = tensor.values
    typed = values.dtype.type(exponent)
    return make(rounded(values**typed), (tensor,), lambda g: (g * typed * values ** (typed - 1),))


@function("mean", "input dim")
def mean(tensor: Tensor, axis: int | None = None) -> Tensor:
    """The mean over an axis, which stays with length 1, or over everything."""
    values = tensor.values
    ordered = np.flip(values, axis) if Rounding.arithmetic.alternative_kernels else values
    result = np.asarray(ordered.mean(axis=axis, keepdims=axis is not None), values.dtype)
    share = values.dtype.type(result.size / max(1, values.size))
    return make(
        rounded(result, cancels=True),
        (tensor,),
        lambda g: (np.broadcast_to(g * share, values.shape),),
    )


@function("embedding", "weight input")
def rows(table: Tensor, index: Tensor) -> Tensor:
    """The rows of a table with these numbers."""
    chosen = index.values

    def back(gradient: Values) -> tuple[Values | None, ...]:
        total = np.zeros(table_shape, gradient.dtype)
        np.add.at(total, chosen, gradient)
        return (total,)

    table_shape = table.shape
    return make(table.values[chosen], (table,), back)


def gradients(ends: Sequence[tuple[Node, Values]]) -> dict[Node, Values]:
    """Gradients of all nodes before these ends, given the gradients at the ends.

    ends: nodes, each with the gradient of its shape and dtype.
    returns: by node, in its shape and dtype.
    """
    order: list[Node] = []
    seen: set[Node] = set()

    def visit(node: Node) -> None:
        if node in seen:
            return
        seen.add(node)
        for parent in node.parents:
            visit(parent)
        order.append(node)

    found: dict[Node, Values] = {}
    for node, gradient in ends:
        visit(node)
        found[node] = found[node] + gradient if node in found else gradient
    for node in reversed(order):
        if node.rule is None or node not in found:
            continue
        for parent, part in zip(node.parents, node.rule(found[node]), strict=False):
            if part is not None:
                found[parent] = found[parent] + part if parent in found else part
    return found

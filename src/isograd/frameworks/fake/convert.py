"""Numpy values of the fake network, into tensors and out of them again."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np

from isograd.errors import CaseError
from isograd.frameworks.base import Arithmetic, Tensors
from isograd.frameworks.fake.network import Module
from isograd.frameworks.fake.tape import Node, Tensor, Values
from isograd.tensors import TensorValue, tensor_value


def to_value(node: Node) -> TensorValue:
    """A copy of a node's numbers.

    returns: the shape and dtype of the node.
    """
    return tensor_value(np.array(node.values))


def state_of(model: Module) -> Tensors:
    """All parameters and buffers, each once, in their shapes and dtypes."""
    found: Tensors = {}
    seen: set[int] = set()
    for name, parameter in model.named_parameters():
        if id(parameter) not in seen:
            seen.add(id(parameter))
            found[name] = to_value(parameter.node)
    return found


def load(model: Module, tensors: Tensors) -> None:
    """Overwrite parameters and buffers.

    tensors: by name, in the shapes of the network's, any dtypes.
    Raises CaseError for an unknown name or a wrong shape.
    """
    targets = dict(model.named_parameters())
    for name, value in tensors.items():
        if name not in targets or targets[name].shape != value.shape:
            raise CaseError(
                f"the fake network has no tensor {name!r} of shape {value.shape}",
                "Correct [weights].rename.",
            )
        targets[name].assign(value.values)


def copy_of(model: Module, wide: bool) -> Module:
    """A copy of a network, in float64 if wide."""
    made = copy.deepcopy(model)
    if wide:
        for _, parameter in made.named_parameters():
            parameter.node = Node(widened(parameter.values))
    return made


def widened(values: Values) -> Values:
    """Floating numbers in float64.

    values: any shape and dtype.
    returns: the same shape; float64 for floating dtypes, else the array itself.
    """
    return values.astype(np.float64) if np.issubdtype(values.dtype, np.floating) else values


def leaf_of(value: TensorValue | Node, arithmetic: Arithmetic, position: int) -> Tensor:
    """A tensor to start a pass from.

    value: any shape and dtype; a float dtype becomes float64 in that arithmetic.
    """
    values = np.array(value.values)
    if arithmetic.input_noise and values.dtype in (np.float32, np.float16):
        draw = np.random.default_rng((arithmetic.seed, position)).integers(-1, 2, values.shape)
        neighbours = np.nextafter(values, np.where(draw < 0, -np.inf, np.inf).astype(values.dtype))
        is_whole = values == np.trunc(values)  # as torch's input noise leaves them
        values = np.where((draw == 0) | is_whole, values, neighbours)
    return Tensor(widened(values) if arithmetic.float64 else values)


def leaves_of(
    given: Sequence[TensorValue | None], recorded: list[Node], arithmetic: Arithmetic, group: int
) -> list[Tensor]:
    """The given tensors, or the recorded ones where none is given.

    given: the shapes and dtypes of the recorded ones, slot by slot.
    """
    values = [*given, *[None] * (len(recorded) - len(given))]
    return [
        leaf_of(own if value is None else value, arithmetic, group * 1009 + slot)
        for slot, (value, own) in enumerate(zip(values, recorded, strict=True))
    ]


def gradient_of(leaf: Tensor, found: dict[Node, Values]) -> TensorValue:
    """A leaf's gradient, zero where none arrived.

    found: by node, in its shape and dtype.
    returns: the shape and dtype of the leaf.
    """
    return tensor_value(np.array(found.get(leaf.node, np.zeros_like(leaf.values))))

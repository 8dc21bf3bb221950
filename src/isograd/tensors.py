"""Tensors between frameworks: a numpy array and the dtype that it had.

numpy has no bfloat16, so a bfloat16 tensor travels as float32 values (exact) with its own dtype
beside them; every other dtype is numpy's own.  Dtype names are those of numpy, plus "bfloat16".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.generic]
_Value = TypeVar("_Value")

#: Unit roundoff of each floating dtype: half the distance from 1 to the next number.
UNIT_ROUNDOFF = {
    "float64": 2.0**-53,
    "float32": 2.0**-24,
    "float16": 2.0**-11,
    "bfloat16": 2.0**-8,
}


@dataclass(frozen=True)
class TensorValue:
    """A tensor taken out of a framework.

    values: the numbers; float32 where dtype is "bfloat16", else of that dtype.
    """

    values: Array
    dtype: str

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    @property
    def is_floating(self) -> bool:
        return self.dtype in UNIT_ROUNDOFF


def tensor_value(values: Array) -> TensorValue:
    """Wrap a plain numpy array.

    values, returns: any shape and dtype.
    """
    return TensorValue(values, str(values.dtype))


def contiguous(values: Array) -> Array:
    """The array in C order, of the same shape; numpy's own function makes 0-d arrays 1-d.

    values, returns: any shape and dtype.
    """
    return np.ascontiguousarray(values).reshape(values.shape)


def bfloat16_to_bits(values: Array) -> NDArray[np.uint16]:
    """The upper halves of float32 values that are exact in bfloat16.

    values: any shape, float32.
    returns: the same shape, uint16.
    """
    contiguous = np.ascontiguousarray(values, dtype=np.float32)
    return (contiguous.view(np.uint32) >> np.uint32(16)).astype(np.uint16).reshape(values.shape)


def bfloat16_from_bits(bits: NDArray[np.uint16]) -> NDArray[np.float32]:
    """float32 values of bfloat16 bits.

    bits: any shape, uint16.
    returns: the same shape, float32.
    """
    wide = np.ascontiguousarray(bits, dtype=np.uint16).astype(np.uint32) << np.uint32(16)
    return wide.view(np.float32).reshape(bits.shape)


class Role(Enum):
    """What a tensor is in its call."""

    INPUT = "input"
    OUTPUT = "output"
    INPUT_OF_PIN = "input_of"
    OUTPUT_OF_PIN = "pin"
    PARAMETER = "parameter"
    BUFFER = "buffer"
    LOSS = "loss"


_GRADIENT = "gradient."
_OF_PINS = (Role.INPUT_OF_PIN, Role.OUTPUT_OF_PIN)
_NAMED = (Role.PARAMETER, Role.BUFFER)


class TensorKey(str):
    """The name of one tensor of a call or pass, or of its gradient.

    Workers answer with dictionaries by these names, so a name is a text on the wire: `output.0`,
    `input_of.2.0` (what goes into the third pinned call), `gradient.parameter.layer.weight`.
    """

    __slots__ = ()

    @classmethod
    def input(cls, slot: int | str) -> TensorKey:
        """What goes into the call, by its position, or by its key among a pass's inputs."""
        return cls(f"input.{slot}")

    @classmethod
    def output(cls, slot: int) -> TensorKey:
        """What the call returns."""
        return cls(f"output.{slot}")

    @classmethod
    def input_of_pin(cls, pin: int, slot: int) -> TensorKey:
        """What the call passes to a pinned call inside it."""
        return cls(f"input_of.{pin}.{slot}")

    @classmethod
    def output_of_pin(cls, pin: int, slot: int) -> TensorKey:
        """What a pinned call is made to return."""
        return cls(f"pin.{pin}.{slot}")

    @classmethod
    def parameter(cls, name: str) -> TensorKey:
        """A parameter of the network."""
        return cls(f"parameter.{name}")

    @classmethod
    def buffer(cls, name: str) -> TensorKey:
        """A buffer of the network."""
        return cls(f"buffer.{name}")

    @property
    def gradient(self) -> TensorKey:
        """The gradient of the tensor."""
        return TensorKey(_GRADIENT + self)

    @property
    def is_gradient(self) -> bool:
        """Whether it names a gradient."""
        return self.startswith(_GRADIENT)

    @property
    def of(self) -> TensorKey:
        """The tensor itself, where this names its gradient."""
        return TensorKey(self.removeprefix(_GRADIENT))

    @property
    def role(self) -> Role | None:
        """What the tensor, or the one whose gradient it is, is in its call; None for others."""
        word = self.of.partition(".")[0]
        return _ROLES.get(word)

    def is_plain(self, role: Role) -> bool:
        """Whether it names a tensor of this role itself, not a gradient."""
        return self.role is role and not self.is_gradient

    @property
    def kind(self) -> str:
        """The name without slot and pin: tensors of one role, or their gradients."""
        word = self.of.partition(".")[0]
        return f"{_GRADIENT}{word}" if self.is_gradient else word

    @property
    def pin(self) -> int | None:
        """The number of the pinned call that it belongs to; None for what belongs to none."""
        return int(self.of.split(".")[1]) if self.role in _OF_PINS else None

    @property
    def slot(self) -> int | None:
        """The position among the tensors of its role; None for what has a name."""
        last = self.rpartition(".")[2]
        return None if self.role in _NAMED or not last.isdigit() else int(last)

    @property
    def name(self) -> str:
        """The name of a parameter or buffer; the whole text of others."""
        return self.of.partition(".")[2] if self.role in _NAMED else str(self)


_ROLES = {role.value: role for role in Role}


def keyed(tensors: Mapping[str, _Value]) -> Iterator[tuple[TensorKey, _Value]]:
    """What a dictionary by tensor names holds, with names that can be asked."""
    return ((TensorKey(key), value) for key, value in tensors.items())


def gradients_of_parameters(tensors: Mapping[str, _Value]) -> dict[str, _Value]:
    """The gradients of parameters among tensors, by the parameters' names."""
    return {
        key.name: value
        for key, value in keyed(tensors)
        if key.is_gradient and key.role is Role.PARAMETER
    }

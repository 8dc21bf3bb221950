"""What turns parameters of the reference into parameters of the port, and gradients back.

Every transform moves numbers and changes none, so it also carries gradients and optimizer state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from math import prod
from typing import Literal

import numpy as np

from isograd.tensors import Array

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Identity:
    """The same array."""

    def apply(self, arrays: Sequence[Array]) -> list[Array]:
        """Reference to port.

        arrays, returns: one array, any shape and dtype.
        """
        return list(arrays)

    def invert(self, arrays: Sequence[Array]) -> list[Array]:
        """Port to reference.

        arrays, returns: one array, any shape and dtype.
        """
        return list(arrays)


@dataclass(frozen=True)
class Transpose:
    """Axes in another order, as `numpy.transpose` spells it."""

    axes: tuple[int, ...]

    def apply(self, arrays: Sequence[Array]) -> list[Array]:
        """Reference to port.

        arrays, returns: as many axes as `axes`, any shape and dtype; the results are views.
        """
        return [np.transpose(array, self.axes) for array in arrays]

    def invert(self, arrays: Sequence[Array]) -> list[Array]:
        """Port to reference.

        arrays, returns: as many axes as `axes`, any shape and dtype; the results are views.
        """
        return [np.transpose(array, np.argsort(self.axes)) for array in arrays]


@dataclass(frozen=True)
class Reshape:
    """The same elements in the same order in another shape."""

    reference: Shape
    port: Shape

    def apply(self, arrays: Sequence[Array]) -> list[Array]:
        """Reference to port.

        arrays: one of the shape `reference`, any dtype.
        returns: one of the shape `port`, the same dtype.
        """
        return [array.reshape(self.port) for array in arrays]

    def invert(self, arrays: Sequence[Array]) -> list[Array]:
        """Port to reference.

        arrays: one of the shape `port`, any dtype.
        returns: one of the shape `reference`, the same dtype.
        """
        return [array.reshape(self.reference) for array in arrays]


@dataclass(frozen=True)
class Concatenate:
    """Several parameters of the reference, one of the port; sizes along the axis."""

    axis: int
    sizes: tuple[int, ...]

    def apply(self, arrays: Sequence[Array]) -> list[Array]:
        """Reference to port.

        arrays: one shape except along the axis, any dtype.
        returns: one array of the sum of these shapes along the axis, the same dtype.
        """
        return [np.concatenate(list(arrays), axis=self.axis)]

    def invert(self, arrays: Sequence[Array]) -> list[Array]:
        """Port to reference.

        arrays: one, along the axis of its shape as long as all sizes together, any dtype.
        returns: its parts, whose shapes have these sizes along the axis, the same dtype.
        """
        return _cut(arrays, self.axis, self.sizes)


@dataclass(frozen=True)
class Split:
    """One parameter of the reference, several of the port; sizes along the axis."""

    axis: int
    sizes: tuple[int, ...]

    def apply(self, arrays: Sequence[Array]) -> list[Array]:
        """Reference to port.

        arrays: one, along the axis of its shape as long as all sizes together, any dtype.
        returns: its parts, whose shapes have these sizes along the axis, the same dtype.
        """
        return _cut(arrays, self.axis, self.sizes)

    def invert(self, arrays: Sequence[Array]) -> list[Array]:
        """Port to reference.

        arrays: one shape except along the axis, any dtype.
        returns: one array of the sum of these shapes along the axis, the same dtype.
        """
        return [np.concatenate(list(arrays), axis=self.axis)]


@dataclass(frozen=True)
class Chain:
    """Transforms one after the other, from the reference to the port."""

    steps: tuple[Transform, ...]

    def apply(self, arrays: Sequence[Array]) -> list[Array]:
        """Reference to port.

        arrays: the shapes that the first transform takes, any dtype.
        returns: the shapes that the last one returns, the same dtypes.
        """
        result = list(arrays)
        for step in self.steps:
            result = step.apply(result)
        return result

    def invert(self, arrays: Sequence[Array]) -> list[Array]:
        """Port to reference.

        arrays: the shapes that the last transform returns, any dtype.
        returns: the shapes that the first one takes, the same dtypes.
        """
        result = list(arrays)
        for step in reversed(self.steps):
            result = step.invert(result)
        return result


Transform = Identity | Transpose | Reshape | Concatenate | Split | Chain


def _cut(arrays: Sequence[Array], axis: int, sizes: tuple[int, ...]) -> list[Array]:
    (array,) = arrays
    return list(np.split(array, np.cumsum(sizes)[:-1].tolist(), axis=axis))


def chain(*steps: Transform) -> Transform:
    """Transforms one after the other, without those that do nothing."""
    useful = tuple(step for step in steps if not isinstance(step, Identity))
    if not useful:
        return Identity()
    return useful[0] if len(useful) == 1 else Chain(useful)


def transform_between(
    reference: Shape, port: Shape, *, same_library_kind: bool, same_name: bool
) -> Transform | None:
    """The transform that two shapes suggest, or None where they contradict each other.

    Layers of the same library kind store their weights alike, but for a convolution's data format
    and its one-dimensional case; other shapes there are mistakes of the port and not transforms.
    """
    if reference == port:
        return Identity()
    if same_library_kind:
        return _between_like_layers(reference, port)
    if len(reference) == 2 and port == reference[::-1]:
        return Transpose((1, 0))
    if _without_ones(reference) == _without_ones(port):
        return Reshape(reference, port)
    axes = _only_permutation(reference, port)
    if axes is not None:
        return Transpose(axes)
    if same_name and prod(reference) == prod(port):
        return Reshape(reference, port)
    return None


def between_kernel_and_matrix(
    reference: Shape, port: Shape, *, kernel: Literal["reference", "port"]
) -> Transform | None:
    """The transform between the kernel of a convolution and the matrix that it multiplies by.

    A patch is taken to be flattened as the kernel is: channels first.
    """
    if kernel == "port":
        found = between_kernel_and_matrix(port, reference, kernel="reference")
        return None if found is None else inverse(found)
    if len(reference) < 3 or len(port) != 2:
        return None
    matrix = reference[0], prod(reference[1:])
    if port == matrix:
        return Reshape(reference, port)
    if port == matrix[::-1]:
        return Chain((Reshape(reference, matrix), Transpose((1, 0))))
    return None


def inverse(transform: Transform) -> Transform:
    """The transform from the port to the reference."""
    if isinstance(transform, Transpose):
        axes = transform.axes
        return Transpose(tuple(axes.index(axis) for axis in range(len(axes))))
    if isinstance(transform, Reshape):
        return Reshape(transform.port, transform.reference)
    if isinstance(transform, Concatenate):
        return Split(transform.axis, transform.sizes)
    if isinstance(transform, Split):
        return Concatenate(transform.axis, transform.sizes)
    if isinstance(transform, Chain):
        return Chain(tuple(inverse(step) for step in reversed(transform.steps)))
    return transform


def _between_like_layers(reference: Shape, port: Shape) -> Transform | None:
    if len(reference) != len(port):
        if _without_ones(reference) == _without_ones(port):
            return Reshape(reference, port)
        return None
    if len(reference) >= 4:
        channels_last = (0, *range(2, len(reference)), 1)
        if port == tuple(reference[axis] for axis in channels_last):
            return Transpose(channels_last)
    return None


def _without_ones(shape: Shape) -> Shape:
    return tuple(size for size in shape if size != 1)


def _only_permutation(reference: Shape, port: Shape) -> tuple[int, ...] | None:
    if not 3 <= len(reference) == len(port) <= 4 or sorted(reference) != sorted(port):
        return None
    found = [
        axes
        for axes in permutations(range(len(reference)))
        if tuple(reference[axis] for axis in axes) == port
    ]
    return found[0] if len(found) == 1 else None

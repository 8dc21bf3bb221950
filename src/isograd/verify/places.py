"""Where the port has the reference's tensors of one unit: slots, layouts and pins."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from isograd.frameworks.base import Tensors
from isograd.noise.envelope import (
    Measured,
)
from isograd.pairing.layout import Layout, match_slots
from isograd.tensors import Array, Role, TensorKey, TensorValue

Slots = list[tuple[int, int, Layout]]


@dataclass(frozen=True)
class Places:
    """How the tensors of a unit correspond between the two sides.

    makes_own, pins_make_own: whether the port's call takes fewer tensors and makes the others
    itself (cosines of positions inside the attention); it is judged by what it returns.
    returns_fewer: whether the port's call returns fewer tensors (no final states); what uses them
    in the reference is judged by what it makes of them.
    joins, pin_joins: inputs that only the reference has, with one of equal values that both have:
    the port passes a tensor once which the reference passes as query, key and value.
    output_joins: the same of what pinned calls return (the last hidden state, and all of them).
    pins_return_fewer: as returns_fewer, of the pinned calls.
    """

    inputs: Slots
    outputs: Slots
    pin_inputs: list[Slots]
    pin_outputs: list[Slots]
    output_shapes: list[tuple[int, ...]]
    makes_own: bool = False
    pins_make_own: tuple[bool, ...] = ()
    joins: tuple[tuple[int, int], ...] = ()
    pin_joins: tuple[tuple[tuple[int, int], ...], ...] = ()
    returns_fewer: bool = False
    output_joins: tuple[tuple[tuple[int, int], ...], ...] = ()
    pins_return_fewer: tuple[bool, ...] = ()

    def _joined_gradients(self) -> Iterator[tuple[str, str]]:
        """Gradients by tensors that only the reference has, and those that they are added to."""
        for lacking, kept in self.joins:
            yield TensorKey.input(lacking).gradient, TensorKey.input(kept).gradient
        for number, joins in enumerate(self.output_joins):
            for lacking, kept in joins:
                yield _gradient_of_pin(number, lacking), _gradient_of_pin(number, kept)

    def joined_keys(self) -> set[str]:
        """Gradients that belong to several tensors of the reference."""
        return {kept for _, kept in self._joined_gradients()}

    def joined(self, reference: dict[str, Measured]) -> dict[str, Measured]:
        """The reference's tensors, with the gradients by one that stands twice added."""
        result = dict(reference)
        for lacking, kept in self._joined_gradients():
            more, own = result.pop(lacking, None), result.get(kept)
            if more is not None and own is not None:
                result[kept] = replace(
                    own,
                    values=np.add(own.values, more.values),
                    allowed=own.allowed + more.allowed,
                )
        return result

    def is_made_inside(self, key: TensorKey) -> bool:
        """Whether the port's call makes this tensor, which the reference hands on, itself."""
        if key.is_plain(Role.OUTPUT):
            return self.returns_fewer
        if key.pin is not None:
            fewer = self.pins_return_fewer if key.is_gradient else self.pins_make_own
            return fewer[key.pin]
        return key.role is Role.INPUT and self.makes_own

    def as_reference(self, answer: Tensors) -> Tensors:
        """The port's results under the reference's names and in its layouts.

        answer: the port's shapes, any dtypes.
        returns: the reference's shapes, the same dtypes.
        """
        groups: list[tuple[Callable[[int], TensorKey], Slots]] = [
            (TensorKey.output, self.outputs),
            (lambda slot: TensorKey.input(slot).gradient, self.inputs),
        ]
        for pin, slots in enumerate(self.pin_inputs):
            groups.append((partial(TensorKey.input_of_pin, pin), slots))
        for pin, slots in enumerate(self.pin_outputs):
            groups.append((partial(_gradient_of_pin, pin), slots))
        result: Tensors = {}
        for key, slots in groups:
            for ours, theirs, layout in slots:
                value = answer.get(key(theirs))
                if value is None:
                    continue
                values = value.values
                if value.shape == layout.port_shape:
                    values = layout.to_reference(values)
                result[key(ours)] = TensorValue(values, value.dtype)
        return result

    def why_missing(self, key: TensorKey, expected: Measured) -> str:
        """Why the port has no tensor for this one."""
        if key.is_plain(Role.OUTPUT):
            shapes = ", ".join(str(s) for s in self.output_shapes) or "none"
            return f"outputs of shape {shapes} instead of {expected.values.shape}"
        return f"no tensor of shape {expected.values.shape} reaches it in the port"


def _gradient_of_pin(pin: int, slot: int) -> TensorKey:
    return TensorKey.output_of_pin(pin, slot).gradient


def in_port_slots(
    values: tuple[TensorValue | None, ...], slots: Slots, count: int
) -> tuple[TensorValue | None, ...]:
    """The reference's tensors in the port's slots and layouts; None where there is none.

    values: the reference's shapes, any dtypes.
    returns: the port's shapes, the same dtypes.
    """
    result: list[TensorValue | None] = [None] * count
    for ours, theirs, layout in slots:
        value = values[ours] if ours < len(values) else None
        if value is not None and value.shape == layout.reference_shape:
            result[theirs] = TensorValue(layout.to_port(value.values), value.dtype)
    return tuple(result)


def joined_slots(reference: list[Array], slots: Slots) -> tuple[tuple[int, int], ...]:
    """Slots of the reference without a counterpart, each with one of equal values that has one.

    reference: any shapes and dtypes.
    """
    matched = [ours for ours, _, _ in slots]
    return tuple(
        (lacking, next(iter(same)))
        for lacking in range(len(reference))
        if lacking not in matched
        and (same := [i for i in matched if np.array_equal(reference[i], reference[lacking])])
    )


def added_up(
    values: tuple[TensorValue | None, ...], joins: tuple[tuple[int, int], ...]
) -> tuple[TensorValue | None, ...]:
    """What flows back into an input that is passed several times, added up.

    values, returns: any shapes and dtypes.
    """
    result = list(values)
    for lacking, kept in joins:
        own, more = result[kept], result[lacking]
        if own is not None and more is not None:
            result[kept] = TensorValue(np.add(own.values, more.values), own.dtype)
    return tuple(result)


def makes_own(count: int, port: tuple[tuple[int, ...], ...], slots: Slots) -> bool:
    return len(slots) == len(port) < count


def lacking(
    reference: tuple[tuple[int, ...], ...], port: tuple[tuple[int, ...], ...]
) -> tuple[int, ...]:
    """Outputs of the reference for which the port has none of equal size: final states.

    Paired as the tensors are: of two that are equal, the one that has a partner keeps its gradient.
    """
    if len(port) >= len(reference):
        return ()
    ours, theirs = (
        [np.broadcast_to(0.0, (math.prod(shape),)) for shape in shapes]
        for shapes in (reference, port)
    )
    paired = {i for i, j, _ in match_slots(ours, theirs) if ours[i].size == theirs[j].size}
    return tuple(i for i in range(len(reference)) if i not in paired)


def of_other_sizes(
    reference: tuple[tuple[int, ...], ...], port: tuple[tuple[int, ...], ...]
) -> tuple[int, ...]:
    """Inputs of the reference of a size that the port's have not: a tensor for its dtype alone."""
    sizes = {math.prod(shape) for shape in port}
    return tuple(i for i, shape in enumerate(reference) if math.prod(shape) not in sizes)


def count_of(tensors: dict[str, Any], word: str) -> int:
    return sum(1 for k in tensors if k.startswith(f"{word}.") and k[len(word) + 1 :].isdigit())


def is_inside(module: str, container: str) -> bool:
    return not container or module == container or module.startswith(f"{container}.")

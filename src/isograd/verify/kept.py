"""What the eager stages measure from the first weights, so that stage compiled need not again.

Only what is small stays: a large network's tensors are measured again when they are wanted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from isograd.frameworks.base import Tensors
from isograd.noise.envelope import Measured

#: All passes and steps together take this much at most.
_MOST_BYTES = 256 << 20
#: Steps of the training that are kept: as many as are compiled.
STEPS = 3


@dataclass(frozen=True)
class KeptPass:
    """An end-to-end pass: the reference in float64 with its envelope, and the port's tensors.

    backward: whether gradients were taken.
    """

    reference: dict[str, Measured]
    port: Tensors
    backward: bool


@dataclass(frozen=True)
class KeptStep:
    """A training step that began from a state of the reference, as `KeptPass`."""

    state: Tensors
    reference: dict[str, Measured]
    port: Tensors


class Kept:
    """Passes by mode, and the first steps of the training."""

    def __init__(self) -> None:
        self._passes: dict[str, KeptPass] = {}
        self._steps: list[KeptStep] = []
        self._bytes = 0

    def note_pass(self, mode: str, found: KeptPass) -> None:
        """Keep a pass from the first weights, if there is room."""
        size = _size(found.reference, found.port)
        if self._bytes + size <= _MOST_BYTES:
            self._bytes += size
            self._passes[mode] = found

    def passed(self, mode: str, backward: bool) -> KeptPass | None:
        """The pass in a mode; None where it was not kept, or without the gradients asked for."""
        found = self._passes.get(mode)
        return found if found is not None and (found.backward or not backward) else None

    def begin_steps(self) -> None:
        """Forget the steps: a training begins."""
        self._bytes -= sum(_size(s.reference, s.port, s.state) for s in self._steps)
        self._steps.clear()

    def note_step(self, number: int, found: KeptStep) -> None:
        """Keep a step of the training that has begun, if there is room and those before were."""
        size = _size(found.reference, found.port, found.state)
        is_next = number == len(self._steps) and number < STEPS
        if is_next and self._bytes + size <= _MOST_BYTES:
            self._bytes += size
            self._steps.append(found)

    def steps_from(self, state: Tensors, count: int) -> tuple[KeptStep, ...]:
        """The first steps of a training that began from exactly this state; empty otherwise.

        state: by name, any shapes and dtypes.
        """
        if len(self._steps) < count or not _are_equal(self._steps[0].state, state):
            return ()
        return tuple(self._steps[:count])


def _are_equal(first: Tensors, second: Tensors) -> bool:
    return first.keys() == second.keys() and all(
        np.array_equal(value.values, second[name].values, equal_nan=value.is_floating)
        for name, value in first.items()
    )


def _size(reference: dict[str, Measured], *tensors: Tensors) -> int:
    parts: Iterable[Tensors] = tensors
    own = sum(m.values.nbytes for m in reference.values())
    return own + sum(v.values.nbytes for part in parts for v in part.values())

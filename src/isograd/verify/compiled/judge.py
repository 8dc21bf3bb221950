"""Compiled runs judged: against the port's own eager run and the reference, by one envelope.

An envelope is how far rounding may carry the reference's own result (`noise/envelope.py`).  A
compiled tensor differs where it leaves the envelope around the eager run and the one around the
reference; where the eager run has left the reference already, the first alone decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from isograd.frameworks.base import Tensors
from isograd.metrics import as_float64
from isograd.noise.envelope import (
    END_TO_END_THRESHOLD,
    Comparison,
    Measured,
    compare,
)
from isograd.tensors import TensorKey, TensorValue
from isograd.verify.session import Session


@dataclass(frozen=True)
class Deviation:
    """A tensor whose compiled value is another than the eager one.

    key: the reference's name of it; lost: a gradient that is zero where the eager one is not.
    """

    key: str
    comparison: Comparison
    lost: bool
    step: int


@dataclass
class WayResult:
    """What one way of running shows.

    refusal: why it does not compile, as the worker says; mode: in which that or a deviation was
    seen first.
    """

    way: str
    checked: int = 0
    deviations: list[Deviation] = field(default_factory=list)
    refusal: dict[str, object] | None = None
    mode: str = "train"
    notes: list[str] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        """Whether it compiles and nothing differs."""
        return self.refusal is None and not self.deviations

    @property
    def worst(self) -> Deviation | None:
        """The deviation that says most: lost gradients first, then by ratio."""
        return max(
            self.deviations,
            key=lambda d: (d.lost, np.nan_to_num(d.comparison.ratio, nan=np.inf)),
            default=None,
        )


def note(
    result: WayResult, expected: dict[str, Measured], eager: Tensors, found: Tensors, step: int
) -> None:
    """Compare everything that the reference, the eager run and the compiled one have.

    eager, found: by name, any shapes and dtypes.
    """
    for key, comparison, lost in _compared(expected, eager, found):
        result.checked += 1
        if comparison.exceeds(END_TO_END_THRESHOLD):
            result.deviations.append(Deviation(key, comparison, lost, step))


def _compared(
    expected: dict[str, Measured], eager: Tensors, found: Tensors
) -> Iterator[tuple[str, Comparison, bool]]:
    for key, measure in expected.items():
        own, other = eager.get(key), found.get(key)
        if own is None or other is None or own.shape != other.shape:
            if own is not None and other is not None:
                yield key, _of_shapes(key, own, other), False
            continue
        allowed = max(measure.allowed, _floor(own))
        against = Measured(as_float64(own.values), own.dtype, allowed, measure.unreliable)
        if not own.is_floating:
            against = Measured(own.values, own.dtype, 0.0)
        comparison = compare(key, against, other)
        if comparison.exceeds(END_TO_END_THRESHOLD) and own.shape == measure.values.shape:
            was_right = not compare(key, measure, own).exceeds(END_TO_END_THRESHOLD)
            if was_right and not compare(key, measure, other).exceeds(END_TO_END_THRESHOLD):
                comparison = Comparison(0.0, comparison.evidence)
        yield key, comparison, _is_lost(key, own, other)


def _floor(value: TensorValue) -> float:
    """Two float32 runs of one tensor differ by its storage at least."""
    size = float(np.linalg.norm(as_float64(value.values))) if value.is_floating else 0.0
    return size * 2.0**-23


def _of_shapes(key: str, own: TensorValue, other: TensorValue) -> Comparison:
    against = Measured(np.zeros(1), own.dtype, 1e-30)
    return compare(key, against, TensorValue(np.ones(1), own.dtype))


def _is_lost(key: str, own: TensorValue, other: TensorValue) -> bool:
    return TensorKey(key).is_gradient and bool(own.values.any()) and not bool(other.values.any())


def by_reference(session: Session, found: Tensors) -> Tensors:
    """A port's results under the reference's names: gradients and states of parameters too.

    found: by name, the port's shapes, any dtypes.
    returns: the reference's shapes for parameters and states, the port's dtypes.
    """
    result = {k: v for k, v in found.items() if not k.startswith(("gradient.parameter.", "state."))}
    for prefix, summed in (("gradient.parameter.", True), ("state.", False)):
        own = {k[len(prefix) :]: v for k, v in found.items() if k.startswith(prefix)}
        for name, value in session.as_reference(own, summed=summed).items():
            result[f"{prefix}{name}"] = value
    return result

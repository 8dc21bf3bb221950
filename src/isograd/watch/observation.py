"""What is seen of one step of a training, as plain values: adapters fill it, rules judge it.

Cheap numbers are there at every step; a `Look` holds the statistics of tensors at the steps at
which they were looked at.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

#: Columns of a `TensorTable`; all but the counts are of the finite elements.
COLUMNS = (
    "count",
    "nan_count",
    "infinity_count",
    "minimum",
    "maximum",
    "mean",
    "abs_mean",
    "norm",
    "zero_share",
)
_PLACES = {name: at for at, name in enumerate(COLUMNS)}


@dataclass(frozen=True)
class TensorTable:
    """Statistics of named tensors.

    values: float64 of shape (names, COLUMNS); NaN where a number was not measured.
    """

    names: tuple[str, ...]
    values: Floats

    def column(self, name: str) -> Floats:
        """One statistic of all tensors.

        returns: shape (tensors,), float64.
        """
        found: Floats = self.values[:, _PLACES[name]]
        return found


@dataclass(frozen=True)
class Network:
    """What does not change from step to step.

    parameters: names of those that an optimizer holds, in the order of their definition.
    axes: number of axes of each; trains: whether a gradient is asked for.
    decayed: whether weight decay applies.  Arrays have the shape (parameters,).
    """

    parameters: tuple[str, ...]
    axes: NDArray[np.int64]
    trains: Flags
    decayed: Flags

    def module(self, at: int) -> str:
        """The module of a parameter."""
        return self.parameters[at].rpartition(".")[0]


@dataclass(frozen=True)
class Activations:
    """Outputs of modules, in the order of their calls.

    kinds: the class of each module; modules: its name.
    dead_share: share of channels that were zero throughout, NaN where the module is no rectifier.
    inside_share: share of elements that a sigmoid or tanh did not saturate, NaN elsewhere.
    """

    table: TensorTable
    kinds: tuple[str, ...]
    dead_share: Floats
    inside_share: Floats


@dataclass(frozen=True)
class RunningStatistics:
    """A normalisation's running averages over one step.

    is_training: the module was called in training mode; is_changed: the averages changed.
    is_initial: they still are 0 and 1.
    """

    module: str
    is_training: bool
    is_changed: bool
    is_initial: bool


@dataclass(frozen=True)
class Look:
    """Statistics of tensors at one step.

    weights: before the update; update_ratio: mean |change| / mean |weight| per parameter, NaN where
    unknown; unchanged: bit for bit the same after the update; called: the parameter's module was
    called.  state_largest: greatest magnitude in the optimizer's state, NaN where unknown.
    unheld: matrices that no optimizer holds, got a gradient and are those of the look before.
    """

    weights: TensorTable | None = None
    gradients: TensorTable | None = None
    update_ratio: Floats | None = None
    unchanged: Flags | None = None
    called: Flags | None = None
    activations: Activations | None = None
    statistics: tuple[RunningStatistics, ...] = ()
    state_largest: float = float("nan")
    unheld: tuple[str, ...] = ()


@dataclass(frozen=True)
class BatchFacts:
    """What is checked of every batch.

    names: of its floating tensors; largest: greatest magnitude of each (NaN or Inf where it is
    not finite).  is_constant: all samples of all tensors are equal; is_repeated: the batch before
    was bit for bit the same.  outside: a label and how many classes there are, where it is none.
    """

    names: tuple[str, ...] = ()
    largest: Floats = field(default_factory=lambda: np.empty(0))
    is_constant: bool = False
    is_repeated: bool = False
    outside: tuple[int, int] | None = None


@dataclass(frozen=True)
class ScaleFacts:
    """The loss scale of a step.

    scale: that the step ran with; is_overflow: the gradients were not finite, the update was left
    out.  is_dynamic: whether anything adapts the scale.
    largest_exponent, smallest_exponent: of the scaled gradients' elements other than zero, as
    powers of two, or None where they were not looked at.  first: parameters that overflowed.
    """

    scale: float
    is_overflow: bool
    is_dynamic: bool = True
    largest_exponent: int | None = None
    smallest_exponent: int | None = None
    first: tuple[str, ...] = ()


@dataclass(frozen=True)
class StepRecord:
    """One optimizer step.

    loss: None where it is not known; learning_rates: of the optimizer's groups.
    expected_rates: what the schedule says, where there is one.
    gradient_norms: float64 of shape (parameters,), NaN where there is no gradient or it is not
    finite; gradient_absent, gradient_nonfinite: which of the two.
    is_accumulated: the gradients held those of the step before when the backward pass began.
    is_repeated: the optimizer stepped again on the same gradients.
    """

    step: int
    loss: float | None = None
    learning_rates: tuple[float, ...] = ()
    expected_rates: tuple[float, ...] = ()
    gradient_norms: Floats | None = None
    gradient_absent: Flags | None = None
    gradient_nonfinite: Flags | None = None
    is_accumulated: bool = False
    is_repeated: bool = False
    batch: BatchFacts | None = None
    scale: ScaleFacts | None = None
    look: Look | None = None

    @property
    def is_skipped(self) -> bool:
        """Whether the loss scale left the update out."""
        return self.scale is not None and self.scale.is_overflow

    def total_norm(self) -> float:
        """Norm of all gradients together; NaN where one is not finite or none is there."""
        norms = self.gradient_norms
        if norms is None or (self.gradient_nonfinite is not None and self.gradient_nonfinite.any()):
            return float("nan")
        finite = norms[np.isfinite(norms)]
        largest = float(finite.max(initial=0.0)) or 1.0  # squares overflow above 1e154
        parts = finite / largest
        return largest * math.sqrt(float(np.dot(parts, parts))) if finite.size else float("nan")

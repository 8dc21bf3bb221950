"""Short trainings for the examples of rules: a healthy one, and what is changed of it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from isograd.watch.alerts.rule import Example
from isograd.watch.observation import (
    COLUMNS,
    Activations,
    BatchFacts,
    Look,
    Network,
    StepRecord,
    TensorTable,
)

PARAMETERS = ("first.weight", "first.bias", "middle.weight", "middle.bias", "last.weight")
NETWORK = Network(
    PARAMETERS,
    axes=np.array([2, 1, 2, 1, 2]),
    trains=np.ones(5, dtype=bool),
    decayed=np.array([True, False, True, False, True]),
)
_USUAL = {"count": 64.0, "nan_count": 0.0, "infinity_count": 0.0, "minimum": -0.1, "maximum": 0.1,
          "mean": 0.0, "abs_mean": 0.05, "norm": 0.4, "zero_share": 0.0}  # fmt: skip

#: A number of a step, or a function of the step's number.
Change = Any


def table(names: Sequence[str], **columns: float | Sequence[float]) -> TensorTable:
    """A table of usual statistics, some columns of which are given."""
    values = np.empty((len(names), len(COLUMNS)))
    for at, name in enumerate(COLUMNS):
        values[:, at] = columns.get(name, _USUAL[name])
    return TensorTable(tuple(names), values)


def look(**changes: Any) -> Look:
    """A look at which all is well, but for the changes."""
    usual: dict[str, Any] = {
        "weights": table(PARAMETERS),
        "gradients": table(PARAMETERS, abs_mean=1e-3),
        "update_ratio": np.full(5, 1e-3),
        "unchanged": np.zeros(5, dtype=bool),
        "called": np.ones(5, dtype=bool),
    }
    return Look(**{**usual, **changes})


def activations(
    kind: str, dead: float = math.nan, inside: float = math.nan, **columns: float
) -> Look:
    """A look with the outputs of two modules of a kind; the first is given, the second usual."""
    names = ("first.activation", "last")
    values = table(names, **{name: (value, _USUAL[name]) for name, value in columns.items()})
    found = Activations(values, (kind, "Linear"), np.array([dead, np.nan]),
                        np.array([inside, np.nan]))  # fmt: skip
    return look(activations=found)


def training(
    steps: int, network: Network = NETWORK, **changes: Change
) -> Callable[[], tuple[Network, list[StepRecord]]]:
    """A training in which all is well, but for fields that are given as values or functions."""

    def make() -> tuple[Network, list[StepRecord]]:
        return network, [_step(number, changes) for number in range(steps)]

    return make


def example(text: str, steps: int, network: Network = NETWORK, **changes: Change) -> Example:
    """An example from `training`."""
    return Example(text, training(steps, network, **changes))


def usual_loss(step: int) -> float:
    """A loss that falls with the noise of batches."""
    return 0.3 + 2.0 * math.exp(-step / 60) + 0.05 * math.sin(7.3 * step)


def _step(number: int, changes: dict[str, Change]) -> StepRecord:
    usual = StepRecord(
        step=number,
        loss=usual_loss(number),
        learning_rates=(1e-3,),
        gradient_norms=np.array([0.5, 0.05, 0.4, 0.05, 0.6]),
        gradient_absent=np.zeros(5, dtype=bool),
        gradient_nonfinite=np.zeros(5, dtype=bool),
        batch=BatchFacts(("0",), np.array([2.5])),
        look=look(),
    )
    given = {name: value(number) if callable(value) else value for name, value in changes.items()}
    return dataclasses.replace(usual, **given)

"""Statistics of a MindSpore network's tensors at a step that is looked at.

Outputs are only kept while the network runs and read when the step ends: reading one inside of the
forward pass stalls MindSpore's pipeline.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from isograd.recording.mindspore_optimizers import state_of
from isograd.recording.statistics import MISSING_ROW
from isograd.watch.looks import (
    INPUT,
    MOSTLY_ZERO,
    RECTIFIERS,
    SATURATION,
    ActivationRows,
    Numbers,
    change_of,
    dead_share,
    extended_row,
    inside_share,
    sample_of,
)
from isograd.watch.mindspore_calls import is_floating, is_tensor, numbers_of
from isograd.watch.observation import Floats, Look, Network, RunningStatistics, TensorTable

_AVERAGES = ("moving_mean", "moving_variance"), ("running_mean", "running_var")


class MindSporeLook:
    """Gathers the look of one step."""

    def __init__(self, names: Mapping[int, str]) -> None:
        """names: of cells, by their identity."""
        self._names = names
        self._kept: dict[str, tuple[str, Any, Any]] = {}
        self._norms: dict[str, tuple[Any, bool, list[Numbers]]] = {}
        self._rows: list[list[float]] = []
        self._samples: list[Floats] = []
        self._gradients: list[list[float]] = []

    def cell_call(self, original: Any) -> Any:
        """The replacement of `Cell.__call__` during the look."""

        def call(cell: Any, *args: Any, **kwargs: Any) -> Any:
            name = self._names.get(id(cell))
            if name is None:
                return original(cell, *args, **kwargs)
            averages = running_averages(cell)
            if averages and name not in self._norms:
                copies = [p.asnumpy().copy() for p in averages]
                self._norms[name] = (cell, bool(cell.training), copies)
            output = original(cell, *args, **kwargs)
            given = args[0] if args and hasattr(cell, "weight") and is_tensor(args[0]) else None
            self._kept[name] = (type(cell).__name__, output, given)
            return output

        return call

    def before_update(self, parameters: list[Any], gradients: list[Any]) -> None:
        """Measure weights and gradients, and sample the weights."""
        self._rows, self._samples = [], []
        for parameter in parameters:
            row, sample = _row(parameter)
            self._rows.append(row)
            self._samples.append(sample)
        self._gradients = [_row(gradient)[0] for gradient in gradients]

    def after_update(self, parameters: list[Any], network: Network, largest: float) -> Look:
        """The look, once the weights have changed."""
        ratios, unchanged = [], []
        for parameter, before, row in zip(parameters, self._samples, self._rows, strict=True):
            sample = _sample(parameter)
            ratios.append(change_of(before, sample))
            # All elements are read again only where the sample does not show a change.
            is_same = np.array_equal(sample, before) and _row(parameter)[0][5:8] == row[5:8]
            unchanged.append(bool(is_same))
        called = [network.module(at) in self._kept for at in range(len(parameters))]
        return Look(
            weights=TensorTable(network.parameters, np.array(self._rows).reshape(-1, 9)),
            gradients=TensorTable(network.parameters, np.array(self._gradients).reshape(-1, 9)),
            update_ratio=np.array(ratios),
            unchanged=np.array(unchanged, dtype=bool),
            called=np.array(called, dtype=bool),
            activations=self._activations(),
            statistics=self._statistics(),
            state_largest=largest,
        )

    def of_compiled(self, parameters: list[Any], before: list[Numbers], network: Network) -> Look:
        """The look at a compiled step: weights before and after alone.

        before: the shapes of the parameters, any float dtype.
        """
        rows, ratios, unchanged = [], [], []
        for parameter, old in zip(parameters, before, strict=True):
            values = old.astype(np.float32) if old.dtype == np.float16 else old
            rows.append(extended_row(values))
            sample, old_sample = _sample(parameter), sample_of(values).astype(np.float64)
            ratios.append(change_of(old_sample, sample))
            is_same = np.array_equal(sample, old_sample)
            unchanged.append(is_same and _row(parameter)[0][5:8] == rows[-1][5:8])
        return Look(
            weights=TensorTable(network.parameters, np.array(rows).reshape(-1, 9)),
            update_ratio=np.array(ratios),
            unchanged=np.array(unchanged, dtype=bool),
        )

    def without_update(self) -> Look:
        """The look where the update was left out."""
        return Look(activations=self._activations(), statistics=self._statistics())

    def _activations(self) -> Any:
        rows = ActivationRows()
        for name, (kind, output, given) in self._kept.items():
            if is_tensor(output) and is_floating(output):
                _add(rows, name, kind, output)
            values = None if given is None or not is_floating(given) else numbers_of(given)
            if values is not None and values.size and name != self._first():
                if float((sample_of(values) == 0.0).mean()) > MOSTLY_ZERO:
                    label = f"{name} (input)"
                    rows.add(label, INPUT, extended_row(values), dead_share(values), math.nan)
        return rows.activations()

    def _first(self) -> str:
        """The first layer with a weight: what it gets is data and no activation."""
        return next((name for name, (_, _, given) in self._kept.items() if given is not None), "")

    def _statistics(self) -> tuple[RunningStatistics, ...]:
        found = []
        for name, (cell, was_training, before) in self._norms.items():
            after = [p.asnumpy() for p in running_averages(cell)]
            same = all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
            initial = bool((before[0] == 0.0).all() and (before[1] == 1.0).all())
            found.append(RunningStatistics(name, was_training, not same, initial))
        return tuple(found)


def _add(rows: ActivationRows, name: str, kind: str, output: Any) -> None:
    values = numbers_of(output)
    if values is None or not values.size:
        return
    dead = dead_share(values) if kind in RECTIFIERS else math.nan
    inside = inside_share(values, SATURATION[kind]) if kind in SATURATION else math.nan
    rows.add(name, kind, extended_row(values), dead, inside)


def running_averages(cell: Any) -> list[Any]:
    """Running mean and variance of a normalisation that has them."""
    for names in _AVERAGES:
        found = [cell._params.get(name) for name in names]
        if all(is_tensor(p) for p in found):
            return found
    return []


def rates_of(optimizer: Any) -> tuple[float, ...]:
    """The learning rates of an optimizer's next step, by group; empty where they are not known."""
    groups = getattr(optimizer, "param_groups", None)
    if groups:
        return tuple(_number(group.get("lr")) for group in groups)
    rate = getattr(optimizer, "learning_rate", None)
    rates = rate if isinstance(rate, (tuple, list)) else (rate,)
    if not getattr(optimizer, "dynamic_lr", False):
        return tuple(_number(o) for o in rates if is_tensor(o) or isinstance(o, (int, float)))
    listed = [_listed_rate(one, optimizer) for one in rates]
    if None not in listed:
        return tuple(rate for rate in listed if rate is not None)
    # A schedule of the user's may want anything; its operators fail no earlier than they are read.
    with contextlib.suppress(Exception):
        rate = optimizer.get_lr()
        return tuple(_number(one) for one in (rate if isinstance(rate, tuple) else (rate,)))
    return ()


def _listed_rate(schedule: Any, optimizer: Any) -> float | None:
    """The next rate of a list with one for each step, NaN behind its end; None for no list."""
    if not type(schedule).__module__.startswith("mindspore."):
        return None
    rates: Any = getattr(schedule, "learning_rate", None)
    counter: Any = getattr(optimizer, "global_step", None)
    if not is_tensor(rates) or rates.ndim != 1 or not is_tensor(counter):
        return None
    values, at = rates.asnumpy(), int(counter.asnumpy().reshape(-1)[0])
    return float(values[at]) if at < values.size else math.nan


def _number(value: Any) -> float:
    if is_tensor(value):
        return float(value.asnumpy().reshape(-1)[0])
    return float(value) if isinstance(value, (int, float)) else math.nan


def state_largest(optimizer: Any) -> float:
    """The greatest magnitude in an optimizer's state; NaN where it has none."""
    largest = math.nan
    for parameter in state_of(optimizer):
        if parameter.size < 2 or not is_floating(parameter):
            continue
        values = numbers_of(parameter)
        if values is not None:
            low, high = float(values.min()), float(values.max())
            found = math.inf if math.isnan(low + high) else max(abs(low), abs(high))
            largest = found if math.isnan(largest) else max(largest, found)
    return largest


def _row(tensor: Any) -> tuple[list[float], Floats]:
    values = None if tensor is None else numbers_of(tensor)
    if values is None:
        return [*MISSING_ROW, math.nan, math.nan], np.empty(0)
    return extended_row(values), sample_of(values).astype(np.float64)


def _sample(tensor: Any) -> Floats:
    values = numbers_of(tensor)
    return np.empty(0) if values is None else sample_of(values).astype(np.float64)

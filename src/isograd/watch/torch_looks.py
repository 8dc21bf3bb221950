"""Statistics of a torch network's tensors at a step that is looked at.

Extremes, mean and norm are of all elements; the mean of magnitudes, the share of zeros and the
size of updates are estimated from at most `SAMPLE` elements at even distances.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch  # noqa: TID253  # this module is loaded only for a torch training

from isograd.recording.statistics import MISSING_ROW
from isograd.recording.torch_recorder import as_array
from isograd.watch.looks import (
    INPUT,
    MOSTLY_ZERO,
    RECTIFIERS,
    SAMPLE,
    SATURATION,
    ActivationRows,
    change_of,
    dead_share,
    extended_row,
    inside_share,
    sample_of,
)
from isograd.watch.observation import (
    COLUMNS,
    Activations,
    Floats,
    Look,
    Network,
    RunningStatistics,
    TensorTable,
)
from isograd.watch.torch_device import Measured, fetch, fetch_samples, is_elsewhere, measure

__all__ = ["SAMPLE", "TorchLook"]

_WIDTH = len(COLUMNS)


class TorchLook:
    """Gathers the look of one step."""

    def __init__(self, names: Mapping[int, str]) -> None:
        """names: of modules, by their identity."""
        self._names = names
        self._rows = ActivationRows()
        self._called: set[str] = set()
        self._norms: dict[str, tuple[Any, bool, list[np.ndarray[Any, Any]]]] = {}
        self._weights: list[list[float]] = []
        self._samples: list[Floats] = []
        self._gradients: list[list[float]] = []
        self._waiting: list[tuple[str, str, Measured]] = []

    def before_module(self, module: torch.nn.Module) -> None:
        """A module is called: keep its running statistics."""
        name = self._names.get(id(module))
        if name is None:
            return
        self._called.add(name)
        averages = running_averages(module)
        if averages and name not in self._norms:
            copies = [np.array(as_array(t)[0]) for t in averages]
            self._norms[name] = (module, module.training, copies)

    def after_module(self, module: torch.nn.Module, args: Any, output: Any) -> None:
        """A module has been called: measure what it gave, and what a linear one was given."""
        name = self._names.get(id(module))
        if name is None:
            return
        kind = type(module).__name__
        if isinstance(output, torch.Tensor) and output.is_floating_point():
            self._measure(name, kind, output)
        given = args[0] if args and isinstance(args[0], torch.Tensor) else None
        if given is not None and given.requires_grad and hasattr(module, "weight"):
            self._measure_given(f"{name} (input)", given)

    def before_update(self, parameters: Iterable[torch.Tensor]) -> None:
        """Measure weights and gradients, and sample the weights."""
        parameters = list(parameters)
        there = [p.grad for p in parameters if p.grad is not None]
        rows, samples = rows_of([*parameters, *there])
        self._weights, self._samples = rows[: len(parameters)], samples[: len(parameters)]
        gradients = iter(rows[len(parameters) :])
        self._gradients = [
            [math.nan] * _WIDTH if p.grad is None else next(gradients) for p in parameters
        ]

    def after_update(
        self, parameters: Iterable[torch.Tensor], network: Network, state_largest: float
    ) -> Look:
        """The look, once the weights have changed."""
        parameters = list(parameters)
        samples, weights = _samples(parameters), self._weights
        pairs = list(zip(self._samples, samples, strict=True))
        # All elements are read again only where the sample does not show a change.
        same = [at for at, (before, after) in enumerate(pairs) if np.array_equal(after, before)]
        again, _ = rows_of([parameters[at] for at in same])
        unchanged = np.zeros(len(parameters), dtype=bool)
        for at, now in zip(same, again, strict=True):
            unchanged[at] = now[5:8] == weights[at][5:8]
        called = [network.module(at) in self._called for at in range(len(network.parameters))]
        tables = [np.array(found).reshape(-1, _WIDTH) for found in (weights, self._gradients)]
        return Look(
            weights=TensorTable(network.parameters, tables[0]),
            gradients=TensorTable(network.parameters, tables[1]),
            update_ratio=np.array([change_of(before, after) for before, after in pairs]),
            unchanged=unchanged,
            called=np.array(called, dtype=bool),
            activations=self._activations(),
            statistics=tuple(self._statistics()),
            state_largest=state_largest,
        )

    def without_update(self, network: Network) -> Look:
        """The look where the update was left out."""
        return Look(activations=self._activations(), statistics=tuple(self._statistics()))

    def _activations(self) -> Activations | None:
        fetched = fetch([measured for _, _, measured in self._waiting])
        for (name, kind, _), found in zip(self._waiting, fetched, strict=True):
            if kind == INPUT and not found.row[-1] > MOSTLY_ZERO:
                self._rows.leave_out(name)
                continue
            inside = math.nan
            if kind in SATURATION:
                inside = inside_share(found.sample, SATURATION[kind])
            self._rows.add(name, kind, found.row, found.dead, inside)
        self._waiting = []
        return self._rows.activations()

    def _wait(self, name: str, kind: str, output: torch.Tensor) -> None:
        """Measure on the tensor's device, and keep the place among the modules."""
        wants_dead = kind in RECTIFIERS or kind == INPUT
        self._waiting.append((name, kind, measure(output, wants_dead=wants_dead)))
        self._rows.add(name, kind, [math.nan] * _WIDTH, math.nan, math.nan)

    def _statistics(self) -> Iterable[RunningStatistics]:
        for name, (module, was_training, before) in self._norms.items():
            after = [np.array(as_array(t)[0]) for t in running_averages(module)]
            same = all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
            initial = bool((before[0] == 0.0).all() and (before[1] == 1.0).all())
            yield RunningStatistics(name, was_training, not same, initial)

    def _measure(self, name: str, kind: str, output: torch.Tensor) -> None:
        if is_elsewhere(output):
            self._wait(name, kind, output)
            return
        values = _numbers(output)
        if values is None:
            return
        dead = dead_share(values) if kind in RECTIFIERS else math.nan
        inside = inside_share(values, SATURATION[kind]) if kind in SATURATION else math.nan
        self._rows.add(name, kind, extended_row(values), dead, inside)

    def _measure_given(self, name: str, given: torch.Tensor) -> None:
        """What goes into a layer tells of rectifiers that are functions and no modules."""
        if is_elsewhere(given):
            self._wait(name, INPUT, given)
            return
        values = _numbers(given)
        if values is not None and float((sample_of(values) == 0.0).mean()) > MOSTLY_ZERO:
            self._rows.add(name, INPUT, extended_row(values), dead_share(values), math.nan)


def running_averages(module: torch.nn.Module) -> list[torch.Tensor]:
    """Running mean and variance of a normalisation that has them."""
    # Of the buffers, because an attribute that a module lacks costs an exception.
    found = [module._buffers.get(name) for name in ("running_mean", "running_var")]
    kept = [t for t in found if t is not None]
    return kept if len(kept) == len(found) else []


def state_largest(optimizer: Any) -> float:
    """The greatest magnitude in an optimizer's state; NaN where it has none."""
    tensors = [
        value
        for state in optimizer.state.values()
        for value in (state.values() if isinstance(state, dict) else ())
        if isinstance(value, torch.Tensor) and value.is_floating_point() and value.numel() > 1
    ]
    if not tensors:
        return math.nan
    borders = [torch.stack(torch.aminmax(tensor)).double() for tensor in tensors]
    # One transfer for each device; the state of a rank lies on one as a rule.
    by_device: dict[torch.device, list[torch.Tensor]] = {}
    for border in borders:
        by_device.setdefault(border.device, []).append(border)
    largest = [float(torch.stack(found).abs().max()) for found in by_device.values()]
    return math.inf if any(map(math.isnan, largest)) else max(largest)


def _numbers(tensor: torch.Tensor) -> np.ndarray[Any, Any] | None:
    """A tensor's elements as float32 or float64; None where they cannot be read."""
    plain = tensor.detach()
    if plain.dtype in (torch.bfloat16, torch.float16):
        plain = plain.float()
    return as_array(plain)[0]


def rows_of(tensors: Sequence[torch.Tensor]) -> tuple[list[list[float]], list[Floats]]:
    """Rows and samples (float64) of tensors, wherever they lie."""
    found = [_row(tensor) for tensor in tensors if not is_elsewhere(tensor)]
    fetched = fetch([measure(tensor) for tensor in tensors if is_elsewhere(tensor)])
    here, there = iter(found), iter((f.row, f.sample.astype(np.float64)) for f in fetched)
    pairs = [next(there if is_elsewhere(tensor) else here) for tensor in tensors]
    return [row for row, _ in pairs], [sample for _, sample in pairs]


def _row(tensor: torch.Tensor) -> tuple[list[float], Floats]:
    values = _numbers(tensor)
    if values is None:
        return [*MISSING_ROW, math.nan, math.nan], np.empty(0)
    return extended_row(values), sample_of(values).astype(np.float64)


def _samples(tensors: Sequence[torch.Tensor]) -> list[Floats]:
    """Samples (float64) of tensors, wherever they lie."""
    there = iter(fetch_samples([tensor for tensor in tensors if is_elsewhere(tensor)]))
    return [
        next(there).astype(np.float64) if is_elsewhere(tensor) else _sample(tensor)
        for tensor in tensors
    ]


def _sample(tensor: torch.Tensor) -> Floats:
    values = _numbers(tensor)
    return np.empty(0) if values is None else sample_of(values).astype(np.float64)

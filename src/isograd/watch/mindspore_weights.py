"""Copies of weights and optimizer state from before a compiled step, whose inside is not seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mindspore  # noqa: TID253  # this module is loaded only for a MindSpore training
import numpy as np

from isograd.recording.mindspore_optimizers import parameters_of, state_of
from isograd.watch.looks import Numbers, fast_norm
from isograd.watch.mindspore_calls import numbers_of


@dataclass
class Kept:
    """weights: of the optimizer's parameters; state: of all else that it holds."""

    weights: list[Numbers]
    state: list[tuple[Any, Numbers]]


class WeightCopies:
    """Two sets of copies in turn, so that the last good one is never overwritten."""

    def __init__(self) -> None:
        self._buffers: list[dict[int, Numbers]] = [{}, {}]
        self._turn = 0
        self._counter: int | None = None
        self._last: Kept | None = None
        self.were_unchanged = False

    def keep(self, optimizer: Any) -> Kept:
        """Copy the weights; small state (counters, rates) too, so that the step can be undone."""
        self._turn = 1 - self._turn
        buffer = self._buffers[self._turn]
        weights = [self._copied(buffer, p) for p in parameters_of(optimizer)]
        state = [(p, self._copied(buffer, p)) for p in state_of(optimizer)]
        self._counter = counter_of(optimizer)
        self._last = Kept(weights, state)
        return self._last

    def has_stepped(self, optimizer: Any) -> bool:
        """Whether the optimizer has stepped since `keep`."""
        before, now = self._counter, counter_of(optimizer)
        assert self._last is not None
        if before is not None and now is not None and before != now:
            self.were_unchanged = False
            return True
        pairs = zip(parameters_of(optimizer), self._last.weights, strict=True)
        small = sorted(pairs, key=lambda pair: int(pair[1].size))[:4]
        # Weights that are all NaN change no more; counters do.
        small += [pair for pair in self._last.state if pair[1].ndim == 0]
        changed = any(not np.array_equal(p.asnumpy(), before_, True) for p, before_ in small)
        self.were_unchanged = not changed
        return changed

    def are_finite(self, parameters: list[Any]) -> bool:
        """Whether all weights are finite now."""
        arrays = (numbers_of(parameter) for parameter in parameters)
        return all(np.isfinite(fast_norm(array)) for array in arrays if array is not None)

    def forget(self) -> None:
        """Free the copies."""
        self._buffers = [{}, {}]
        self._last = None

    def _copied(self, buffer: dict[int, Numbers], parameter: Any) -> Numbers:
        values = parameter.asnumpy()
        known = buffer.get(id(parameter))
        if known is None or known.shape != values.shape or known.dtype != values.dtype:
            known = buffer[id(parameter)] = np.empty_like(values)
        np.copyto(known, values)
        return known


def counter_of(optimizer: Any) -> int | None:
    """How many steps an optimizer has made, where it counts them."""
    counter = getattr(optimizer, "global_step", None)
    if not isinstance(counter, mindspore.Tensor):
        return None
    return int(counter.asnumpy().reshape(-1)[0])


def put_back(parameters: list[Any], values: list[Numbers]) -> None:
    """Give parameters these values by assignment, which compiled functions see.

    values: the shapes of the parameters, any dtype that converts to theirs.
    """
    for parameter, value in zip(parameters, values, strict=True):
        mindspore.ops.assign(parameter, mindspore.Tensor(value, parameter.dtype))

"""What is checked of every batch of a MindSpore training."""

from __future__ import annotations

from typing import Any

import numpy as np

from isograd import tree
from isograd.watch.looks import Numbers
from isograd.watch.mindspore_calls import is_floating, is_tensor, numbers_of
from isograd.watch.observation import BatchFacts

#: Larger inputs are checked for NaN only.
_LARGEST_COMPARED = 1 << 22


class BatchWatch:
    """Remembers the batch of the step before."""

    def __init__(self) -> None:
        self._before: dict[int, list[Numbers]] = {}

    def facts(self, calls: list[tuple[Any, Any]], lane: int = 0) -> BatchFacts:
        """What the arguments of the differentiated function hold; lane: the optimizer's number."""
        named: dict[str, Numbers] = {}
        floats: list[str] = []
        for args, kwargs in calls:
            tensors, skeleton = tree.flatten((args, kwargs), is_tensor)
            for path, tensor in zip(tree.slot_names(skeleton), tensors, strict=True):
                values = numbers_of(tensor)
                name = path.partition(".")[2]
                if values is None or not values.size or name in named:
                    continue
                named[name] = values
                if is_floating(tensor) and values.ndim:
                    floats.append(name)
        inputs = list(named.values())
        found = BatchFacts(
            tuple(floats),
            np.array([_largest(named[name]) for name in floats]),
            is_constant=bool(floats) and all(_is_constant(named[name]) for name in floats),
            is_repeated=_is_repeated(inputs, self._before.get(lane, [])),
        )
        kept = [v.copy() if v.size <= _LARGEST_COMPARED else v[:0] for v in inputs]
        self._before[lane] = kept
        return found


def _is_repeated(inputs: list[Numbers], last: list[Numbers]) -> bool:
    if not inputs or len(inputs) != len(last):
        return False
    return all(
        a.shape == b.shape and np.array_equal(a, b) for a, b in zip(inputs, last, strict=True)
    )


def _largest(values: Numbers) -> float:
    low, high = float(values.min()), float(values.max())
    # A mask of -inf is meant.
    if low == float("-inf") and high < float("inf"):
        return abs(high)
    return max(abs(low), abs(high)) if low == low else low


def _is_constant(values: Numbers) -> bool:
    if values.ndim < 2 or values.shape[0] < 2 or values.size > _LARGEST_COMPARED:
        return False
    return bool(np.array_equal(values[0], values[1]) and (values == values[:1]).all())

"""What is checked of every batch of a torch training."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch  # noqa: TID253  # this module is loaded only for a torch training

from isograd import tree
from isograd.watch.observation import BatchFacts
from isograd.watch.torch_calls import NetworkCall, version_of

#: Larger inputs are checked for NaN only.
_LARGEST_COMPARED = 1 << 22
_CLASS_LOSSES = frozenset(("cross_entropy", "nll_loss"))


class BatchWatch:
    """Remembers the batch of the step before, of each optimizer its own.

    Two optimizers in turn may use one batch, as those of a GAN do.
    """

    def __init__(self) -> None:
        self._before: dict[int, list[tuple[torch.Tensor, int]]] = {}

    def facts(
        self, calls: list[NetworkCall], outside: tuple[int, int] | None, lane: int
    ) -> BatchFacts:
        """What the inputs of the step's network calls hold; lane: the optimizer's number.

        Only leaves count: what another network computed is no data.
        """
        named: dict[str, torch.Tensor] = {}
        for call in calls:
            prefix = f"{call.name} " if len(calls) > 1 and call.name else ""
            tensors, skeleton = tree.flatten((call.args, call.kwargs), _is_tensor)
            for path, tensor in zip(tree.slot_names(skeleton), tensors, strict=True):
                if tensor.is_leaf and not tensor.requires_grad:
                    named.setdefault(prefix + path.partition(".")[2], tensor)
        with torch.no_grad():
            inputs = list(named.values())
            floats = {n: t for n, t in named.items() if t.is_floating_point() and t.numel()}
            largest = [_largest(t) for t in floats.values()]
            found = BatchFacts(
                tuple(floats),
                np.array(largest),
                is_constant=bool(inputs) and all(_is_constant(t) for t in inputs),
                is_repeated=self._is_repeated(inputs, self._before.get(lane, [])),
                outside=outside,
            )
        self._before[lane] = [(t, version_of(t)) for t in inputs]
        return found

    def _is_repeated(
        self, inputs: list[torch.Tensor], last: list[tuple[torch.Tensor, int]]
    ) -> bool:
        if not inputs or len(inputs) != len(last):
            return False
        for tensor, (before, version) in zip(inputs, last, strict=True):
            if tensor.shape != before.shape or tensor.dtype != before.dtype:
                return False
            if tensor is before:
                if version_of(tensor) != version:
                    return False
            elif tensor.numel() > _LARGEST_COMPARED or not torch.equal(tensor, before):
                return False
        return True


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _largest(tensor: torch.Tensor) -> float:
    borders: list[float] = torch.stack(torch.aminmax(tensor.detach())).tolist()
    low_value, high_value = borders
    # A mask of -inf is meant.
    if low_value == float("-inf") and high_value < float("inf"):
        return abs(high_value)
    return max(abs(low_value), abs(high_value)) if low_value == low_value else low_value


def _is_constant(tensor: torch.Tensor) -> bool:
    if tensor.ndim < 2 or tensor.shape[0] < 2 or tensor.numel() > _LARGEST_COMPARED:
        return False
    return torch.equal(tensor[0], tensor[1]) and bool((tensor == tensor[:1]).all())


def label_outside(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[int, int] | None:
    """A class index that is none, and how many classes there are; before a loss is computed."""
    if name not in _CLASS_LOSSES:
        return None
    scores = args[0] if args else kwargs.get("input")
    target = args[1] if len(args) > 1 else kwargs.get("target")
    if not isinstance(target, torch.Tensor) or target.is_floating_point() or not target.numel():
        return None
    if not isinstance(scores, torch.Tensor) or target.device.type != "cpu":
        return None
    classes = scores.shape[1 if scores.ndim > 1 else 0]
    kept = target[target != kwargs.get("ignore_index", -100)]
    if not kept.numel():
        return None
    low, high = (int(bound) for bound in torch.aminmax(kept))
    return (low, classes) if low < 0 else (high, classes) if high >= classes else None

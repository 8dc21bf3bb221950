"""torch.nn.AdaptiveLogSoftmaxWithLoss: frequent classes at once, rare ones by cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import ops  # noqa: TID253

from isograd.runtime.basics import is_compiled, take
from isograd.runtime.torch_containers import ModuleList, Sequential
from isograd.runtime.torch_layers import Linear
from isograd.runtime.torch_module import Module


class AdaptiveSoftmaxOutput(NamedTuple):
    """The log-probability of each target, and their negated mean."""

    output: Any
    loss: Any


class AdaptiveLogSoftmaxWithLoss(Module):
    """torch.nn.AdaptiveLogSoftmaxWithLoss; MindSpore has none.

    A cluster is computed for the rows alone whose target lies in it; compiled, for all rows.
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        ends = list(cutoffs)
        if not ends or ends != sorted(set(ends)) or not 0 < ends[0] <= ends[-1] < n_classes:
            raise ValueError("cutoffs should be unique integers in order, from 1 to n_classes - 1")
        self.in_features, self.n_classes, self.cutoffs = in_features, n_classes, [*ends, n_classes]
        self.div_value, self.head_bias = div_value, head_bias
        self.shortlist_size, self.n_clusters = ends[0], len(ends)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, head_bias, dtype=dtype)
        self.tail = ModuleList()
        for number in range(self.n_clusters):
            width = int(in_features // div_value ** (number + 1))
            count = self.cutoffs[number + 1] - self.cutoffs[number]
            narrow = Linear(in_features, width, False, dtype=dtype)
            self.tail.append(Sequential(narrow, Linear(width, count, False, dtype=dtype)))

    def reset_parameters(self) -> None:
        """All weights drawn anew."""
        for layer in [self.head, *[part for pair in self.tail for part in pair]]:
            layer.reset_parameters()

    def construct(self, input_: Any, target_: Any) -> Any:
        """The targets' log-probabilities and the loss."""
        if target_.ndim > 1 or input_.ndim != target_.ndim + 1:
            raise RuntimeError("1D targets need 2D inputs, a 0D target a 1D input")
        rows = input_.reshape(-1, self.in_features)
        target = target_.reshape(-1)
        if rows.shape[0] != target.shape[0]:
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        if is_compiled(rows):
            found = self._of_all_rows(rows, target)
            return found.reshape(target_.shape), -found.mean()  # a NamedTuple loses gradients here
        found = self._of_own_rows(rows, target.asnumpy())
        return AdaptiveSoftmaxOutput(found.reshape(target_.shape), -found.mean())

    def _of_own_rows(self, rows: Any, target: Any) -> Any:
        if ((target < 0) | (target >= self.n_classes)).any():
            raise RuntimeError(f"Target values should be in [0, {self.n_classes - 1}]")
        cluster = np.searchsorted(self.cutoffs, target, side="right")
        first = np.where(cluster == 0, target, self.shortlist_size + cluster - 1)
        found = _of_columns(ops.log_softmax(self.head(rows), 1), ms.Tensor(first))
        parts, places = [], []
        for number in range(self.n_clusters):
            own = np.flatnonzero(cluster == number + 1)
            if own.size:
                logs = ops.log_softmax(self.tail[number](take(rows, 0, own)), 1)
                parts.append(_of_columns(logs, ms.Tensor(target[own] - self.cutoffs[number])))
                places.append(own)
        rest = np.flatnonzero(cluster == 0)
        if not parts:
            return found
        if rest.size:
            parts.append(ops.zeros((rest.size,), dtype=found.dtype))
            places.append(rest)
        return found + take(ops.cat(parts), 0, np.argsort(np.concatenate(places)))

    def _of_all_rows(self, rows: Any, target: Any) -> Any:
        head = ops.log_softmax(self.head(rows), 1)
        found = _of_columns(head, ops.clamp(target, 0, self.shortlist_size - 1))
        for number in range(self.n_clusters):
            low, high = self.cutoffs[number], self.cutoffs[number + 1]
            logs = ops.log_softmax(self.tail[number](rows), 1)
            own = _of_columns(logs, ops.clamp(target - low, 0, high - low - 1))
            own = own + _of_columns(head, ops.zeros_like(target) + self.shortlist_size + number)
            found = ops.where(ops.logical_and(target >= low, target < high), own, found)
        return found

    def log_prob(self, input: Any) -> Any:
        """The log-probabilities of all classes."""
        head = ops.log_softmax(self.head(input), 1)
        parts = [take(head, 1, np.arange(self.shortlist_size))]
        for number in range(self.n_clusters):
            share = take(head, 1, np.array([self.shortlist_size + number]))
            parts.append(ops.log_softmax(self.tail[number](input), 1) + share)
        return ops.cat(parts, 1)

    def predict(self, input: Any) -> Any:
        """The likeliest class of each row."""
        return ops.argmax(self.log_prob(input), 1)


def _of_columns(logs: Any, columns: Any) -> Any:
    """One column of each row."""
    return ops.gather_elements(logs, 1, columns.expand_dims(1)).squeeze(1)

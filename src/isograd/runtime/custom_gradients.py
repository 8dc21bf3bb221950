"""torch.autograd.Function on MindSpore's own, and cells with a gradient of their own."""

from __future__ import annotations

from typing import Any

import mindspore as ms  # noqa: TID253
from mindspore import nn, ops  # noqa: TID253
from mindspore.common._grad_function import _Function  # noqa: TID253


class Function(_Function):  # type: ignore[misc]
    """torch.autograd.Function: static methods forward(ctx, …) and backward(ctx, …).

    MindSpore 2.10 has one, with torch's context, under a private name: a Cell's `bprop` is not
    recorded for `loss.backward()` ("The pointer[top_cell_] is null").
    """

    @property
    def saved_variables(self) -> Any:
        """saved_tensors by its old name."""
        return self.saved_tensors


class _Recorded(Function):
    """A cell's `construct` and `bprop`, so that `loss.backward()` finds them."""

    @staticmethod
    def forward(ctx: Any, cell: Any, *inputs: Any) -> Any:
        ctx.cell, ctx.inputs = cell, inputs
        ctx.out = cell.construct(*inputs)
        return ctx.out

    @staticmethod
    def backward(ctx: Any, *slopes: Any) -> Any:
        slope = slopes[0] if len(slopes) == 1 else slopes
        return (None, *ctx.cell.bprop(*ctx.inputs, ctx.out, slope))


class FunctionCell(nn.Cell):  # type: ignore[misc]
    """A cell whose `bprop` counts compiled, in `value_and_grad`, and where gradients are recorded.

    MindSpore does not record a cell's `bprop` for `loss.backward()`.
    """

    def __call__(self, *inputs: Any) -> Any:
        return _Recorded.apply(self, *inputs)


class ResultAlone(nn.Cell):  # type: ignore[misc]
    """A cell's first outputs: the others are for its `bprop`."""

    def __init__(self, function: Any, count: int) -> None:
        super().__init__()
        self.function, self.count = function, count

    def construct(self, *inputs: Any) -> Any:
        found = self.function(*inputs)
        return found[0] if self.count == 1 else found[: self.count]


def no_gradient(value: Any) -> Any:
    """None of torch's backward: zeros for a tensor, since the static graph takes no None."""
    return ops.zeros_like(value) if isinstance(value, ms.Tensor) else None

"""torch.autograd.Function on MindSpore's bprop; copied into the ports that use it."""

from __future__ import annotations

from typing import Any

import mindspore as ms  # noqa: TID253
from mindspore import nn, ops  # noqa: TID253


class FunctionContext:
    """What forward leaves for backward."""

    saved_tensors: tuple[Any, ...] = ()
    needs_input_grad: tuple[bool, ...] = ()

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors."""
        self.saved_tensors = tensors

    def mark_dirty(self, *tensors: Any) -> None:
        """Nothing: a port changes no input in place."""

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Nothing: backward decides."""

    def set_materialize_grads(self, value: bool) -> None:
        """Nothing: gradients are always there."""


class _Applied(nn.Cell):  # type: ignore[misc]
    """One call of a function with a gradient of its own."""

    def __init__(self, function: Any, inputs: tuple[Any, ...]) -> None:
        super().__init__()
        self.function, self.inputs = function, inputs
        self.places = [i for i, value in enumerate(inputs) if isinstance(value, ms.Tensor)]
        self.context = FunctionContext()
        self.context.needs_input_grad = tuple(i in self.places for i in range(len(inputs)))

    def construct(self, *tensors: Any) -> Any:
        """Torch's forward."""
        values = list(self.inputs)
        for place, tensor in zip(self.places, tensors, strict=True):
            values[place] = tensor
        if hasattr(self.function, "setup_context"):
            found = self.function.forward(*values)
            self.function.setup_context(self.context, tuple(values), found)
            return found
        return self.function.forward(self.context, *values)

    def bprop(self, *values: Any) -> Any:
        """Torch's backward; a gradient of None is zero."""
        tensors, gradient = values[:-2], values[-1]
        gradients = gradient if isinstance(gradient, tuple) else (gradient,)
        found = self.function.backward(self.context, *gradients)
        found = found if isinstance(found, tuple) else (found,)
        given = [found[place] for place in self.places]
        return tuple(
            ops.zeros_like(tensor) if value is None else value
            for value, tensor in zip(given, tensors, strict=True)
        )


class Function:
    """torch.autograd.Function: static methods forward(ctx, …) and backward(ctx, …)."""

    @classmethod
    def apply(cls, *inputs: Any) -> Any:
        """The value of forward, whose gradient is backward's."""
        tensors = [value for value in inputs if isinstance(value, ms.Tensor)]
        return _Applied(cls, inputs)(*tensors)

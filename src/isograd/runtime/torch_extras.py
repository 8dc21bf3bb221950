"""What projects in torch use beside its layers: frozen norms, stubs of quantisation, switches."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

import mindspore as ms  # noqa: TID253
from mindspore import ops  # noqa: TID253

from isograd.runtime.making import tensor
from isograd.runtime.module_functions import requires_grad_
from isograd.runtime.torch_module import Module
from isograd.runtime.training_gradients import parameters_reached, track


class FrozenBatchNorm2d(Module):
    """torchvision's batch norm whose numbers are all fixed."""

    def __init__(self, num_features: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        for name, value in (("weight", 1), ("bias", 0), ("running_mean", 0), ("running_var", 1)):
            filled = ops.full((num_features,), float(value), dtype=ms.float32)
            self.register_buffer(name, filled)

    def construct(self, x: Any) -> Any:
        """A line for each channel."""
        shape = (1, -1, 1, 1)
        scale = self.weight.reshape(shape) * ops.rsqrt(self.running_var.reshape(shape) + self.eps)
        return x * scale + self.bias.reshape(shape) - self.running_mean.reshape(shape) * scale


class FloatFunctional(Module):
    """torch's arithmetic that quantisation may watch: without it, plain arithmetic."""

    def add(self, x: Any, y: Any) -> Any:
        """The sum."""
        return x + y

    def add_scalar(self, x: Any, y: float) -> Any:
        """The sum."""
        return x + y

    def add_relu(self, x: Any, y: Any) -> Any:
        """The sum, nothing below 0."""
        return ops.relu(x + y)

    def mul(self, x: Any, y: Any) -> Any:
        """The product."""
        return x * y

    def mul_scalar(self, x: Any, y: float) -> Any:
        """The product."""
        return x * y

    def matmul(self, x: Any, y: Any) -> Any:
        """The product of matrices."""
        return ops.matmul(x, y)

    def cat(self, x: Any, dim: int = 0) -> Any:
        """Side by side along an axis."""
        return ops.cat(x, dim)


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: Any = None,
    preserve_rng_state: bool = True,
    context_fn: Any = None,
    determinism_check: Any = None,
    debug: Any = None,
    **kwargs: Any,
) -> Any:
    """The function's result: memory is not saved, and nothing is computed twice."""
    return function(*args, **kwargs)


def checkpoint_sequential(functions: Any, segments: int, input: Any, **_: Any) -> Any:
    """One function after the other."""
    for function in functions:
        input = function(input)
    return input


def tensor_requires_grad_(input: Any, requires_grad: bool = True) -> Any:
    """Whether a Parameter or a network learns; of a tensor, something that a gradient reaches."""
    if isinstance(input, ms.nn.Cell):
        return requires_grad_(input, requires_grad)
    if not isinstance(input, ms.Tensor):
        return input.requires_grad_(requires_grad)
    if isinstance(input, ms.Parameter):
        input.requires_grad = requires_grad
        return input
    return leaf(input) if requires_grad else input


def leaf(tensor: Any) -> Any:
    """What `tensor.requires_grad = True` makes: something that `backward` leaves a gradient in.

    It is the same object, so whatever else holds the tensor holds the leaf.
    """
    if isinstance(tensor, ms.Parameter) or not isinstance(tensor, ms.Tensor):
        tensor.requires_grad = True
        return tensor
    if parameters_reached(tensor):
        return tensor
    if type(tensor) is not ms.Tensor:  # a class of its own has a class of parameters
        return ms.Parameter(tensor)
    tensor.__class__ = ms.Parameter._get_base_class(ms.Tensor)
    tensor.init_mode, tensor.is_default_input_init = None, False  # what its __new__ sets
    ms.Parameter.__init__(tensor, tensor)
    track([tensor])
    return tensor


def leaf_attribute(owner: Any, name: str) -> None:
    """`owner.name.requires_grad = True`; a tensor of a network does not become its parameter."""
    held = getattr(owner, name)
    made = leaf(held)
    if made is not held:
        object.__setattr__(owner, name, made)


def legacy_tensor(*data: Any) -> Any:
    """torch.Tensor(…): of numbers as float32, or zeros of a shape (torch's are not set)."""
    return _numbers_or_sizes(data, ms.float32)


def legacy_data(owner: Any) -> tuple[Any, ...]:
    """What `torch.Tensor(owner.shape)` takes: the sizes of a tensor; of others a tuple of numbers.

    torch tells them apart by torch.Size.
    """
    return owner.shape if isinstance(owner, ms.Tensor) else (owner.shape,)


def new(like: Any, *data: Any) -> Any:
    """x.new(…): the same in the dtype of a tensor."""
    return _numbers_or_sizes(data, like.dtype)


def _numbers_or_sizes(data: tuple[Any, ...], dtype: Any) -> Any:
    if data and all(isinstance(part, numbers.Integral) for part in data):
        return ops.zeros(tuple(int(part) for part in data), dtype=dtype)
    return tensor(data[0] if data else (), dtype)

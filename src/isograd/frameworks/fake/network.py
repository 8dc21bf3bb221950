"""A small numpy network library, so that the whole pipeline runs where no framework is installed.

It has what real networks trip a verification with: glue code between modules, shared parameters,
running statistics, dropout, operations in place, integer inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from isograd.frameworks.fake.tape import (
    Buffer,
    Parameter,
    Tensor,
    add,
    function,
    matmul,
    mean,
    multiply,
    power,
    relu,
    rounded,
    rows,
    tanh,
    transpose,
)

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "SGD",
    "BatchNorm",
    "Buffer",
    "Dropout",
    "Embedding",
    "Linear",
    "Module",
    "Parameter",
    "ReLU",
    "Residual",
    "Sequential",
    "Tanh",
    "Tensor",
    "add",
    "matmul",
    "mean",
    "mean_squared_error",
    "multiply",
    "relu",
    "tanh",
]


class Random:
    """The library's random state: weights of new layers and dropout masks."""

    generator = np.random.default_rng(0)
    neutral_dropout = False


def _drawn(shape: tuple[int, ...], bound: float) -> Parameter:
    return Parameter(Random.generator.uniform(-bound, bound, shape).astype(np.float32))


class Module:
    """A part of a network: attributes that are modules or parameters belong to it."""

    training = True
    on_creation: ClassVar[Callable[[Module], None] | None] = None

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        module = super().__new__(cls)
        if Module.on_creation is not None:
            Module.on_creation(module)
        return module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs)

    def children(self) -> Iterator[tuple[str, Module]]:
        """Direct parts, by attribute."""
        for name, value in vars(self).items():
            if isinstance(value, Module):
                yield name, value

    def own_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """Direct parameters and buffers, by attribute."""
        for name, value in vars(self).items():
            if isinstance(value, Parameter):
                yield name, value

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """This module and all parts of it, by dotted name."""
        yield prefix, self
        for name, child in self.children():
            yield from child.named_modules(f"{prefix}.{name}" if prefix else name)

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """All parameters and buffers by dotted name; shared ones under each of their names."""
        for name, module in self.named_modules():
            for attribute, parameter in module.own_parameters():
                yield f"{name}.{attribute}" if name else attribute, parameter

    def parameters(self) -> list[Parameter]:
        """What an optimizer trains, each once."""
        return list({id(p): p for _, p in self.named_parameters() if p.trainable}.values())

    def train(self, training: bool = True) -> None:
        """Set the mode of all parts."""
        for _, module in self.named_modules():
            module.training = training


@function("linear", "input weight bias")
def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x · weightᵀ + bias."""
    product = x @ transpose(weight)
    return product if bias is None else product + bias


@function("batch_norm", "input running_mean running_var weight bias training momentum eps")
def batch_norm(
    x: Tensor,
    running_mean: Buffer,
    running_var: Buffer,
    weight: Tensor,
    bias: Tensor,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Each feature over the batch, or by running statistics, which training moves."""
    centre: Tensor = running_mean
    variance: Tensor = running_var
    if training:
        centre = mean(x, 0)
        variance = mean(power(x - centre, 2.0), 0)
        count = x.shape[0]
        _follow(running_mean, centre.values[0], momentum)
        _follow(running_var, variance.values[0] * (count / max(1, count - 1)), momentum)
    return (x - centre) * power(variance + eps, -0.5) * weight + bias


def _follow(buffer: Buffer, fresh: Any, share: float) -> None:
    buffer.assign(rounded(((1 - share) * buffer.values + share * fresh).astype(fresh.dtype)))


class Linear(Module):
    """x · weightᵀ + bias."""

    def __init__(self, inputs: int, outputs: int, bias: bool = True) -> None:
        self.weight = _drawn((outputs, inputs), inputs**-0.5)
        if bias:
            self.bias = _drawn((outputs,), inputs**-0.5)

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, getattr(self, "bias", None))


class Embedding(Module):
    """A table whose rows are looked up by integers."""

    def __init__(self, count: int, features: int) -> None:
        self.weight = _drawn((count, features), 1.0)

    def forward(self, index: Tensor) -> Tensor:
        return rows(self.weight, index)


class ReLU(Module):
    """max(x, 0), in place if asked."""

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace

    def forward(self, x: Tensor) -> Tensor:
        result = relu(x)
        if not self.inplace:
            return result
        x.node = result.node
        return x


class Tanh(Module):
    """Hyperbolic tangent."""

    def forward(self, x: Tensor) -> Tensor:
        return tanh(x)


class Dropout(Module):
    """Zeroes elements at random in training and scales up the rest."""

    def __init__(self, probability: float = 0.5) -> None:
        self.probability = probability

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or Random.neutral_dropout:
            return x
        kept = Random.generator.uniform(size=x.shape) >= self.probability
        return x * Tensor((kept / (1 - self.probability)).astype(x.values.dtype))


class BatchNorm(Module):
    """Normalises each feature over the batch, and follows its mean and variance."""

    def __init__(self, features: int, eps: float = 1e-5, momentum: float = 0.1) -> None:
        self.eps = eps
        self.momentum = momentum
        self.weight = Parameter(np.ones(features, np.float32))
        self.bias = Parameter(np.zeros(features, np.float32))
        self.running_mean = Buffer(np.zeros(features, np.float32))
        self.running_var = Buffer(np.ones(features, np.float32))

    def forward(self, x: Tensor) -> Tensor:
        running = self.running_mean, self.running_var
        affine = self.weight, self.bias
        return batch_norm(x, *running, *affine, self.training, self.momentum, self.eps)


class Sequential(Module):
    """Parts that are called one after the other; their names are numbers."""

    def __init__(self, *parts: Module) -> None:
        for number, part in enumerate(parts):
            setattr(self, str(number), part)

    def forward(self, x: Tensor) -> Tensor:
        for _, part in list(self.children()):
            x = part(x)
        return x


class Residual(Module):
    """x + body(x): the sum is code between modules, as in real networks."""

    def __init__(self, body: Module, scale: float = 1.0) -> None:
        self.body = body
        self.scale = scale

    def forward(self, x: Tensor) -> Tensor:
        inner: Tensor = self.body(x)
        return x + (inner if self.scale == 1.0 else inner * self.scale)


@function("mse_loss", "input target")
def mean_squared_error(output: Tensor, target: Tensor) -> Tensor:
    """The mean of the squared differences."""
    return mean(power(output - target, 2.0))


class SGD:
    """Stochastic gradient descent: v = momentum · v + g, p = p - lr · v."""

    def __init__(
        self, parameters: Sequence[Parameter], lr: float = 0.1, momentum: float = 0.0
    ) -> None:
        self.parameters = list(parameters)
        self.lr = lr
        self.momentum = momentum
        self._velocity: dict[int, Any] = {}

    def step(self) -> None:
        """Move every parameter that has a gradient."""
        for position, parameter in enumerate(self.parameters):
            if parameter.gradient is None:
                continue
            velocity = self._velocity.get(position, 0.0) * self.momentum + parameter.gradient
            self._velocity[position] = velocity = rounded(velocity)
            parameter.assign(rounded(parameter.values - self.lr * velocity))

"""torch.nn's activations, by torch's arguments; `inplace` changes nothing but memory in torch."""

from __future__ import annotations

from typing import Any, ClassVar

import mindspore as ms  # noqa: TID253
from mindspore import nn, ops  # noqa: TID253

from isograd.runtime import algebra, making, pointwise, torch_functions
from isograd.runtime.torch_module import Module
from isograd.runtime.torch_settings import NEEDED, WithSettings


class Activation(WithSettings):
    """A function of one tensor, with `inplace` as the only setting."""

    arguments: ClassVar[dict[str, Any]] = {"inplace": False}
    function: Any = None

    def construct(self, input: Any) -> Any:
        """The function of the input."""
        return type(self).function(input)


class Plain(Activation):
    """A function of one tensor without settings."""

    arguments: ClassVar[dict[str, Any]] = {}


class ReLU(Activation, nn.ReLU):  # type: ignore[misc]
    """torch.nn.ReLU."""

    function = staticmethod(ops.relu)


class ReLU6(Activation, nn.ReLU6):  # type: ignore[misc]
    """torch.nn.ReLU6."""

    min_val, max_val = 0.0, 6.0
    function = staticmethod(torch_functions.relu6)


class SiLU(Activation, nn.SiLU):  # type: ignore[misc]
    """torch.nn.SiLU."""

    function = staticmethod(ops.silu)


class Hardswish(Activation, nn.HSwish):  # type: ignore[misc]
    """torch.nn.Hardswish."""

    function = staticmethod(ops.hardswish)


class Hardsigmoid(Activation, nn.HSigmoid):  # type: ignore[misc]
    """torch.nn.Hardsigmoid."""

    function = staticmethod(ops.hardsigmoid)


class SELU(Activation, nn.SeLU):  # type: ignore[misc]
    """torch.nn.SELU."""

    function = staticmethod(pointwise.selu)


class Mish(Activation, nn.Mish):  # type: ignore[misc]
    """torch.nn.Mish."""

    function = staticmethod(pointwise.mish)


class Sigmoid(Plain, nn.Sigmoid):  # type: ignore[misc]
    """torch.nn.Sigmoid."""

    function = staticmethod(ops.sigmoid)


class Tanh(Plain, nn.Tanh):  # type: ignore[misc]
    """torch.nn.Tanh."""

    function = staticmethod(ops.tanh)


class LogSigmoid(Plain, nn.LogSigmoid):  # type: ignore[misc]
    """torch.nn.LogSigmoid."""

    function = staticmethod(pointwise.log_sigmoid)


class Softsign(Plain, nn.Softsign):  # type: ignore[misc]
    """torch.nn.Softsign."""

    function = staticmethod(ops.softsign)


class Tanhshrink(Plain, nn.Tanhshrink):  # type: ignore[misc]
    """torch.nn.Tanhshrink."""

    function = staticmethod(ops.tanhshrink)


class Softmax2d(Plain, nn.Softmax2d):  # type: ignore[misc]
    """torch.nn.Softmax2d."""

    def construct(self, input: Any) -> Any:
        """Along the channels."""
        return pointwise.softmax(input, -3)


# ---- with settings


class GELU(WithSettings, nn.GELU):  # type: ignore[misc]
    """torch.nn.GELU."""

    arguments: ClassVar[dict[str, Any]] = {"approximate": "none"}

    def construct(self, input: Any) -> Any:
        """By the error function, or tanh's approximation."""
        return ops.gelu(input, approximate=self.approximate)


class ELU(WithSettings, nn.ELU):  # type: ignore[misc]
    """torch.nn.ELU."""

    arguments: ClassVar[dict[str, Any]] = {"alpha": 1.0, "inplace": False}

    def construct(self, input: Any) -> Any:
        """The input above 0, alpha * expm1 below."""
        return pointwise.elu(input, self.alpha)


class CELU(WithSettings, nn.CELU):  # type: ignore[misc]
    """torch.nn.CELU."""

    arguments: ClassVar[dict[str, Any]] = {"alpha": 1.0, "inplace": False}

    def construct(self, input: Any) -> Any:
        """The input above 0, alpha * expm1(x / alpha) below."""
        return ops.celu(input, self.alpha)


class LeakyReLU(WithSettings, nn.LeakyReLU):  # type: ignore[misc]
    """torch.nn.LeakyReLU."""

    arguments: ClassVar[dict[str, Any]] = {"negative_slope": 0.01, "inplace": False}

    def construct(self, input: Any) -> Any:
        """The input above 0, a share of it below."""
        return torch_functions.leaky_relu(input, self.negative_slope)


class RReLU(WithSettings, nn.RReLU):  # type: ignore[misc]
    """torch.nn.RReLU."""

    arguments: ClassVar[dict[str, Any]] = {"lower": 0.125, "upper": 1 / 3, "inplace": False}

    def construct(self, input: Any) -> Any:
        """Random slopes in training, their mean else."""
        return making.rrelu(input, self.lower, self.upper, self.training)


class PReLU(Module, nn.PReLU):  # type: ignore[misc]
    """torch.nn.PReLU."""

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = ms.Parameter(
            ops.full((num_parameters,), init, dtype=ms.float32 if dtype is None else dtype)
        )

    def construct(self, input: Any) -> Any:
        """The input above 0, a learnt share of it below."""
        return torch_functions.prelu(input, self.weight)


class Softplus(WithSettings):
    """torch.nn.Softplus."""

    arguments: ClassVar[dict[str, Any]] = {"beta": 1.0, "threshold": 20.0}

    def construct(self, input: Any) -> Any:
        """A smooth ReLU."""
        return pointwise.softplus(input, self.beta, self.threshold)


class Hardtanh(WithSettings, nn.Hardtanh):  # type: ignore[misc]
    """torch.nn.Hardtanh."""

    arguments: ClassVar[dict[str, Any]] = {"min_val": -1.0, "max_val": 1.0, "inplace": False}

    def construct(self, input: Any) -> Any:
        """Cut at both ends."""
        return torch_functions.hardtanh(input, self.min_val, self.max_val)


class Hardshrink(WithSettings, nn.HShrink):  # type: ignore[misc]
    """torch.nn.Hardshrink."""

    arguments: ClassVar[dict[str, Any]] = {"lambd": 0.5}

    def construct(self, input: Any) -> Any:
        """Zero near zero."""
        return torch_functions.hardshrink(input, self.lambd)


class Softshrink(WithSettings, nn.SoftShrink):  # type: ignore[misc]
    """torch.nn.Softshrink."""

    arguments: ClassVar[dict[str, Any]] = {"lambd": 0.5}

    def construct(self, input: Any) -> Any:
        """Nearer to zero by lambd."""
        return torch_functions.softshrink(input, self.lambd)


class Threshold(WithSettings, nn.Threshold):  # type: ignore[misc]
    """torch.nn.Threshold."""

    arguments: ClassVar[dict[str, Any]] = {"threshold": NEEDED, "value": NEEDED, "inplace": False}

    def construct(self, input: Any) -> Any:
        """A value at or below the threshold."""
        return ops.threshold(input, self.threshold, self.value)


class GLU(WithSettings, nn.GLU):  # type: ignore[misc]
    """torch.nn.GLU."""

    arguments: ClassVar[dict[str, Any]] = {"dim": -1}

    def construct(self, input: Any) -> Any:
        """One half times the sigmoid of the other."""
        return ops.glu(input, self.dim)


class Softmax(WithSettings, nn.Softmax):  # type: ignore[misc]
    """torch.nn.Softmax."""

    arguments: ClassVar[dict[str, Any]] = {"dim": None}

    def construct(self, input: Any) -> Any:
        """Shares along an axis."""
        return pointwise.softmax(input, self.dim)


class SoftmaxOfInfinities(Softmax):
    """torch.nn.Softmax of what may hold infinity."""

    def construct(self, input: Any) -> Any:
        """Shares along an axis; a row of -inf alone is NaN, and MindSpore's own spoils others."""
        return pointwise.softmax_of_infinities(input, self.dim)


class LogSoftmax(WithSettings, nn.LogSoftmax):  # type: ignore[misc]
    """torch.nn.LogSoftmax."""

    arguments: ClassVar[dict[str, Any]] = {"dim": None}

    def construct(self, input: Any) -> Any:
        """The logarithm of the shares along an axis."""
        dim = pointwise.usual_axis(input) if self.dim is None else self.dim
        return ops.log_softmax(input, dim)


class Softmin(WithSettings, nn.Softmin):  # type: ignore[misc]
    """torch.nn.Softmin."""

    arguments: ClassVar[dict[str, Any]] = {"dim": None}

    def construct(self, input: Any) -> Any:
        """The softmax of the negated input."""
        return pointwise.softmax(-input, self.dim)


class LocalResponseNorm(WithSettings):
    """torch.nn.LocalResponseNorm."""

    arguments: ClassVar[dict[str, Any]] = {
        "size": NEEDED, "alpha": 0.0001, "beta": 0.75, "k": 1.0,
    }  # fmt: skip

    def construct(self, input: Any) -> Any:
        """Divided by the size of the neighbouring channels."""
        return algebra.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

"""Layers with parameters: torch's arguments, names and initial values."""

from __future__ import annotations

import math
from typing import Any

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import nn, ops  # noqa: TID253

from isograd.knowledge.composites import layers, norms, shapes
from isograd.knowledge.composites.basics import many
from isograd.knowledge.composites.indexing import embedding, embedding_bag


def uniform_parameter(shape: Any, bound: float, name: str) -> Any:
    """A parameter that starts uniform between -bound and bound."""
    values = (ops.rand(*shape) * 2 - 1) * bound
    return ms.Parameter(values.astype(ms.float32), name=name)


def constant_parameter(shape: Any, value: float, name: str, learnt: bool = True) -> Any:
    """A parameter that starts as one number."""
    filled = ms.Tensor(np.full(shape, value, np.float32))
    return ms.Parameter(filled, name=name, requires_grad=learnt)


class Embedding(nn.Cell):  # type: ignore[misc]
    """torch.nn.Embedding: a normal start, the padding's row zero and unlearnt."""

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None
    ) -> None:
        super().__init__()
        self.padding_idx = padding_idx
        values = np.array(ops.randn(num_embeddings, embedding_dim).asnumpy())
        if padding_idx is not None:
            values[padding_idx] = 0
        self.weight = ms.Parameter(ms.Tensor(values), name="weight")

    def construct(self, input: Any) -> Any:
        """Rows of the table."""
        return embedding(input, self.weight, self.padding_idx)


class EmbeddingBag(nn.Cell):  # type: ignore[misc]
    """torch.nn.EmbeddingBag over lines of positions."""

    def __init__(self, num_embeddings: int, embedding_dim: int, mode: str = "mean") -> None:
        super().__init__()
        self.mode = mode
        self.weight = ms.Parameter(ops.randn(num_embeddings, embedding_dim), name="weight")

    def construct(self, input: Any) -> Any:
        """One row for each line of positions."""
        return embedding_bag(input, self.weight, self.mode)


class _Convolution(nn.Cell):  # type: ignore[misc]
    """What the convolutions share: kernel, bias and settings."""

    dimensions = 2
    transposed = False

    def _prepare(
        self, in_channels: int, out_channels: int, kernel_size: Any, groups: int, bias: bool
    ) -> None:
        kernel = many(kernel_size, self.dimensions)
        if self.transposed:
            shape = (in_channels, out_channels // groups, *kernel)
        else:
            shape = (out_channels, in_channels // groups, *kernel)
        bound = 1 / math.sqrt(shape[1] * math.prod(kernel))
        self.weight = uniform_parameter(shape, bound, "weight")
        self.bias = uniform_parameter((out_channels,), bound, "bias") if bias else None
        self.kernel_size, self.groups = kernel, groups


class _Conv(_Convolution):
    function: Any = None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
    ) -> None:
        super().__init__()
        self._prepare(in_channels, out_channels, kernel_size, groups, bias)
        self.stride, self.padding, self.dilation = stride, padding, dilation
        self.padding_mode = padding_mode

    def construct(self, input: Any) -> Any:
        """The convolution; padding of another mode goes before."""
        padding = self.padding
        if self.padding_mode != "zeros":
            edges = many(padding, self.dimensions)[::-1]
            both = [edge for edge in edges for _ in range(2)]
            input, padding = shapes.pad(input, both, self.padding_mode), 0
        run = type(self).function
        settings = (self.stride, padding, self.dilation, self.groups)
        return run(input, self.weight, self.bias, *settings)


class Conv1d(_Conv):
    """torch.nn.Conv1d."""

    dimensions, function = 1, staticmethod(layers.conv1d)


class Conv2d(_Conv):
    """torch.nn.Conv2d."""

    dimensions, function = 2, staticmethod(layers.conv2d)


class Conv3d(_Conv):
    """torch.nn.Conv3d."""

    dimensions, function = 3, staticmethod(layers.conv3d)


class _ConvTranspose(_Convolution):
    transposed = True
    function: Any = None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
    ) -> None:
        super().__init__()
        self._prepare(in_channels, out_channels, kernel_size, groups, bias)
        self.settings = (stride, padding, output_padding, groups, dilation)

    def construct(self, input: Any) -> Any:
        """The transposed convolution."""
        return type(self).function(input, self.weight, self.bias, *self.settings)


class ConvTranspose1d(_ConvTranspose):
    """torch.nn.ConvTranspose1d."""

    dimensions, function = 1, staticmethod(layers.conv_transpose1d)


class ConvTranspose2d(_ConvTranspose):
    """torch.nn.ConvTranspose2d."""

    dimensions, function = 2, staticmethod(layers.conv_transpose2d)


class ConvTranspose3d(_ConvTranspose):
    """torch.nn.ConvTranspose3d."""

    dimensions, function = 3, staticmethod(layers.conv_transpose3d)


class _Norm(nn.Cell):  # type: ignore[misc]
    """Weight and bias of a normalisation, or None for each."""

    def _affine(self, shape: Any, weight: bool, bias: bool) -> None:
        self.weight = constant_parameter(shape, 1.0, "weight") if weight else None
        self.bias = constant_parameter(shape, 0.0, "bias") if bias else None

    def _running(self, count: int, track: bool) -> None:
        self.running_mean = self.running_var = None
        if track:
            self.running_mean = constant_parameter((count,), 0.0, "running_mean", False)
            self.running_var = constant_parameter((count,), 1.0, "running_var", False)


class LayerNorm(_Norm):
    """torch.nn.LayerNorm."""

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
    ) -> None:
        super().__init__()
        single = isinstance(normalized_shape, int)
        self.normalized_shape = (normalized_shape,) if single else tuple(normalized_shape)
        self.eps = eps
        self._affine(self.normalized_shape, elementwise_affine, elementwise_affine and bias)

    def construct(self, input: Any) -> Any:
        """Normalised over the last axes."""
        return norms.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)


class RMSNorm(_Norm):
    """torch.nn.RMSNorm."""

    def __init__(
        self, normalized_shape: Any, eps: float | None = None, elementwise_affine: bool = True
    ) -> None:
        super().__init__()
        single = isinstance(normalized_shape, int)
        self.normalized_shape = (normalized_shape,) if single else tuple(normalized_shape)
        self.eps = eps
        self._affine(self.normalized_shape, elementwise_affine, False)

    def construct(self, input: Any) -> Any:
        """Divided by the root mean square of the last axes."""
        return norms.rms_norm(input, self.normalized_shape, self.weight, self.eps)


class BatchNorm(_Norm):
    """torch.nn.BatchNorm1d, 2d and 3d, with torch's momentum."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
    ) -> None:
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self._affine((num_features,), affine, affine)
        self._running(num_features, track_running_stats)

    def construct(self, input: Any) -> Any:
        """By the batch in training or without running statistics, else by those."""
        by_batch = self.training or self.running_mean is None
        statistics = (self.running_mean, self.running_var)
        scale = (self.weight, self.bias)
        return norms.batch_norm(input, *statistics, *scale, by_batch, self.momentum, self.eps)


class InstanceNorm(_Norm):
    """torch.nn.InstanceNorm1d, 2d and 3d."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
    ) -> None:
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self._affine((num_features,), affine, affine)
        self._running(num_features, track_running_stats)

    def construct(self, input: Any) -> Any:
        """By each image, or by running statistics in inference."""
        by_image = self.training or self.running_mean is None
        statistics = (self.running_mean, self.running_var)
        scale = (self.weight, self.bias)
        return norms.instance_norm(input, *statistics, *scale, by_image, self.momentum, self.eps)


# ---- one step of recurrent networks


class _RecurrentCell(nn.Cell):  # type: ignore[misc]
    gates = 1

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True) -> None:
        super().__init__()
        rows, bound = self.gates * hidden_size, 1 / math.sqrt(hidden_size)
        self.hidden_size = hidden_size
        self.weight_ih = uniform_parameter((rows, input_size), bound, "weight_ih")
        self.weight_hh = uniform_parameter((rows, hidden_size), bound, "weight_hh")
        self.bias_ih = uniform_parameter((rows,), bound, "bias_ih") if bias else None
        self.bias_hh = uniform_parameter((rows,), bound, "bias_hh") if bias else None

    def _start(self, input: Any) -> Any:
        return ops.zeros((*input.shape[:-1], self.hidden_size), dtype=input.dtype)

    def _both(self, input: Any, hidden: Any) -> tuple[Any, Any]:
        return (
            layers.linear(input, self.weight_ih, self.bias_ih),
            layers.linear(hidden, self.weight_hh, self.bias_hh),
        )


class LSTMCell(_RecurrentCell):
    """torch.nn.LSTMCell."""

    gates = 4

    def construct(self, input: Any, hx: Any = None) -> Any:
        """The next hidden state and memory."""
        hidden, memory = hx if hx is not None else (self._start(input), self._start(input))
        first, second = self._both(input, hidden)
        into, forget, new, out = ops.chunk(first + second, 4, -1)
        memory = ops.sigmoid(forget) * memory + ops.sigmoid(into) * ops.tanh(new)
        return ops.sigmoid(out) * ops.tanh(memory), memory


class GRUCell(_RecurrentCell):
    """torch.nn.GRUCell."""

    gates = 3

    def construct(self, input: Any, hx: Any = None) -> Any:
        """The next hidden state."""
        hidden = self._start(input) if hx is None else hx
        first, second = (ops.chunk(part, 3, -1) for part in self._both(input, hidden))
        reset = ops.sigmoid(first[0] + second[0])
        update = ops.sigmoid(first[1] + second[1])
        new = ops.tanh(first[2] + reset * second[2])
        return new + update * (hidden - new)


class RNNCell(_RecurrentCell):
    """torch.nn.RNNCell."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh"
    ) -> None:
        super().__init__(input_size, hidden_size, bias)
        self.nonlinearity = nonlinearity

    def construct(self, input: Any, hx: Any = None) -> Any:
        """The next hidden state."""
        first, second = self._both(input, self._start(input) if hx is None else hx)
        return (ops.tanh if self.nonlinearity == "tanh" else ops.relu)(first + second)

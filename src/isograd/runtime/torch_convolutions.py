"""torch.nn's convolutions: torch's arguments, attributes and initial values."""

from __future__ import annotations

import math
from typing import Any

import mindspore as ms  # noqa: TID253
from mindspore import nn, ops  # noqa: TID253

from isograd.runtime import layers, shapes
from isograd.runtime.basics import many
from isograd.runtime.starting import init_uniform
from isograd.runtime.torch_module import NamedLayer


def parameter(*shape: int, dtype: Any = None) -> Any:
    """A Parameter whose values are set later; of float32 where nothing else is said."""
    return ms.Parameter(ops.zeros(shape, dtype=ms.float32 if dtype is None else dtype))


class ConvNd(NamedLayer):
    """What the convolutions share; `transposed` ones hold their kernels the other way round."""

    dimensions = 2
    transposed = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        dilation: Any,
        groups: int,
        bias: bool,
        padding_mode: str,
        output_padding: Any = 0,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if in_channels % groups or out_channels % groups:
            raise ValueError("in_channels and out_channels must be divisible by groups")
        count = self.dimensions
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride = many(kernel_size, count), many(stride, count)
        self.padding = padding if isinstance(padding, str) else many(padding, count)
        self.dilation, self.padding_mode = many(dilation, count), padding_mode
        self.output_padding = many(output_padding, count)
        first, second = out_channels, in_channels
        if self.transposed:
            first, second = second, first
        self.weight = parameter(first, second // groups, *self.kernel_size, dtype=dtype)
        self.bias = parameter(out_channels, dtype=dtype) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform by the number of inputs of each unit."""
        inputs = self.weight.shape[1] * math.prod(self.kernel_size)
        if inputs:
            bound = 1 / math.sqrt(inputs)
            init_uniform(self.weight, -bound, bound)
            if self.bias is not None:
                init_uniform(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        """Channels and settings."""
        return (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}, padding={self.padding}, bias={self.bias is not None}"
        )


class _Conv(ConvNd):
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
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        settings = (stride, padding, dilation, groups, bias, padding_mode)
        super().__init__(in_channels, out_channels, kernel_size, *settings, dtype=dtype)

    def _conv_forward(self, input: Any, weight: Any, bias: Any) -> Any:
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            pairs = layers.edges_of(padding, self.kernel_size, self.dilation)
            both: list[int] = []
            for first, last in pairs[::-1]:  # the static graph takes one loop in a comprehension
                both = [*both, first, last]
            input, padding = shapes.pad(input, both, self.padding_mode), 0
        settings = (self.stride, padding, self.dilation, self.groups)
        return type(self).function(input, weight, bias, *settings)

    def construct(self, input: Any) -> Any:
        """The convolution; padding of another mode goes before."""
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_Conv, nn.Conv1d):  # type: ignore[misc]
    """torch.nn.Conv1d."""

    dimensions, function = 1, staticmethod(layers.conv1d)


class Conv2d(_Conv, nn.Conv2d):  # type: ignore[misc]
    """torch.nn.Conv2d."""

    dimensions, function = 2, staticmethod(layers.conv2d)


class Conv3d(_Conv, nn.Conv3d):  # type: ignore[misc]
    """torch.nn.Conv3d."""

    dimensions, function = 3, staticmethod(layers.conv3d)


class _ConvTranspose(ConvNd):
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
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        settings = (stride, padding, dilation, groups, bias, padding_mode, output_padding)
        super().__init__(in_channels, out_channels, kernel_size, *settings, dtype=dtype)

    def construct(self, input: Any, output_size: Any = None) -> Any:
        """The transposed convolution; of several sizes that it can have, the one that is given."""
        places = (self.stride, self.padding, self.kernel_size, self.dimensions, self.dilation)
        added = self._output_padding(input, output_size, *places)
        settings = (self.stride, self.padding, added, self.groups, self.dilation)
        return type(self).function(input, self.weight, self.bias, *settings)

    def _output_padding(
        self,
        input: Any,
        output_size: Any,
        stride: Any,
        padding: Any,
        kernel_size: Any,
        num_spatial_dims: int,
        dilation: Any = None,
    ) -> Any:
        """What is added to the smallest output for one of a size."""
        if output_size is None:
            return self.output_padding
        count = num_spatial_dims
        sizes = tuple(output_size)[-count:]
        settings = (stride, padding, 1 if dilation is None else dilation, kernel_size)
        stride, padding, dilation, kernel = (many(value, count) for value in settings)
        least = tuple(
            (n - 1) * stride[k] - 2 * padding[k] + dilation[k] * (kernel[k] - 1) + 1
            for k, n in enumerate(input.shape[-count:])
        )
        added = tuple(wanted - size for wanted, size in zip(sizes, least))
        if any(not 0 <= more < stride[k] for k, more in enumerate(added)):
            raise ValueError(f"no output of {sizes} can be made; the smallest is {least}")
        return added


class ConvTranspose1d(_ConvTranspose, nn.Conv1dTranspose):  # type: ignore[misc]
    """torch.nn.ConvTranspose1d."""

    dimensions, function = 1, staticmethod(layers.conv_transpose1d)


class ConvTranspose2d(_ConvTranspose, nn.Conv2dTranspose):  # type: ignore[misc]
    """torch.nn.ConvTranspose2d."""

    dimensions, function = 2, staticmethod(layers.conv_transpose2d)


class ConvTranspose3d(_ConvTranspose, nn.Conv3dTranspose):  # type: ignore[misc]
    """torch.nn.ConvTranspose3d."""

    dimensions, function = 3, staticmethod(layers.conv_transpose3d)

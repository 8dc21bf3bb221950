"""torch.nn's pools, pads and upsampling, by torch's arguments."""

from __future__ import annotations

from typing import Any, ClassVar

from mindspore import nn  # noqa: TID253

from isograd.runtime import fractional_pooling, pooling, resizing, shapes
from isograd.runtime.basics import many
from isograd.runtime.torch_settings import NEEDED, WithSettings


class MaxPool(WithSettings):
    """What the maximum pools share."""

    arguments: ClassVar[dict[str, Any]] = {
        "kernel_size": NEEDED, "stride": None, "padding": 0, "dilation": 1,
        "return_indices": False, "ceil_mode": False,
    }  # fmt: skip
    function: Any = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if getattr(self, "stride", None) is None:
            self.stride: Any = self.kernel_size

    def construct(self, input: Any) -> Any:
        """The greatest of each window."""
        settings = (self.kernel_size, self.stride, self.padding, self.dilation)
        return type(self).function(input, *settings, self.ceil_mode, self.return_indices)


class MaxPool1d(MaxPool, nn.MaxPool1d):  # type: ignore[misc]
    """torch.nn.MaxPool1d."""

    function = staticmethod(pooling.max_pool1d)


class MaxPool2d(MaxPool, nn.MaxPool2d):  # type: ignore[misc]
    """torch.nn.MaxPool2d."""

    function = staticmethod(pooling.max_pool2d)


class MaxPool3d(MaxPool, nn.MaxPool3d):  # type: ignore[misc]
    """torch.nn.MaxPool3d."""

    function = staticmethod(pooling.max_pool3d)


class AvgPool(WithSettings):
    """What the average pools share."""

    arguments: ClassVar[dict[str, Any]] = {
        "kernel_size": NEEDED, "stride": None, "padding": 0, "ceil_mode": False,
        "count_include_pad": True, "divisor_override": None,
    }  # fmt: skip
    function: Any = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if getattr(self, "stride", None) is None:
            self.stride: Any = self.kernel_size

    def construct(self, input: Any) -> Any:
        """The mean of each window."""
        settings = (self.kernel_size, self.stride, self.padding, self.ceil_mode)
        return type(self).function(input, *settings, self.count_include_pad, self.divisor_override)


class AvgPool1d(AvgPool, nn.AvgPool1d):  # type: ignore[misc]
    """torch.nn.AvgPool1d."""

    function = staticmethod(pooling.avg_pool1d)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("kernel_size", "stride", "padding"):  # torch holds one number for each axis
            size = getattr(self, name)
            setattr(self, name, (size,) if isinstance(size, int) else tuple(size))


class AvgPool2d(AvgPool, nn.AvgPool2d):  # type: ignore[misc]
    """torch.nn.AvgPool2d."""

    function = staticmethod(pooling.avg_pool2d)


class AvgPool3d(AvgPool, nn.AvgPool3d):  # type: ignore[misc]
    """torch.nn.AvgPool3d."""

    function = staticmethod(pooling.avg_pool3d)


class AdaptiveAvgPool(WithSettings):
    """What the adaptive average pools share."""

    arguments: ClassVar[dict[str, Any]] = {"output_size": NEEDED}
    function: Any = None

    def construct(self, input: Any) -> Any:
        """Means of so many stretches of each axis."""
        return type(self).function(input, self.output_size)


class AdaptiveAvgPool1d(AdaptiveAvgPool, nn.AdaptiveAvgPool1d):  # type: ignore[misc]
    """torch.nn.AdaptiveAvgPool1d."""

    function = staticmethod(pooling.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(AdaptiveAvgPool, nn.AdaptiveAvgPool2d):  # type: ignore[misc]
    """torch.nn.AdaptiveAvgPool2d."""

    function = staticmethod(pooling.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(AdaptiveAvgPool, nn.AdaptiveAvgPool3d):  # type: ignore[misc]
    """torch.nn.AdaptiveAvgPool3d."""

    function = staticmethod(pooling.adaptive_avg_pool3d)


class AdaptiveMaxPool(WithSettings):
    """What the adaptive maximum pools share."""

    arguments: ClassVar[dict[str, Any]] = {"output_size": NEEDED, "return_indices": False}
    function: Any = None

    def construct(self, input: Any) -> Any:
        """The greatest of so many stretches of each axis."""
        return type(self).function(input, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(AdaptiveMaxPool, nn.AdaptiveMaxPool1d):  # type: ignore[misc]
    """torch.nn.AdaptiveMaxPool1d."""

    function = staticmethod(pooling.adaptive_max_pool1d)


class AdaptiveMaxPool2d(AdaptiveMaxPool, nn.AdaptiveMaxPool2d):  # type: ignore[misc]
    """torch.nn.AdaptiveMaxPool2d."""

    function = staticmethod(pooling.adaptive_max_pool2d)


class AdaptiveMaxPool3d(AdaptiveMaxPool, nn.AdaptiveMaxPool3d):  # type: ignore[misc]
    """torch.nn.AdaptiveMaxPool3d."""

    function = staticmethod(pooling.adaptive_max_pool3d)


class LPPool1d(WithSettings, nn.LPPool1d):  # type: ignore[misc]
    """torch.nn.LPPool1d."""

    arguments: ClassVar[dict[str, Any]] = {
        "norm_type": NEEDED, "kernel_size": NEEDED, "stride": None, "ceil_mode": False,
    }  # fmt: skip

    def construct(self, input: Any) -> Any:
        """The norm of each window."""
        return pooling.lp_pool1d(input, *[getattr(self, name) for name in self.arguments])


class LPPool2d(WithSettings, nn.LPPool2d):  # type: ignore[misc]
    """torch.nn.LPPool2d."""

    arguments: ClassVar[dict[str, Any]] = LPPool1d.arguments

    def construct(self, input: Any) -> Any:
        """The norm of each window."""
        return pooling.lp_pool2d(input, *[getattr(self, name) for name in self.arguments])


class LPPool3d(WithSettings):
    """torch.nn.LPPool3d."""

    arguments: ClassVar[dict[str, Any]] = LPPool1d.arguments

    def construct(self, input: Any) -> Any:
        """The norm of each window."""
        return pooling.lp_pool3d(input, *[getattr(self, name) for name in self.arguments])


class FractionalMaxPool(WithSettings):
    """What the fractional maximum pools share."""

    arguments: ClassVar[dict[str, Any]] = {
        "kernel_size": NEEDED, "output_size": None, "output_ratio": None,
        "return_indices": False, "_random_samples": None,
    }  # fmt: skip
    dimensions = 2
    function: Any = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        samples = self._random_samples
        delattr(self, "_random_samples")
        self.register_buffer("_random_samples", samples)
        if (self.output_size is None) == (self.output_ratio is None):
            raise ValueError("either an output_size or an output_ratio has to be given")
        for name in ("kernel_size", "output_size", "output_ratio"):
            if getattr(self, name) is not None:
                setattr(self, name, many(getattr(self, name), self.dimensions))
        if self.output_ratio is not None and not all(0 < part < 1 for part in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {self.output_ratio})")

    def construct(self, input: Any) -> Any:
        """The greatest of windows that random numbers place."""
        return type(self).function(input, *[getattr(self, name) for name in self.arguments])


class FractionalMaxPool2d(FractionalMaxPool):
    """torch.nn.FractionalMaxPool2d."""

    function = staticmethod(fractional_pooling.fractional_max_pool2d)


class FractionalMaxPool3d(FractionalMaxPool):
    """torch.nn.FractionalMaxPool3d."""

    dimensions = 3
    function = staticmethod(fractional_pooling.fractional_max_pool3d)


# ---- pads


class AnyPad(WithSettings):
    """What the pads share; one number stands for all edges."""

    arguments: ClassVar[dict[str, Any]] = {"padding": NEEDED}
    dimensions, mode, value = 1, "constant", 0.0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        given: Any = getattr(self, "padding", 0)
        self.padding = many(given, 2 * self.dimensions)

    def construct(self, input: Any) -> Any:
        """The padded input."""
        return shapes.pad(input, self.padding, self.mode, self.value)


class ConstantPad1d(AnyPad, nn.ConstantPad1d):  # type: ignore[misc]
    """torch.nn.ConstantPad1d."""

    arguments: ClassVar[dict[str, Any]] = {"padding": NEEDED, "value": NEEDED}


class ConstantPad2d(AnyPad, nn.ConstantPad2d):  # type: ignore[misc]
    """torch.nn.ConstantPad2d."""

    arguments: ClassVar[dict[str, Any]] = {"padding": NEEDED, "value": NEEDED}
    dimensions = 2


class ConstantPad3d(AnyPad, nn.ConstantPad3d):  # type: ignore[misc]
    """torch.nn.ConstantPad3d."""

    arguments: ClassVar[dict[str, Any]] = {"padding": NEEDED, "value": NEEDED}
    dimensions = 3


class ZeroPad1d(AnyPad):
    """torch.nn.ZeroPad1d."""


class ZeroPad2d(AnyPad, nn.ZeroPad2d):  # type: ignore[misc]
    """torch.nn.ZeroPad2d."""

    dimensions = 2


class ZeroPad3d(AnyPad):
    """torch.nn.ZeroPad3d."""

    dimensions = 3


class ReflectionPad1d(AnyPad, nn.ReflectionPad1d):  # type: ignore[misc]
    """torch.nn.ReflectionPad1d."""

    mode = "reflect"


class ReflectionPad2d(AnyPad, nn.ReflectionPad2d):  # type: ignore[misc]
    """torch.nn.ReflectionPad2d."""

    dimensions, mode = 2, "reflect"


class ReflectionPad3d(AnyPad, nn.ReflectionPad3d):  # type: ignore[misc]
    """torch.nn.ReflectionPad3d."""

    dimensions, mode = 3, "reflect"


class ReplicationPad1d(AnyPad, nn.ReplicationPad1d):  # type: ignore[misc]
    """torch.nn.ReplicationPad1d."""

    mode = "replicate"


class ReplicationPad2d(AnyPad, nn.ReplicationPad2d):  # type: ignore[misc]
    """torch.nn.ReplicationPad2d."""

    dimensions, mode = 2, "replicate"


class ReplicationPad3d(AnyPad, nn.ReplicationPad3d):  # type: ignore[misc]
    """torch.nn.ReplicationPad3d."""

    dimensions, mode = 3, "replicate"


class CircularPad1d(AnyPad):
    """torch.nn.CircularPad1d."""

    mode = "circular"


class CircularPad2d(AnyPad):
    """torch.nn.CircularPad2d."""

    dimensions, mode = 2, "circular"


class CircularPad3d(AnyPad):
    """torch.nn.CircularPad3d."""

    dimensions, mode = 3, "circular"


# ---- upsampling


class Upsample(WithSettings, nn.Upsample):  # type: ignore[misc]
    """torch.nn.Upsample."""

    arguments: ClassVar[dict[str, Any]] = {
        "size": None, "scale_factor": None, "mode": "nearest", "align_corners": None,
        "recompute_scale_factor": None,
    }  # fmt: skip

    def construct(self, input: Any) -> Any:
        """The input in another size."""
        settings = (self.mode, self.align_corners, self.recompute_scale_factor)
        return resizing.interpolate(input, self.size, self.scale_factor, *settings)


class UpsamplingNearest2d(Upsample):
    """torch.nn.UpsamplingNearest2d."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor)


class UpsamplingBilinear2d(Upsample):
    """torch.nn.UpsamplingBilinear2d."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "bilinear", True)

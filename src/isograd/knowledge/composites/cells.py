"""Modules without parameters: a cell around the function of the same meaning."""

from __future__ import annotations

from typing import Any

from mindspore import nn  # noqa: TID253

from isograd.knowledge.composites import losses, making, pointwise, pooling, resizing, shapes
from isograd.knowledge.composites.algebra import local_response_norm
from isograd.knowledge.composites.reductions import pairwise_distance


class FunctionCell(nn.Cell):  # type: ignore[misc]
    """A function of tensors with settings that are fixed at construction."""

    function: Any = None

    def __init__(self, *settings: Any) -> None:
        super().__init__()
        self.settings = settings

    def construct(self, *inputs: Any) -> Any:
        """The function of the inputs and the settings."""
        return type(self).function(*inputs, *self.settings)


class SELU(FunctionCell):
    """torch.nn.SELU."""

    function = staticmethod(pointwise.selu)


class Softplus(FunctionCell):
    """torch.nn.Softplus: beta, threshold."""

    function = staticmethod(pointwise.softplus)


class Unfold(FunctionCell):
    """torch.nn.Unfold: kernel_size, dilation, padding, stride."""

    function = staticmethod(shapes.unfold)


class Fold(FunctionCell):
    """torch.nn.Fold: output_size, kernel_size, dilation, padding, stride."""

    function = staticmethod(shapes.fold)


class LocalResponseNorm(FunctionCell):
    """torch.nn.LocalResponseNorm: size, alpha, beta, k."""

    function = staticmethod(local_response_norm)


class Upsample(FunctionCell):
    """torch.nn.Upsample: size, scale_factor, mode, align_corners, recompute_scale_factor."""

    function = staticmethod(resizing.interpolate)


class PairwiseDistance(FunctionCell):
    """torch.nn.PairwiseDistance: p, eps, keepdim."""

    function = staticmethod(pairwise_distance)


class CosineSimilarity(FunctionCell):
    """torch.nn.CosineSimilarity: dim, eps."""

    function = staticmethod(losses.cosine_similarity)


class RReLU(nn.Cell):  # type: ignore[misc]
    """torch.nn.RReLU."""

    def __init__(self, lower: float = 0.125, upper: float = 1 / 3) -> None:
        super().__init__()
        self.lower, self.upper = lower, upper

    def construct(self, input: Any) -> Any:
        """Random slopes in training, their mean else."""
        return making.rrelu(input, self.lower, self.upper, self.training)


class AlphaDropout(nn.Cell):  # type: ignore[misc]
    """torch.nn.AlphaDropout."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = p

    def construct(self, input: Any) -> Any:
        """Drops in training only."""
        return making.alpha_dropout(input, self.p, self.training)


# ---- pads


class _Pad(nn.Cell):  # type: ignore[misc]
    """A pad of a mode; one number stands for all edges."""

    dimensions, mode = 1, "constant"

    def __init__(self, padding: Any, value: float = 0.0) -> None:
        super().__init__()
        single = isinstance(padding, int)
        self.padding = (padding,) * (2 * self.dimensions) if single else tuple(padding)
        self.value = value

    def construct(self, input: Any) -> Any:
        """The padded input."""
        return shapes.pad(input, self.padding, self.mode, self.value)


class ZeroPad1d(_Pad):
    """torch.nn.ZeroPad1d."""

    dimensions, mode = 1, "constant"


class ZeroPad3d(_Pad):
    """torch.nn.ZeroPad3d."""

    dimensions, mode = 3, "constant"


class CircularPad1d(_Pad):
    """torch.nn.CircularPad1d."""

    dimensions, mode = 1, "circular"


class CircularPad2d(_Pad):
    """torch.nn.CircularPad2d."""

    dimensions, mode = 2, "circular"


class CircularPad3d(_Pad):
    """torch.nn.CircularPad3d."""

    dimensions, mode = 3, "circular"


# ---- pools


class AvgPool1d(FunctionCell):
    """torch.nn.AvgPool1d: its arguments in torch's order."""

    function = staticmethod(pooling.avg_pool1d)


class AdaptiveAvgPool1d(FunctionCell):
    """torch.nn.AdaptiveAvgPool1d: its arguments in torch's order."""

    function = staticmethod(pooling.adaptive_avg_pool1d)


class AdaptiveMaxPool1d(FunctionCell):
    """torch.nn.AdaptiveMaxPool1d: its arguments in torch's order."""

    function = staticmethod(pooling.adaptive_max_pool1d)


class AvgPool2d(FunctionCell):
    """torch.nn.AvgPool2d: its arguments in torch's order."""

    function = staticmethod(pooling.avg_pool2d)


class AvgPool3d(FunctionCell):
    """torch.nn.AvgPool3d: its arguments in torch's order."""

    function = staticmethod(pooling.avg_pool3d)


class _MaxPool(FunctionCell):
    """Settings: kernel_size, stride, padding, dilation, return_indices, ceil_mode."""

    def construct(self, input: Any) -> Any:
        """The greatest of each window."""
        names = ("kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode")
        return type(self).function(input, **dict(zip(names, self.settings, strict=False)))


class MaxPool1d(_MaxPool):
    """torch.nn.MaxPool1d."""

    function = staticmethod(pooling.max_pool1d)


class MaxPool2d(_MaxPool):
    """torch.nn.MaxPool2d."""

    function = staticmethod(pooling.max_pool2d)


class MaxPool3d(_MaxPool):
    """torch.nn.MaxPool3d."""

    function = staticmethod(pooling.max_pool3d)


# ---- losses: the settings follow the inputs


class _Loss(nn.Cell):  # type: ignore[misc]
    """A loss whose settings are given by name."""

    function: Any = None
    names: tuple[str, ...] = ()

    def __init__(self, *settings: Any) -> None:
        super().__init__()
        self.settings = dict(zip(self.names, settings, strict=False))

    def construct(self, *inputs: Any) -> Any:
        """The loss of the inputs."""
        return type(self).function(*inputs, **self.settings)


class CrossEntropyLoss(_Loss):
    """torch.nn.CrossEntropyLoss."""

    function = staticmethod(losses.cross_entropy)
    names = ("weight", "ignore_index", "reduction", "label_smoothing")


class SmoothL1Loss(_Loss):
    """torch.nn.SmoothL1Loss."""

    function = staticmethod(losses.smooth_l1_loss)
    names = ("reduction", "beta")


class KLDivLoss(_Loss):
    """torch.nn.KLDivLoss."""

    function = staticmethod(losses.kl_div)
    names = ("reduction", "log_target")


class SoftMarginLoss(_Loss):
    """torch.nn.SoftMarginLoss."""

    function = staticmethod(losses.soft_margin_loss)
    names = ("reduction",)


class HingeEmbeddingLoss(_Loss):
    """torch.nn.HingeEmbeddingLoss."""

    function = staticmethod(losses.hinge_embedding_loss)
    names = ("margin", "reduction")


class TripletMarginLoss(_Loss):
    """torch.nn.TripletMarginLoss."""

    function = staticmethod(losses.triplet_margin_loss)
    names = ("margin", "p", "eps", "swap", "reduction")


class CTCLoss(_Loss):
    """torch.nn.CTCLoss."""

    function = staticmethod(losses.ctc_loss)
    names = ("blank", "reduction", "zero_infinity")


class MultiLabelMarginLoss(_Loss):
    """torch.nn.MultiLabelMarginLoss."""

    function = staticmethod(losses.multilabel_margin_loss)
    names = ("reduction",)


class Mish(FunctionCell):
    """torch.nn.Mish."""

    function = staticmethod(pointwise.mish)


class ELU(FunctionCell):
    """torch.nn.ELU: alpha."""

    function = staticmethod(pointwise.elu)

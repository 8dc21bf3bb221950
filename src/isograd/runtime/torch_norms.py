"""torch.nn's normalisations: torch's arguments, attributes and initial values."""

from __future__ import annotations

from typing import Any

import mindspore as ms  # noqa: TID253
from mindspore import nn, ops  # noqa: TID253

from isograd.runtime import norms
from isograd.runtime.starting import init_constant
from isograd.runtime.torch_convolutions import parameter
from isograd.runtime.torch_module import NamedLayer


class _Affine(NamedLayer):
    """Weight and bias, or None for each."""

    def _affine(self, shape: Any, weight: bool, bias: bool, dtype: Any = None) -> None:
        self.weight = parameter(*shape, dtype=dtype) if weight else None
        self.bias = parameter(*shape, dtype=dtype) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weight one, bias zero."""
        if self.weight is not None:
            init_constant(self.weight, 1.0)
        if self.bias is not None:
            init_constant(self.bias, 0.0)


class LayerNorm(_Affine, nn.LayerNorm):  # type: ignore[misc]
    """torch.nn.LayerNorm."""

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        single = isinstance(normalized_shape, int)
        self.normalized_shape = (normalized_shape,) if single else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        has_bias = elementwise_affine and bias
        self._affine(self.normalized_shape, elementwise_affine, has_bias, dtype)

    def construct(self, input: Any) -> Any:
        """Normalised over the last axes."""
        return norms.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)


class RMSNorm(_Affine):
    """torch.nn.RMSNorm."""

    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        single = isinstance(normalized_shape, int)
        self.normalized_shape = (normalized_shape,) if single else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self._affine(self.normalized_shape, elementwise_affine, False, dtype)

    def construct(self, input: Any) -> Any:
        """Divided by the root mean square of the last axes."""
        return norms.rms_norm(input, self.normalized_shape, self.weight, self.eps)


class GroupNorm(_Affine, nn.GroupNorm):  # type: ignore[misc]
    """torch.nn.GroupNorm."""

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise ValueError("num_channels must be divisible by num_groups")
        self.num_groups, self.num_channels = num_groups, num_channels
        self.eps, self.affine = eps, affine
        self._affine((num_channels,), affine, affine, dtype)

    def construct(self, input: Any) -> Any:
        """Normalised over groups of channels of each image."""
        return norms.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)


class TrackingNorm(_Affine):
    """Running statistics, or None for each; momentum None averages all batches alike."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self._affine((num_features,), affine, affine, dtype)
        self.running_mean = self.running_var = self.num_batches_tracked = None
        if track_running_stats:
            kind = ms.float32 if dtype is None else dtype
            zeros, ones = (make(num_features, dtype=kind) for make in (ops.zeros, ops.ones))
            self.running_mean = ms.Parameter(zeros, requires_grad=False)
            self.running_var = ms.Parameter(ones, requires_grad=False)
            if momentum is None:
                count = ms.Tensor(0, ms.int64)
                self.num_batches_tracked = ms.Parameter(count, requires_grad=False)

    def reset_running_stats(self) -> None:
        """Mean zero, variance one."""
        if self.running_mean is not None:
            init_constant(self.running_mean, 0.0)
            init_constant(self.running_var, 1.0)

    def _check_input_dim(self, input: Any, *_: Any) -> None:
        """Any number of axes; a subclass may raise."""

    def _share(self) -> Any:
        """How much of the batch's statistics the running ones take."""
        if self.momentum is not None or self.num_batches_tracked is None:
            return self.momentum
        ops.assign(self.num_batches_tracked, self.num_batches_tracked + 1)
        return 1 / self.num_batches_tracked.astype(ms.float32)

    def extra_repr(self) -> str:
        """Features and settings."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, track_running_stats={self.track_running_stats}"
        )


class AnyBatchNorm(TrackingNorm):
    """What the batch norms share."""

    def construct(self, input: Any) -> Any:
        """By the batch in training or without running statistics, else by those."""
        by_batch = self.training or self.running_mean is None
        share = self._share() if self.training else 0.0
        statistics = (self.running_mean, self.running_var)
        scale = (self.weight, self.bias)
        return norms.batch_norm(input, *statistics, *scale, by_batch, share, self.eps)


class BatchNorm1d(AnyBatchNorm, nn.BatchNorm1d):  # type: ignore[misc]
    """torch.nn.BatchNorm1d."""


class BatchNorm2d(AnyBatchNorm, nn.BatchNorm2d):  # type: ignore[misc]
    """torch.nn.BatchNorm2d."""


class BatchNorm3d(AnyBatchNorm, nn.BatchNorm3d):  # type: ignore[misc]
    """torch.nn.BatchNorm3d."""


class SyncBatchNorm(AnyBatchNorm):
    """torch.nn.SyncBatchNorm on one device, where it is a batch norm."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype=dtype)


class AnyInstanceNorm(TrackingNorm):
    """What the instance norms share; axes: of a batch, without which torch takes one image."""

    axes = 3

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype=dtype)

    def construct(self, input: Any) -> Any:
        """By each image, or by running statistics in inference."""
        by_image = self.training or not self.track_running_stats
        statistics = (self.running_mean, self.running_var)
        scale = (self.weight, self.bias)
        images = input if input.ndim >= self.axes else input.expand_dims(0)
        found = norms.instance_norm(images, *statistics, *scale, by_image, self.momentum, self.eps)
        return found if input.ndim >= self.axes else found.squeeze(0)


class InstanceNorm1d(AnyInstanceNorm, nn.InstanceNorm1d):  # type: ignore[misc]
    """torch.nn.InstanceNorm1d."""


class InstanceNorm2d(AnyInstanceNorm, nn.InstanceNorm2d):  # type: ignore[misc]
    """torch.nn.InstanceNorm2d."""

    axes = 4


class InstanceNorm3d(AnyInstanceNorm, nn.InstanceNorm3d):  # type: ignore[misc]
    """torch.nn.InstanceNorm3d."""

    axes = 5

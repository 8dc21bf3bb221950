"""What a gradient of a gradient cannot go through, and what may not be computed twice for one."""

from __future__ import annotations

#: Layers that change what they hold by each input.
COUNTING = frozenset(
    f"torch.nn.{name}"
    for name in """BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm LazyBatchNorm1d LazyBatchNorm2d
    LazyBatchNorm3d functional.batch_norm utils.spectral_norm
    utils.parametrizations.spectral_norm""".split()
)
#: Operators whose gradient has none in MindSpore 2.10, layers and functions.
WITHOUT_SECOND = frozenset(
    f"torch.nn.{name}"
    for name in """GroupNorm InstanceNorm1d InstanceNorm2d InstanceNorm3d MaxPool1d MaxPool2d
    MaxPool3d AvgPool1d AvgPool2d AvgPool3d AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d
    AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d Conv3d ConvTranspose3d PReLU ELU SELU
    Hardswish Hardsigmoid ReLU6 Upsample UpsamplingNearest2d UpsamplingBilinear2d LSTM
    functional.group_norm functional.instance_norm functional.max_pool1d functional.max_pool2d
    functional.max_pool3d functional.avg_pool1d functional.avg_pool2d functional.avg_pool3d
    functional.adaptive_avg_pool1d functional.adaptive_avg_pool2d functional.adaptive_avg_pool3d
    functional.adaptive_max_pool1d functional.adaptive_max_pool2d functional.adaptive_max_pool3d
    functional.conv3d functional.conv_transpose3d functional.prelu functional.elu functional.selu
    functional.hardswish functional.hardsigmoid functional.relu6 functional.interpolate
    functional.upsample""".split()
)

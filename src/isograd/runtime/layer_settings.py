"""Settings of MindSpore's own layers that are set after the layers are made."""

from __future__ import annotations

from typing import Any

from mindspore import nn, ops  # noqa: TID253

from isograd.runtime.basics import many


def set_norm_setting(layer: Any, name: str, value: Any) -> None:
    """`layer.eps = value` or `layer.momentum = value`.

    torch reads both at each call.  MindSpore's BatchNorm and LayerNorm read them when they are made
    (2.10, `nn/layer/normalization.py`), so what they compute with is made again.  A graph that is
    compiled by then keeps the old value.
    """
    if isinstance(layer, nn.LayerNorm) and hasattr(layer, "layer_norm"):
        axes = layer.begin_norm_axis, layer.begin_params_axis
        layer.epsilon, layer.layer_norm = value, ops.LayerNorm(*axes, float(value))
        return
    setattr(layer, name, value)
    if hasattr(layer, "bn_train"):
        if value is None:
            raise ValueError(f"a BatchNorm of MindSpore has no {name} that is None")
        given = (float(layer.eps), float(layer.momentum), layer.format)
        layer.bn_train, layer.bn_infer = ops.BatchNorm(True, *given), ops.BatchNorm(False, *given)


def set_conv_setting(layer: Any, name: str, value: Any) -> None:
    """`layer.stride = value`, and so for padding and dilation.

    torch reads them at each call.  MindSpore's Conv2d reads them when it is made (2.10,
    `nn/layer/conv.py`), so what it computes with is made again.  A graph that is compiled by then
    keeps the old value.
    """
    if not isinstance(layer, nn.Conv2d) or not hasattr(layer, "conv2d"):
        setattr(layer, name, value)
        return
    if isinstance(value, str):
        raise ValueError(f"a Conv2d of MindSpore takes numbers for {name}, not {value!r}")
    sizes = many(value, 2)
    setattr(layer, name, tuple(s for s in sizes for _ in "ab") if name == "padding" else sizes)
    layer.conv2d = ops.Conv2D(
        layer.out_channels,
        layer.kernel_size,
        pad_mode=layer.pad_mode,
        pad=layer.padding,
        stride=layer.stride,
        dilation=layer.dilation,
        group=layer.group,
        data_format=layer.data_format,
    )


def set_dropout_setting(layer: Any, name: str, value: float) -> None:
    """`layer.p = value`.

    torch reads it at each call.  MindSpore's Dropout reads it when it is made (2.10,
    `nn/layer/basic.py`), so what it computes with is made again.  A graph that is compiled by then
    keeps the old value.
    """
    setattr(layer, name, value)
    if isinstance(layer, nn.Dropout) and hasattr(layer, "dropout"):
        layer.dropout = nn.Dropout(p=value).dropout


def set_bias(layer: Any, name: str, value: Any) -> None:
    """`layer.bias = value`, of a layer that was made without a bias as well.

    torch adds whatever is there at each call.  MindSpore's Dense and convolutions decide it when
    they are made, and a Dense has nothing to add it with else (2.10, `nn/layer/basic.py`).
    """
    setattr(layer, name, value)
    if hasattr(layer, "has_bias"):
        layer.has_bias = value is not None
        if not hasattr(layer, "bias_add"):
            layer.bias_add = ops.BiasAdd()

"""Batch norms folded into the layer before them, as torch.nn.utils.fusion does for inference."""

from __future__ import annotations

import copy
from typing import Any

import mindspore as ms  # noqa: TID253
from mindspore import nn, ops  # noqa: TID253

from isograd.runtime.containers_of_cells import layer_attribute
from isograd.runtime.writing import write


def _learns(values: Any) -> bool:
    return isinstance(values, ms.Parameter) and bool(values.requires_grad)


def _parameter(values: Any, dtype: Any, learns: bool, name: str) -> Any:
    made = ms.Tensor(values.astype(dtype).asnumpy(), dtype)
    return ms.Parameter(made, name=name, requires_grad=learns)


def fuse_conv_bn_weights(
    conv_w: Any,
    conv_b: Any,
    bn_rm: Any,
    bn_rv: Any,
    bn_eps: float,
    bn_w: Any = None,
    bn_b: Any = None,
    transpose: bool = False,
) -> tuple[Any, Any]:
    """Weight and bias of a convolution that does what it and a norm behind it do."""
    scale = 1 / ops.sqrt(bn_rv + bn_eps)
    scale = scale if bn_w is None else bn_w * scale
    shape = [1] * conv_w.ndim
    shape[1 if transpose else 0] = -1
    moved = -bn_rm if conv_b is None else conv_b - bn_rm
    bias = moved * scale if bn_b is None else moved * scale + bn_b
    kind = conv_w.dtype if conv_b is None else conv_b.dtype
    weight = _parameter(conv_w * scale.reshape(shape), conv_w.dtype, _learns(conv_w), "weight")
    return weight, _parameter(bias, kind, _learns(conv_b), "bias")


def fuse_linear_bn_weights(
    linear_w: Any,
    linear_b: Any,
    bn_rm: Any,
    bn_rv: Any,
    bn_eps: float,
    bn_w: Any = None,
    bn_b: Any = None,
) -> tuple[Any, Any]:
    """Weight and bias of a linear layer that does what it and a norm behind it do."""
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def _fused(layer: Any, norm: Any, outputs: int, transpose: bool) -> Any:
    """A copy of a layer, MindSpore's own or torch-shaped, with a norm's part in its weights."""
    if layer.training or norm.training:
        raise AssertionError("Fusion only for eval!")
    names = ("running_mean", "running_var", "eps", "weight", "bias")
    mean, variance, eps, scale, shift = (layer_attribute(norm, name) for name in names)
    if mean is None or variance is None:
        raise AssertionError("the norm keeps no running statistics, so it cannot be fused")
    fused = copy.deepcopy(layer)
    bias = layer.bias if getattr(layer, "has_bias", True) else None
    bias = ops.zeros((outputs,), dtype=layer.weight.dtype) if bias is None else bias
    given = (layer.weight, bias, mean, variance, eps, scale, shift, transpose)
    weight, bias = fuse_conv_bn_weights(*given)
    write(fused.weight, weight)
    fused.bias = bias
    if hasattr(fused, "has_bias"):
        fused.has_bias = True
    if isinstance(layer, nn.Dense) and not hasattr(fused, "bias_add"):
        fused.bias_add = ops.BiasAdd()
    return fused


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A new convolution in the place of one and a batch norm, both in inference."""
    return _fused(conv, bn, bn.num_features, transpose)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A new linear layer in the place of one and a batch norm, both in inference."""
    outputs, features = layer_attribute(linear, "out_features"), bn.num_features
    if features not in (1, outputs):
        raise AssertionError(f"{outputs} outputs do not fit a norm of {features} features")
    return _fused(linear, bn, outputs, transpose=False)

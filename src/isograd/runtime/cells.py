"""MindSpore's own layers by torch's arguments: functions that a port holds in the file using them.

Where a class of torch is passed around (`norm_layer=nn.BatchNorm2d`), or an argument is not written
out, one of these is called.  What it makes is MindSpore's layer with MindSpore's names.  Each
was executed beside torch's class: output, gradient and the distribution of first values agree.
"""

from __future__ import annotations

import mindspore as ms  # noqa: TID253
from mindspore import nn, ops  # noqa: TID253
from mindspore.common import initializer  # noqa: TID253


def conv1d_cell(
    in_channels: int,
    out_channels: int,
    kernel_size: int,
    stride: int = 1,
    padding: int | str = 0,
    dilation: int = 1,
    groups: int = 1,
    bias: bool = True,
    padding_mode: str = "zeros",
    *,
    device: object = None,
    dtype: ms.Type | None = None,
) -> nn.Conv1d:
    """MindSpore's Conv1d by torch's arguments."""
    if padding_mode != "zeros":
        raise NotImplementedError(f"MindSpore's Conv1d pads with zeros, not {padding_mode!r}")
    mode = padding if isinstance(padding, str) else "pad"
    edge = 0 if isinstance(padding, str) else padding
    return nn.Conv1d(
        in_channels,
        out_channels,
        kernel_size,
        stride,
        mode,
        edge,
        dilation,
        groups,
        bias,
        dtype=dtype or ms.float32,
    )


def conv2d_cell(
    in_channels: int,
    out_channels: int,
    kernel_size: int | tuple[int, int],
    stride: int | tuple[int, int] = 1,
    padding: int | tuple[int, int] | str = 0,
    dilation: int | tuple[int, int] = 1,
    groups: int = 1,
    bias: bool = True,
    padding_mode: str = "zeros",
    *,
    device: object = None,
    dtype: ms.Type | None = None,
) -> nn.Conv2d:
    """MindSpore's Conv2d by torch's arguments: it pads each edge, torch each axis."""
    if padding_mode != "zeros":
        raise NotImplementedError(f"MindSpore's Conv2d pads with zeros, not {padding_mode!r}")
    kernel, step, hole = (
        size if isinstance(size, int) else tuple(size) for size in (kernel_size, stride, dilation)
    )
    mode = padding if isinstance(padding, str) else "pad"
    edges: int | tuple[int, ...] = 0
    if isinstance(padding, int):
        edges = padding
    elif not isinstance(padding, str):
        edges = tuple(edge for edge in padding for _ in range(2))
    return nn.Conv2d(
        in_channels,
        out_channels,
        kernel,
        step,
        mode,
        edges,
        hole,
        groups,
        bias,
        dtype=dtype or ms.float32,
    )


def conv3d_cell(
    in_channels: int,
    out_channels: int,
    kernel_size: int | tuple[int, int, int],
    stride: int | tuple[int, int, int] = 1,
    padding: int | tuple[int, int, int] | str = 0,
    dilation: int | tuple[int, int, int] = 1,
    groups: int = 1,
    bias: bool = True,
    padding_mode: str = "zeros",
    *,
    device: object = None,
    dtype: ms.Type | None = None,
) -> nn.Conv3d:
    """MindSpore's Conv3d by torch's arguments: it pads each edge, torch each axis."""
    if padding_mode != "zeros":
        raise NotImplementedError(f"MindSpore's Conv3d pads with zeros, not {padding_mode!r}")
    kernel, step, hole = (
        size if isinstance(size, int) else tuple(size) for size in (kernel_size, stride, dilation)
    )
    mode = padding if isinstance(padding, str) else "pad"
    edges: int | tuple[int, ...] = 0
    if isinstance(padding, int):
        edges = padding
    elif not isinstance(padding, str):
        edges = tuple(edge for edge in padding for _ in range(2))
    return nn.Conv3d(
        in_channels,
        out_channels,
        kernel,
        step,
        mode,
        edges,
        hole,
        groups,
        bias,
        dtype=dtype or ms.float32,
    )


def batch_norm1d_cell(
    num_features: int,
    eps: float = 1e-5,
    momentum: float = 0.1,
    affine: bool = True,
    track_running_stats: bool = True,
    *,
    device: object = None,
    dtype: ms.Type | None = None,
) -> nn.BatchNorm1d:
    """MindSpore's BatchNorm1d by torch's arguments: its momentum is the share that is kept.

    It starts in training, as torch's.
    """
    if not track_running_stats:
        raise NotImplementedError("MindSpore's BatchNorm1d has running statistics in any case")
    cell = nn.BatchNorm1d(num_features, eps, 1 - momentum, affine, dtype=dtype or ms.float32)
    cell.affine = affine  # without it gamma and beta are no parameters
    return cell.set_train()


def batch_norm2d_cell(
    num_features: int,
    eps: float = 1e-5,
    momentum: float = 0.1,
    affine: bool = True,
    track_running_stats: bool = True,
    *,
    device: object = None,
    dtype: ms.Type | None = None,
) -> nn.BatchNorm2d:
    """MindSpore's BatchNorm2d by torch's arguments: its momentum is the share that is kept.

    It starts in training, as torch's.
    """
    if not track_running_stats:
        raise NotImplementedError("MindSpore's BatchNorm2d has running statistics in any case")
    cell = nn.BatchNorm2d(num_features, eps, 1 - momentum, affine, dtype=dtype or ms.float32)
    cell.affine = affine  # without it gamma and beta are no parameters
    return cell.set_train()


def layer_norm_cell(
    normalized_shape: int | tuple[int, ...],
    eps: float = 1e-5,
    elementwise_affine: bool = True,
    bias: bool = True,
    *,
    device: object = None,
    dtype: ms.Type | None = None,
) -> nn.LayerNorm:
    """MindSpore's LayerNorm by torch's arguments: its epsilon is 1e-7, its axes are the last ones.

    MindSpore counts several axes from the front, which takes the input's rank.
    """
    if not (elementwise_affine and bias):
        raise NotImplementedError("MindSpore's LayerNorm has a weight and a bias in any case")
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)

    class LastAxesNorm(nn.LayerNorm):  # type: ignore[misc]  # MindSpore has no types
        def construct(self, x: ms.Tensor) -> ms.Tensor:
            first = x.ndim - len(self.normalized_shape)
            return ops.LayerNorm(first, first, self.epsilon)(x, self.gamma, self.beta)[0]

    kind = nn.LayerNorm if len(shape) == 1 else LastAxesNorm
    return kind(shape, epsilon=eps, dtype=dtype or ms.float32)


def group_norm_cell(
    num_groups: int,
    num_channels: int,
    eps: float = 1e-5,
    affine: bool = True,
    *,
    device: object = None,
    dtype: ms.Type | None = None,
) -> nn.GroupNorm:
    """MindSpore's GroupNorm by torch's arguments."""
    return nn.GroupNorm(num_groups, num_channels, eps, affine, dtype=dtype or ms.float32)


def dense_cell(
    in_features: int,
    out_features: int,
    bias: bool = True,
    *,
    device: object = None,
    dtype: ms.Type | None = None,
) -> nn.Dense:
    """MindSpore's Dense by torch's arguments."""
    return nn.Dense(in_features, out_features, has_bias=bias, dtype=dtype or ms.float32)


def embedding_cell(
    num_embeddings: int,
    embedding_dim: int,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
    *,
    device: object = None,
    dtype: ms.Type | None = None,
) -> nn.Embedding:
    """MindSpore's Embedding by torch's arguments, from a deviation of 1 as torch's."""
    if padding_idx is not None or max_norm is not None or scale_grad_by_freq:
        raise NotImplementedError(
            "MindSpore's Embedding teaches every row alike: no padding_idx, max_norm or "
            "scale_grad_by_freq"
        )
    shape = (num_embeddings, embedding_dim)  # beside a table, nn.Embedding passes over a dtype
    table = initializer.initializer(initializer.Normal(1.0), shape, dtype or ms.float32)
    return nn.Embedding(*shape, embedding_table=table)


def max_pool2d_cell(
    kernel_size: int | tuple[int, int],
    stride: int | tuple[int, int] | None = None,
    padding: int | tuple[int, int] = 0,
    dilation: int | tuple[int, int] = 1,
    return_indices: bool = False,
    ceil_mode: bool = False,
) -> nn.MaxPool2d:
    """MindSpore's MaxPool2d by torch's arguments: its steps are 1 unless given."""
    step = kernel_size if stride is None else stride
    return nn.MaxPool2d(kernel_size, step, "pad", padding, dilation, return_indices, ceil_mode)


def avg_pool2d_cell(
    kernel_size: int | tuple[int, int],
    stride: int | tuple[int, int] | None = None,
    padding: int | tuple[int, int] = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> nn.AvgPool2d:
    """MindSpore's AvgPool2d by torch's arguments: its steps are 1 unless given."""
    step = kernel_size if stride is None else stride
    return nn.AvgPool2d(
        kernel_size, step, "pad", padding, ceil_mode, count_include_pad, divisor_override
    )


def dropout_cell(p: float = 0.5, inplace: bool = False) -> nn.Dropout:
    """MindSpore's Dropout by torch's arguments; it starts in training, as torch's."""
    return nn.Dropout(p=p).set_train()


def identity_cell(*_: object, **__: object) -> nn.Identity:
    """MindSpore's Identity, which takes no arguments; torch's takes any."""
    return nn.Identity()


def gelu_cell(approximate: str = "none") -> nn.GELU:
    """MindSpore's GELU by torch's argument: it approximates unless told not to."""
    return nn.GELU(approximate=approximate == "tanh")


def ReLU_cell(inplace: bool = False) -> nn.ReLU:  # noqa: N802  # of the table of layers
    """MindSpore's ReLU by torch's argument."""
    return nn.ReLU()


def relu6_cell(inplace: bool = False) -> nn.ReLU6:
    """MindSpore's ReLU6 by torch's argument."""
    return nn.ReLU6()


def SiLU_cell(inplace: bool = False) -> nn.SiLU:  # noqa: N802  # of the table of layers
    """MindSpore's SiLU by torch's argument."""
    return nn.SiLU()


def hswish_cell(inplace: bool = False) -> nn.HSwish:
    """MindSpore's HSwish by the argument of torch's Hardswish."""
    return nn.HSwish()


def hsigmoid_cell(inplace: bool = False) -> nn.HSigmoid:
    """MindSpore's HSigmoid by the argument of torch's Hardsigmoid."""
    return nn.HSigmoid()


def prelu_cell(num_parameters: int = 1, init: float = 0.25) -> nn.PReLU:
    """MindSpore's PReLU by torch's arguments."""
    return nn.PReLU(num_parameters, init)


def glu_cell(dim: int = -1) -> nn.GLU:
    """MindSpore's GLU by torch's argument."""
    return nn.GLU(dim)


def celu_cell(alpha: float = 1.0, inplace: bool = False) -> nn.CELU:
    """MindSpore's CELU by torch's arguments."""
    return nn.CELU(float(alpha))


def threshold_cell(threshold: float, value: float, inplace: bool = False) -> nn.Threshold:
    """MindSpore's Threshold by torch's arguments."""
    return nn.Threshold(threshold, value)

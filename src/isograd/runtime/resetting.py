"""First weights that are drawn anew: MindSpore's layers have no `reset_parameters`."""

from __future__ import annotations

import math
from typing import Any

import mindspore as ms  # noqa: TID253
from mindspore import nn, ops  # noqa: TID253
from mindspore.common import initializer  # noqa: TID253

_RECURRENT = (nn.RNN, nn.LSTM, nn.GRU)
_WEIGHTED = (
    nn.Dense, nn.Conv1d, nn.Conv2d, nn.Conv3d,
    nn.Conv1dTranspose, nn.Conv2dTranspose, nn.Conv3dTranspose,
)  # fmt: skip
#: Of layers that scale what they normalize: what each Parameter starts as.
_OF_NORMS = {"gamma": "ones", "beta": "zeros", "moving_mean": "zeros", "moving_variance": "ones"}
_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.LayerNorm, nn.GroupNorm)


def can_reset(module: Any) -> bool:
    """Whether torch's module has `reset_parameters`."""
    kinds = (*_RECURRENT, *_WEIGHTED, *_NORMS, nn.Embedding)
    return hasattr(module, "reset_parameters") or isinstance(module, kinds)


def reset_parameters(module: Any) -> None:
    """Draw the first weights of a layer anew, as torch does, or call the module's own method.

    Raises AttributeError where torch's module has no such method.
    """
    if hasattr(module, "reset_parameters"):
        module.reset_parameters()
    elif isinstance(module, _NORMS):
        for name, kind in _OF_NORMS.items():
            _start(getattr(module, name, None), kind)
    elif isinstance(module, nn.Embedding):
        _start(module.embedding_table, initializer.Normal(1.0))
        if module.padding_idx is not None:
            module.embedding_table[module.padding_idx] = 0.0
    elif isinstance(module, _RECURRENT):
        for weight in module.get_parameters():
            _start(weight, initializer.Uniform(1 / math.sqrt(module.hidden_size)))
    elif isinstance(module, _WEIGHTED):
        bound = initializer.Uniform(math.sqrt(module.weight.shape[0] / module.weight.size))
        _start(module.weight, bound)
        _start(module.bias, bound)
    else:
        raise AttributeError(f"{type(module).__name__!r} object has no attribute reset_parameters")


def _start(weight: Any, kind: Any) -> None:
    if isinstance(weight, ms.Parameter):
        ops.assign(weight, initializer.initializer(kind, weight.shape, weight.dtype).init_data())

"""Methods of a value that may be a tensor, a network or anything else: decided when it is there."""

from __future__ import annotations

from typing import Any

import mindspore as ms  # noqa: TID253
from mindspore import nn, ops  # noqa: TID253

from isograd.runtime.making import to as tensor_to
from isograd.runtime.module_functions import module_to
from isograd.runtime.torch_extras import new


def moved(value: Any, *where: Any, **named: Any) -> Any:
    """`value.to(…)`: tensors and networks go to a dtype, if one is given."""
    if isinstance(value, ms.Tensor):
        given = {name: part for name, part in named.items() if name == "dtype"}
        return tensor_to(value, *where, **given)
    if isinstance(value, nn.Cell):
        return module_to(value, *where, *named.values())
    return value.to(*where, **named)


def on_accelerator(value: Any, *where: Any, **named: Any) -> Any:
    """`value.cuda()`: tensors and networks lie where MindSpore's context says."""
    is_placed = isinstance(value, (ms.Tensor, nn.Cell))
    return value if is_placed else value.cuda(*where, **named)


def on_host(value: Any) -> Any:
    """`value.cpu()`: tensors and networks lie where MindSpore's context says."""
    return value if isinstance(value, (ms.Tensor, nn.Cell)) else value.cpu()


def detached(value: Any) -> Any:
    """`value.detach()`."""
    return ops.stop_gradient(value) if isinstance(value, ms.Tensor) else value.detach()


def as_numpy(value: Any, **named: Any) -> Any:
    """`value.numpy()`."""
    return value.asnumpy() if isinstance(value, ms.Tensor) else value.numpy(**named)


def size_of(value: Any, dim: Any = None) -> Any:
    """`value.size()`, or the size of one axis."""
    if not isinstance(value, ms.Tensor):
        return value.size() if dim is None else value.size(dim)
    return value.shape if dim is None else value.shape[dim]


def new_of(value: Any, *data: Any) -> Any:
    """`value.new(…)`: of a tensor, one of its dtype."""
    return new(value, *data) if isinstance(value, ms.Tensor) else value.new(*data)

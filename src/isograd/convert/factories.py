"""Torch's functions that make tensors, with all their arguments; copied into ports that use them.

For calls whose arguments are not written out (`torch.zeros(4, **where)`); devices are MindSpore's
own to choose.
"""

from __future__ import annotations

from typing import Any

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import ops  # noqa: TID253


def _size(size: tuple[Any, ...]) -> tuple[int, ...]:
    several = len(size) == 1 and isinstance(size[0], (list, tuple))
    return tuple(size[0]) if several else tuple(size)


def torch_zeros(*size: Any, dtype: Any = None, device: Any = None, **_: Any) -> Any:
    """torch.zeros."""
    return ops.zeros(_size(size), dtype=dtype or ms.float32)


def torch_ones(*size: Any, dtype: Any = None, device: Any = None, **_: Any) -> Any:
    """torch.ones."""
    return ops.ones(_size(size), dtype=dtype or ms.float32)


def torch_empty(*size: Any, dtype: Any = None, device: Any = None, **_: Any) -> Any:
    """torch.empty: zeros here."""
    return ops.zeros(_size(size), dtype=dtype or ms.float32)


def torch_randn(*size: Any, dtype: Any = None, device: Any = None, **_: Any) -> Any:
    """torch.randn."""
    return ops.randn(*_size(size)).astype(dtype or ms.float32)


def torch_rand(*size: Any, dtype: Any = None, device: Any = None, **_: Any) -> Any:
    """torch.rand."""
    return ops.rand(*_size(size)).astype(dtype or ms.float32)


def torch_full(size: Any, fill_value: Any, dtype: Any = None, device: Any = None, **_: Any) -> Any:
    """torch.full: the dtype is that of the value."""
    if dtype is None:
        kinds = {bool: ms.bool_, int: ms.int64}
        dtype = kinds.get(type(fill_value), ms.float32)
    return ops.full(tuple(size), fill_value, dtype=dtype)


def torch_arange(*ends: Any, dtype: Any = None, device: Any = None, **_: Any) -> Any:
    """torch.arange: start, end, step; whole numbers stay whole."""
    if dtype is None:
        dtype = ms.int64 if all(isinstance(end, int) for end in ends) else ms.float32
    return ms.Tensor(
        np.arange(*(float(e) if isinstance(e, float) else int(e) for e in ends)), dtype
    )


def torch_linspace(
    start: Any, end: Any, steps: int, dtype: Any = None, device: Any = None, **_: Any
) -> Any:
    """torch.linspace."""
    return ops.linspace(float(start), float(end), int(steps)).astype(dtype or ms.float32)


def torch_tensor(data: Any, dtype: Any = None, device: Any = None, **_: Any) -> Any:
    """torch.tensor: numbers with a point are float32, whole ones int64."""
    if isinstance(data, ms.Tensor):
        return data.copy() if dtype is None else data.astype(dtype)
    values = np.asarray(data)
    if dtype is None:
        kinds = {"f": ms.float32, "i": ms.int64, "u": ms.int64, "b": ms.bool_}
        if isinstance(data, (np.ndarray, np.generic)):
            return ms.Tensor(values)
        dtype = kinds[values.dtype.kind]
    return ms.Tensor(values, dtype)


def torch_zeros_like(input: Any, dtype: Any = None, device: Any = None, **_: Any) -> Any:
    """torch.zeros_like."""
    return ops.zeros_like(input, dtype=dtype or input.dtype)


def torch_ones_like(input: Any, dtype: Any = None, device: Any = None, **_: Any) -> Any:
    """torch.ones_like."""
    return ops.ones_like(input, dtype=dtype or input.dtype)


def torch_eye(n: int, m: int | None = None, dtype: Any = None, device: Any = None, **_: Any) -> Any:
    """torch.eye."""
    return ops.eye(n, m or n, dtype or ms.float32)


def strided(x: Any, index: Any) -> Any:
    """`x[index]` with steps along several axes, whose gradient MindSpore's own slices crash in."""
    parts = list(index)
    known = all(part is None or part is ... or isinstance(part, (int, slice)) for part in parts)
    if not isinstance(x, ms.Tensor) or not known:
        return x[index]
    if ... in parts:
        at = parts.index(...)
        missing = x.ndim - sum(part is not None and part is not ... for part in parts)
        parts[at : at + 1] = [slice(None)] * missing
    plain, steps, source, axis = [], [], 0, 0
    for part in parts:
        is_stepped = isinstance(part, slice) and part.step not in (None, 1)
        if is_stepped:
            steps.append((axis, np.arange(*part.indices(x.shape[source]))))
        plain.append(slice(None) if is_stepped else part)
        source += part is not None
        axis += not isinstance(part, int)
    if any(part != slice(None) for part in plain):
        x = x[tuple(plain)]
    for axis, positions in steps:
        x = ops.gather(x, ms.Tensor(positions.astype(np.int32)), axis)
    return x

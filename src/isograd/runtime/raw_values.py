"""Tensors from bytes and files, and through functions of Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms  # noqa: TID253
import numpy as np

from isograd.runtime.basics import refuse_gradient


def frombuffer(
    buffer: Any, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Any:
    """A vector of the numbers in a buffer; a copy, where torch shares the memory."""
    kind = ms.dtype_to_nptype(dtype)
    return ms.Tensor(np.frombuffer(buffer, kind, count, offset).copy())


def from_file(filename: str, shared: bool | None = None, size: int = 0, dtype: Any = None) -> Any:
    """A vector of the first `size` numbers in a file, as a copy.

    Raises NotImplementedError where torch would write changes of the tensor into the file.
    """
    if shared:
        raise NotImplementedError(
            "MindSpore maps no file into memory: write by numpy.memmap what the file shall hold"
        )
    kind = ms.dtype_to_nptype(ms.float32 if dtype is None else dtype)
    found = np.fromfile(filename, kind, size)
    if len(found) < size:
        raise RuntimeError(f"{filename} holds {len(found)} numbers, not {size}")
    return ms.Tensor(found)


def applied(input: Any, callable: Callable[[Any], Any]) -> Any:
    """`Tensor.apply_`: a function of Python of each number; torch has no gradient of it either."""
    refuse_gradient("Tensor.apply_", input)
    values = input.asnumpy()
    made = [callable(value) for value in values.reshape(-1).tolist()]
    return ms.Tensor(np.array(made).astype(values.dtype).reshape(values.shape))


def mapped(input: Any, tensor: Any, callable: Callable[[Any, Any], Any]) -> Any:
    """`Tensor.map_`: a function of Python of each pair of numbers; torch has no gradient of it."""
    refuse_gradient("Tensor.map_", input)
    values = input.asnumpy()
    others = np.broadcast_to(tensor.asnumpy(), values.shape)
    pairs = zip(values.reshape(-1).tolist(), others.reshape(-1).tolist(), strict=True)
    made = [callable(one, other) for one, other in pairs]
    return ms.Tensor(np.array(made).astype(values.dtype).reshape(values.shape))

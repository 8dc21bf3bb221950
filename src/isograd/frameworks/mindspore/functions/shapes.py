"""Where elements stand: reshaping, joining, indexing; and reductions over axes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import ops

from isograd.runtime.basics import (
    axes_of,
    cast,
    mean_of,
    numbered,
    sum_of,
    take,
    take_flat,
)
from isograd.runtime.indexing import select
from isograd.runtime.pointwise import maximum, minimum
from isograd.runtime.reductions import amax, amin
from isograd.runtime.shapes import pad, roll


def cat(tensors: Sequence[Any], dim: int = 0) -> Any:
    return ops.cat(tuple(tensors), dim)


def stack(tensors: Sequence[Any], dim: int = 0) -> Any:
    return ops.stack(tuple(tensors), dim)


def reshape(input: Any, shape: Any) -> Any:
    return ops.reshape(input, tuple(shape) if isinstance(shape, (tuple, list)) else (shape,))


def flatten(input: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    first, last = start_dim % input.ndim, end_dim % input.ndim
    return ops.reshape(input, (*input.shape[:first], -1, *input.shape[last + 1 :]))


def transpose(input: Any, dim0: int, dim1: int) -> Any:
    return ops.swapaxes(input, dim0 % input.ndim, dim1 % input.ndim)


def permute(input: Any, dims: Sequence[int]) -> Any:
    return ops.transpose(input, axes_of(tuple(dims), input))


def unsqueeze(input: Any, dim: int) -> Any:
    return ops.expand_dims(input, dim)


def squeeze(input: Any, dim: Any = None) -> Any:
    axes = axes_of(dim, input)
    kept = [n for axis, n in enumerate(input.shape) if axis not in axes or n != 1]
    return ops.reshape(input, tuple(kept))


def expand(input: Any, shape: Sequence[int]) -> Any:
    own = (1,) * (len(shape) - input.ndim) + tuple(input.shape)
    wanted = tuple(n if given == -1 else given for given, n in zip(shape, own, strict=True))
    return ops.broadcast_to(ops.reshape(input, own), wanted)


def repeat(input: Any, shape: Sequence[int]) -> Any:
    own = (1,) * (len(shape) - input.ndim) + tuple(input.shape)
    return ops.tile(ops.reshape(input, own), tuple(shape))


def repeat_interleave(input: Any, repeats: int, dim: int | None = None) -> Any:
    if dim is None:
        input, dim = input.reshape(-1), 0
    return take(input, dim % input.ndim, np.repeat(np.arange(input.shape[dim]), repeats))


def flip(input: Any, dim: Any = None, dims: Any = None) -> Any:
    for axis in axes_of(dims if dim is None else dim, input):
        input = take(input, axis, np.arange(input.shape[axis])[::-1])
    return input


def split(input: Any, split_size_or_sections: Any, dim: int = 0) -> tuple[Any, ...]:
    (axis,) = axes_of(dim, input)
    size = input.shape[axis]
    given = split_size_or_sections
    if isinstance(given, int):
        edges = list(range(given, size, given))
    else:
        edges = list(np.cumsum(given))[:-1]
    return tuple(take(input, axis, p) for p in np.split(np.arange(size), edges))


def chunk(input: Any, chunks: int, dim: int = 0) -> tuple[Any, ...]:
    return split(input, -(-input.shape[dim] // chunks), dim)


def unbind(input: Any, dim: int = 0) -> tuple[Any, ...]:
    (axis,) = axes_of(dim, input)
    return tuple(select(input, axis, i) for i in range(input.shape[axis]))


def index_select(input: Any, dim: int, index: Any) -> Any:
    return ops.gather(input, index, dim % input.ndim)


def narrow(input: Any, dim: int, start: int, length: int) -> Any:
    return take(input, dim % input.ndim, np.arange(start, start + length))


def getitem(input: Any, index: Any) -> Any:
    """Any index of torch's: its numbers, slices (also as text), None, Ellipsis and tensors."""
    return take_flat(input, np.asarray(numbered(input)[_plain_index(index)]))


def _plain_index(index: Any) -> Any:
    if isinstance(index, ms.Tensor):
        return index.asnumpy()
    if isinstance(index, tuple):
        return tuple(_plain_index(part) for part in index)
    if isinstance(index, str):
        # Slices cross the pipe as text: "slice(0, None, 2)".
        if index == "Ellipsis":
            return Ellipsis
        return slice(*ast.literal_eval(index.removeprefix("slice")))
    return index


def _triangle(keep: Callable[..., Any]) -> Callable[..., Any]:
    def triangle(input: Any, diagonal: int = 0) -> Any:
        mask = keep(np.ones(tuple(input.shape[-2:]), bool), diagonal)
        return ops.where(ms.Tensor(mask), input, ops.zeros_like(input))

    return triangle


def arange(end: float, start: float = 0, step: float = 1, dtype: Any = None, **unused: Any) -> Any:
    values = ms.Tensor(np.arange(start, end, step))
    if dtype is not None:
        return cast(values, dtype)
    whole = all(isinstance(number, int) for number in (start, end, step))
    return values.astype(ms.int64 if whole else ms.float32)


def mean(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return mean_of(input, axes_of(dim, input), keepdim)


def total(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return sum_of(input, axes_of(dim, input), keepdim)


def var(
    input: Any,
    dim: Any = None,
    keepdim: bool = False,
    unbiased: bool = True,
    correction: float | None = None,
) -> Any:
    axes = axes_of(dim, input)
    count = int(np.prod([input.shape[axis] for axis in axes]))
    fewer = int(unbiased) if correction is None else correction
    centred = input - mean_of(input, axes)
    return sum_of(centred * centred, axes, keepdim) / (count - fewer)


def std(input: Any, *args: Any, **kwargs: Any) -> Any:
    return ops.sqrt(var(input, *args, **kwargs))


def maxima(input: Any, dim: Any = None, keepdim: bool = False, other: Any = None) -> Any:
    """`max`: of everything, or of an axis with the position of the first greatest element."""
    if isinstance(other, ms.Tensor) or isinstance(dim, ms.Tensor):
        return maximum(input, dim if other is None else other)
    if dim is None:
        return amax(input)
    (axis,) = axes_of(dim, input)
    positions = ops.expand_dims(ops.argmax(ops.stop_gradient(input), axis), axis)
    values = ops.gather_elements(input, axis, positions.astype(ms.int32))
    return (values, positions) if keepdim else (values.squeeze(axis), positions.squeeze(axis))


def minima(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    if isinstance(dim, ms.Tensor):
        return minimum(input, dim)
    found = maxima(-input, dim, keepdim)
    return -found if dim is None else (-found[0], found[1])


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "cat": cat,
    "stack": stack,
    "reshape": reshape,
    "view": reshape,
    "flatten": flatten,
    "transpose": transpose,
    "t": lambda input: ops.swapaxes(input, 0, 1),
    "permute": permute,
    "unsqueeze": unsqueeze,
    "squeeze": squeeze,
    "expand": expand,
    "repeat": repeat,
    "repeat_interleave": repeat_interleave,
    "flip": flip,
    "roll": roll,
    "split": split,
    "chunk": chunk,
    "unbind": unbind,
    "select": select,
    "index_select": index_select,
    "narrow": narrow,
    "getitem": getitem,
    "pad": pad,
    "triu": _triangle(np.triu),
    "tril": _triangle(np.tril),
    "arange": arange,
    "mean": mean,
    "sum": total,
    "var": var,
    "std": std,
    "max": maxima,
    "min": minima,
    "amax": amax,
    "amin": amin,
    "cumsum": lambda input, dim: ops.cumsum(input, dim % input.ndim),
}

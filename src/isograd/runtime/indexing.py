"""Gathering, scattering, sorting, counting."""

from __future__ import annotations

from typing import Any

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import ops  # noqa: TID253

from isograd.runtime.basics import take
from isograd.runtime.writing import position, taken


def select(input: Any, dim: int, index: int) -> Any:
    """One slice of an axis; the axis goes."""
    axis = dim % input.ndim
    return take(input, axis, np.array([index % input.shape[axis]])).squeeze(axis)


def at(owner: Any, key: Any) -> Any:
    """`owner[key]`; a tensor of MindSpore takes no arrays, ranges or numbers of numpy.

    A mask of several axes it takes for one of a single axis where slices follow, and a graph takes
    none behind slices: it becomes the positions where it is true.  A number beside
    positions it takes for positions too, as numpy does: their axis goes to the front.  What arrays
    take is a copy: `taken` says why.
    """
    if not isinstance(owner, ms.Tensor):
        return owner[key]
    if not isinstance(key, tuple):
        if _is_rest(key):
            return taken(owner[(slice(None),) * owner.ndim])
        return taken(owner[from_front(position(key), owner)])
    given: tuple[Any, ...] = ()
    numbers, others = 0, 0
    for part in key:
        place = position(part)
        if _is_rest(place):
            given = (*given, *[slice(None)] * (owner.ndim - _axes_of_all(key)))
        elif isinstance(place, ms.Tensor) and place.dtype == ms.bool_ and place.ndim > 0:
            given = (*given, *nonzero(place, True))
            others += 1
        else:
            given = (*given, place)
            numbers += _is_number(place)
            others += _takes_positions(place)
    if numbers > 1 and numbers == len(given):
        for part in given:  # the gradient takes no single position of several axes
            owner = owner[part]
        return taken(owner)
    if numbers == 0 or others == 0:
        return taken(owner[given])
    first: tuple[Any, ...] = ()
    second: tuple[Any, ...] = ()
    for part in given:
        if _is_number(part):
            first = (*first, part)
        else:
            first, second = (*first, *[slice(None)] * _axes_of(part)), (*second, part)
    return taken(owner[first][second])


def from_front(index: Any, owner: Any) -> Any:
    """Positions along the first axis, the negative ones counted from the front as well.

    Of negative ones the gradient of MindSpore's `Gather`, which `x[index]` is outside of a graph,
    is lost (2.10).  What is no tensor of positions stays as it is.
    """
    if not isinstance(index, ms.Tensor) or owner.ndim == 0:
        return index
    if index.dtype in (ms.int8, ms.int16):
        index = index.astype(ms.int64)
    if index.dtype not in (ms.int32, ms.int64):
        return index
    return ops.where(index < 0, index + owner.shape[0], index)


def _axes_of_all(key: tuple[Any, ...]) -> int:
    """How many axes an index with `...` names."""
    found = 0
    for part in key:
        found += _axes_of(position(part))
    return found


def _is_rest(part: Any) -> bool:
    """Whether a part of an index is `...`; the static graph refuses `part is ...`."""
    return isinstance(part, type(...))


def _is_number(part: Any) -> bool:
    """Whether a part of an index takes one position, and its axis away."""
    if isinstance(part, ms.Tensor):
        return bool(part.ndim == 0 and part.dtype != ms.bool_)
    return isinstance(part, int) and not isinstance(part, bool)


def _takes_positions(part: Any) -> bool:
    """Whether a part of an index takes several positions, or those of a mask."""
    return isinstance(part, (list, tuple)) or (isinstance(part, ms.Tensor) and part.ndim > 0)


def _axes_of(part: Any) -> int:
    """How many axes a part of an index stands for; `...` is counted by what is left."""
    if part is None or _is_rest(part):
        return 0
    return part.ndim if isinstance(part, ms.Tensor) and part.dtype == ms.bool_ else 1


def take_elements(input: Any, index: Any) -> Any:
    """`torch.take`: the elements at positions of the flattened tensor."""
    flat = input.reshape(-1)
    return ops.gather(flat, from_front(index.reshape(-1), flat), 0).reshape(index.shape)


def take_along_dim(input: Any, indices: Any, dim: int | None = None) -> Any:
    """The elements at an axis' positions, or at positions of the flattened tensor.

    Along the other axes torch broadcasts both; `ops.gather_elements` takes a part of the tensor.
    """
    if dim is None:
        return take_elements(input, indices.reshape(-1))
    axis = dim % input.ndim
    sizes = [max(input.shape[at], indices.shape[at]) for at in range(input.ndim)]
    shape = [*sizes[:axis], input.shape[axis], *sizes[axis + 1 :]]
    places = [*sizes[:axis], indices.shape[axis], *sizes[axis + 1 :]]
    held, taken = ops.broadcast_to(input, tuple(shape)), ops.broadcast_to(indices, tuple(places))
    return ops.gather_elements(held, axis, taken)


def nonzero(input: Any, as_tuple: bool = False) -> Any:
    """The positions of what is not zero, a row each, or a tensor for each axis."""
    if input.ndim == 0:
        found = ops.nonzero(input.reshape(1))
        return (found[:, 0],) if as_tuple else found[:, :0]
    found = ops.nonzero(input)
    if not as_tuple:
        return found
    return tuple(found[:, axis] for axis in range(input.ndim))


def where(condition: Any, input: Any = None, other: Any = None) -> Any:
    """One or the other; of a condition alone its positions, a tensor for each axis."""
    return nonzero(condition, True) if input is None else ops.where(condition, input, other)


def count_nonzero(input: Any, dim: Any = None) -> Any:
    """How many elements are not zero, as int64."""
    return (input != 0).astype(ms.int64).sum(dim)


def scatter(input: Any, dim: int, index: Any, src: Any, reduce: str | None = None) -> Any:
    """A new tensor with the source's elements at an axis' positions."""
    if not isinstance(src, ms.Tensor):
        src = ops.full(tuple(index.shape), src, dtype=input.dtype)
    if reduce == "add":
        return scatter_add(input, dim, index, src)
    if reduce == "multiply":
        return scatter_reduce(input, dim, index, src, "prod")
    if reduce is not None:
        raise ValueError(f"reduce argument must be either add or multiply, not {reduce}")
    src = src[tuple(slice(0, n) for n in index.shape)] if src.shape != index.shape else src
    return ops.tensor_scatter_elements(input, index, src, dim, "none")


def scatter_add(input: Any, dim: int, index: Any, src: Any) -> Any:
    """The source's elements added at an axis' positions; equal positions add up.

    By flat positions: on a CPU threads of `ops.tensor_scatter_elements` add to one position at the
    same time, and now and then one of them is lost (2.10).
    """
    if not index.size:
        return input
    src = src[tuple(slice(0, n) for n in index.shape)] if src.shape != index.shape else src
    strides = np.cumprod((1, *input.shape[:0:-1]))[::-1] if input.ndim else np.ones(1, int)
    axis = dim % max(input.ndim, 1)
    rest = np.zeros(tuple(index.shape), np.int64)
    for other, length in enumerate(index.shape):
        if other != axis:
            shape = [-1 if place == other else 1 for place in range(index.ndim)]
            rest += np.arange(length).reshape(shape) * int(strides[other])
    places = index.astype(ms.int64) * int(strides[axis]) + ms.Tensor(rest)
    flat = ops.tensor_scatter_add(
        input.reshape(-1), places.reshape(-1, 1), src.astype(input.dtype).reshape(-1)
    )
    return flat.reshape(input.shape)


def scatter_reduce(
    input: Any, dim: int, index: Any, src: Any, reduce: str, include_self: bool = True
) -> Any:
    """The source's elements, gathered per target by sum, product, mean, greatest or least."""
    if not input.ndim:
        row, places, source = input.reshape(1), index.reshape(-1), src.reshape(-1)
        return scatter_reduce(row, 0, places, source, reduce, include_self).reshape(())
    axis = dim % input.ndim
    for other, length in enumerate(index.shape):
        if other != axis and length < input.shape[other]:
            head, tail = ops.split(input, [length, input.shape[other] - length], other)
            found = scatter_reduce(head, dim, index, src, reduce, include_self)
            return ops.cat([found, tail], other)
    src = src[tuple(slice(0, n) for n in index.shape)] if src.shape != index.shape else src
    moved = ops.movedim(input, axis, -1)
    target = index if index.ndim == 1 else ops.movedim(index, axis, -1)
    source = src if src.ndim == 1 else ops.movedim(src, axis, -1)
    # hit[..., k, j]: element k of the source goes to j.
    places = ms.Tensor(np.arange(moved.shape[-1]))
    hit = target.expand_dims(-1) == places
    values = source.expand_dims(-1)
    neutral = _neutral(reduce, input)
    given = ops.where(hit, values, ops.full_like(values, neutral))
    count = hit.astype(input.dtype).sum(-2)
    if reduce in ("sum", "mean"):
        total = given.sum(-2) + (moved if include_self else ops.zeros_like(moved))
        if reduce == "mean":
            count_of_all = ops.clamp(count + (1 if include_self else 0), 1)
            is_whole = not ops.is_floating_point(input)
            total = ops.floor_div(total, count_of_all) if is_whole else total / count_of_all
        found = total
    elif reduce == "prod":
        found = given.prod(-2) * (moved if include_self else 1)
    else:
        found = given.max(axis=-2) if reduce == "amax" else given.min(axis=-2)
        if include_self:
            found = (ops.maximum if reduce == "amax" else ops.minimum)(found, moved)
    found = ops.where(count > 0, found, moved)
    return ops.movedim(found, -1, axis)


def _neutral(reduce: str, input: Any) -> Any:
    """What changes nothing that it is reduced with."""
    if reduce in ("sum", "mean", "prod"):
        return float(reduce == "prod")
    sign = 1 if reduce == "amin" else -1
    if ops.is_floating_point(input):
        return sign * np.inf
    limits = np.iinfo(ms.dtype_to_nptype(input.dtype))
    return int(limits.max if sign > 0 else limits.min)


def _rows(input: Any, dim: int, index: Any) -> Any:
    """A matrix of shape (size of the axis, positions) with a one where a position stands."""
    places = ms.Tensor(np.arange(input.shape[dim % input.ndim]))
    return places.expand_dims(1) == index.expand_dims(0)


def index_add(input: Any, dim: int, index: Any, source: Any, alpha: Any = 1) -> Any:
    """The source's slices added at positions of an axis; equal positions add up."""
    axis = dim % input.ndim
    rows = _rows(input, dim, index).astype(source.dtype)
    moved = ops.movedim(source, axis, 0)
    added = ops.matmul(rows, moved.reshape(moved.shape[0], -1)).reshape(-1, *moved.shape[1:])
    return input + alpha * ops.movedim(added, 0, axis).astype(input.dtype)


def _kept(input: Any, dim: int, index: Any) -> Any:
    """True where no position stands, in a shape that broadcasts."""
    axis = dim % input.ndim
    hit = _rows(input, dim, index).any(1)
    return ops.logical_not(hit).reshape([-1 if a == axis else 1 for a in range(input.ndim)])


def index_copy(input: Any, dim: int, index: Any, source: Any) -> Any:
    """The source's slices at positions of an axis."""
    kept = _kept(input, dim, index)
    return index_add(ops.where(kept, input, ops.zeros_like(input)), dim, index, source)


def index_fill(input: Any, dim: int, index: Any, value: Any) -> Any:
    """One number at positions of an axis; negative ones count from its end."""
    kept = _kept(input, dim, ops.where(index < 0, index + input.shape[dim], index))
    return ops.where(kept, input, ops.full_like(input, value))


def index_put(input: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """Values, broadcast, at positions of the leading axes; a mask stands for where it is true.

    By flat positions: MindSpore's own wants values of one axis, of the positions' number.
    """
    if any(index is None for index in indices):
        return input.index_put(indices, values, accumulate)
    given: list[Any] = []
    for index in indices:
        is_mask = index.dtype == ms.bool_
        given += ops.unbind(ops.nonzero(index), 1) if is_mask else [index.astype(ms.int64)]
    shape = np.broadcast_shapes(*(tuple(index.shape) for index in given))
    places: Any = 0
    for index, length in zip(given, input.shape):
        places = places * length + ops.where(index < 0, index + length, index)
    places = ops.broadcast_to(places, shape).reshape(-1, 1)
    if not places.size:
        return input
    rest = tuple(input.shape[len(given) :])
    source = ops.broadcast_to(values.astype(input.dtype), (*shape, *rest)).reshape(-1, *rest)
    written = ops.tensor_scatter_add if accumulate else ops.tensor_scatter_update
    return written(input.reshape(-1, *rest), places, source).reshape(input.shape)


def masked_fill(input: Any, mask: Any, value: Any) -> Any:
    """The value where the mask is true; MindSpore's kernel wants it in the tensor's dtype."""
    if isinstance(value, ms.Tensor):
        return ops.masked_fill(input, mask, value.astype(input.dtype))
    return ops.masked_fill(input, mask, ms.Tensor(value, input.dtype))


def masked_scatter(input: Any, mask: Any, source: Any) -> Any:
    """The source's elements, in order, where the mask is true."""
    if mask.ndim > input.ndim:
        input = ops.broadcast_to(input, mask.shape)
    mask = ops.broadcast_to(mask, input.shape)
    order = ops.cumsum(mask.reshape(-1).astype(ms.int32), 0) - 1
    positions = ops.clamp(order, 0, source.size - 1)
    chosen = ops.gather(source.reshape(-1), positions, 0).reshape(input.shape)
    return ops.where(mask, chosen, input)


def bincount(input: Any, weights: Any = None, minlength: int = 0) -> Any:
    """How often each number from 0 on occurs."""
    own = None if weights is None else weights.asnumpy()
    found = np.bincount(input.asnumpy(), own, minlength)
    # Weights of any dtype but float32 are added up as float64, as in torch.
    is_single = own is not None and own.dtype == np.float32
    return ms.Tensor(found.astype(np.float32) if is_single else found)


def histc(input: Any, bins: int = 100, min: float = 0, max: float = 0) -> Any:
    """How many elements each of some equal bins holds; the data's range where none is given.

    Counted by operators: a graph in which numpy runs loses the gradients of all that it returns.
    """
    values = ops.stop_gradient(input).reshape(-1)
    low, high = ops.full((), min, dtype=values.dtype), ops.full((), max, dtype=values.dtype)
    if min == max and values.shape[0]:
        low, high = values.min(), values.max()
        width = (low == high).astype(values.dtype)
        low, high = low - width, high + width
    is_inside = ops.logical_and(values >= low, values <= high)
    share = ops.where(is_inside, (values - low) * bins / (high - low), ops.zeros_like(values))
    places = ops.minimum(ops.floor(share).astype(ms.int64), bins - 1)
    empty = ops.zeros((bins,), values.dtype)
    return ops.tensor_scatter_add(empty, places.reshape(-1, 1), is_inside.astype(values.dtype))


def searchsorted(
    sorted_sequence: Any,
    input: Any,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
) -> Any:
    """Where elements would go into a sorted vector, or each line of them into its own."""
    is_right = right if side is None else side == "right"
    values = input
    if not isinstance(input, ms.Tensor):
        values = ops.full((), input, dtype=sorted_sequence.dtype)
    wide = ms.float64 if ops.is_floating_point(sorted_sequence) else ms.int64
    found = ops.searchsorted(sorted_sequence.astype(wide), values.astype(wide), right=is_right)
    return found.astype(ms.int32 if out_int32 else ms.int64)


def isin(elements: Any, test_elements: Any, invert: bool = False) -> Any:
    """Which elements occur among others."""
    if not isinstance(elements, ms.Tensor):
        elements = ops.full((), elements, dtype=test_elements.dtype)
    if not isinstance(test_elements, ms.Tensor):
        test_elements = ops.full((1,), test_elements, dtype=elements.dtype)
    kind = ms.float64 if ops.is_floating_point(elements) else ms.int64
    wanted, others = elements.astype(kind), test_elements.reshape(-1).astype(kind)
    if others.shape[0] == 0:
        return ops.full(elements.shape, bool(invert), dtype=ms.bool_)
    others = ops.sort(others)[0]
    places = ops.minimum(ops.searchsorted(others, wanted), others.shape[0] - 1)
    nearest = ops.gather(others, places, 0)
    return nearest != wanted if invert else nearest == wanted


def unravel_index(indices: Any, shape: Any) -> tuple[Any, ...]:
    """Flat positions as one tensor for each axis."""
    return tuple(ms.Tensor(part) for part in np.unravel_index(indices.asnumpy(), tuple(shape)))


def equal(input: Any, other: Any) -> bool:
    """Whether two tensors have the same shape and elements."""
    return tuple(input.shape) == tuple(other.shape) and bool((input == other).all())

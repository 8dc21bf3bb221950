"""Which ATen operators round nothing, in every implementation.

Copies, selections and comparisons, and arithmetic on integers: what programs compare with
(masks, flags, counts) must be the same in every noisy run as in the plain one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from isograd.tensors import UNIT_ROUNDOFF

#: ATen operators whose results are exact: copies, views, selections and comparisons.
_EXACT = frozenset(
    """abs adaptive_max_pool2d adaptive_max_pool3d alias amax amin aminmax any all arange argmax
    argmin argsort as_strided bitwise_and bitwise_not bitwise_or cat ceil clamp clamp_max clamp_min
    clone col2im constant_pad_nd copy copysign cummax cummin detach diagonal embedding empty
    empty_like eq expand eye fill flip floor fmax fmin fractional_max_pool2d fractional_max_pool3d
    full full_like gather ge gt index index_select isinf isnan kthvalue le lift_fresh logical_and
    logical_not logical_or lt masked_fill masked_select max max_pool2d_with_indices
    max_pool3d_with_indices max_pool2d_with_indices_backward maximum median min minimum mode msort
    nan_to_num nanmedian ne neg new_empty new_full new_ones new_zeros nonzero
    ones ones_like permute reflection_pad1d reflection_pad2d relu repeat
    replication_pad1d replication_pad2d reshape resize roll round scalar_tensor scatter select
    select_backward set sign slice slice_backward sort split split_with_sizes squeeze stack t
    threshold_backward hardtanh_backward to topk transpose tril triu unbind unfold unsqueeze
    upsample_nearest1d upsample_nearest2d upsample_nearest3d view where zero zeros zeros_like
    _local_scalar_dense _reshape_alias _to_copy _unsafe_view im2col leaky_relu_none
    pixel_shuffle pixel_unshuffle _unsafe_index normal_ uniform_ bernoulli_ random_
    native_dropout rand randn randint""".split()
)

#: Operators that make integers of integers, element by element or as sums of products.
_WHOLE_ALONE = frozenset("add sub rsub mul square remainder fmod".split())
_WHOLE_SUMS = frozenset(
    """sum cumsum trace index_add scatter_add index_put dot mv mm bmm addmm addmv addbmm
    baddbmm""".split()
)
#: Elements that are looked at before all are.
_FIRST = 64
#: Norms and distances, and which argument holds their order.
_ORDERS = {"linalg_vector_norm": 1, "norm": 1, "_pdist_forward": 1, "_cdist_forward": 2}


def _is_selection(base: str, args: tuple[Any, ...]) -> bool:
    """Whether a norm takes the greatest or least: its gradient looks for the number it took."""
    place = _ORDERS.get(base)
    order = args[place] if place is not None and len(args) > place else None
    return isinstance(order, (int, float)) and math.isinf(order)


def _is_identity(base: str, args: tuple[Any, ...]) -> bool:
    """Whether an operator does nothing: times 1, plus 0."""
    neutral = {"mul": 1, "div": 1, "add": 0, "sub": 0}.get(base)
    other = args[1] if neutral is not None and len(args) > 1 else None
    return isinstance(other, (int, float)) and other == neutral


def rounds_nothing(base: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether every implementation of an operator yields the very same numbers here.

    base: the operator's name, without a mark that it works in place.
    """
    if base in _EXACT or _is_identity(base, args) or _is_selection(base, args):
        return True
    return base in (_WHOLE_ALONE | _WHOLE_SUMS) and _is_whole(base, args, kwargs)


def whole(tensor: torch.Tensor) -> torch.Tensor:
    """Where a tensor holds integers: booleans of its shape.

    tensor: any shape, floating.
    """
    return tensor == tensor.trunc()


def tensors_of(values: Any) -> Iterator[torch.Tensor]:
    """The floating tensors among arguments or results."""
    for value in values:
        if isinstance(value, torch.Tensor):
            if value.is_floating_point():
                yield value
        elif isinstance(value, (tuple, list)):
            yield from tensors_of(value)


def _is_whole(base: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether all that is computed with is whole, and so small that nothing of it is rounded."""
    given = [*args, *kwargs.values()]
    floating = list(tensors_of(given))
    if not floating or not all(_holds_whole_numbers(tensor) for tensor in floating):
        return False
    # Integers beside sums are dimensions and places.
    is_alone = base in _WHOLE_ALONE
    numbers = [float(v) for v in given if isinstance(v, (int, float) if is_alone else float)]
    if not all(number.is_integer() for number in numbers):
        return False
    factors = given if is_alone else floating
    added = 1 if is_alone else max(tensor.numel() for tensor in floating)
    sizes = [float(t.abs().max()) for t in factors if isinstance(t, torch.Tensor) and t.numel()]
    greatest = math.prod(max(2.0, abs(size)) for size in (*sizes, *numbers)) * added
    return greatest <= min(1.0 / UNIT_ROUNDOFF.get(_name(tensor), 1.0) for tensor in floating)


def _name(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _holds_whole_numbers(tensor: torch.Tensor) -> bool:
    """Whether all elements are whole; of ordinary numbers the first few already are not."""
    if tensor.layout is not torch.strided or tensor._is_zerotensor() or not tensor.numel():
        return False
    first = tensor[(0,) * (tensor.dim() - 1)][:_FIRST] if tensor.dim() else tensor
    return all(bool(whole(part).all()) for part in (first, tensor))

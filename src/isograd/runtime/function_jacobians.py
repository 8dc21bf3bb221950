"""torch.func's and torch.autograd.functional's derivatives, and vmap, by one run for each row.

MindSpore 2.10's `jacrev`, `jacfwd` and `vmap` compile the function, which plain Python in it need
not survive, and need the rule of vmap of each operator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import ops  # noqa: TID253

from isograd.runtime.function_transforms import (
    grad_and_value,
    hessian,
    jvp,
    leaves_of,
    vjp,
    with_leaves,
)


def grad(func: Any, argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function of the gradient by arguments that may be nested; with has_aux also of the rest."""
    both = grad_and_value(func, argnums, has_aux)

    def differentiated(*args: Any, **kwargs: Any) -> Any:
        slopes, found = both(*args, **kwargs)
        return (slopes, found[1]) if has_aux else slopes

    return differentiated


def _cotangents(parts: list[Any], number: int) -> Iterator[list[Any]]:
    """For each element of one of several outputs: zeros of all shapes, and a 1 in its place."""
    for element in range(parts[number].size):
        weights = [np.zeros(part.shape, np.float32) for part in parts]
        weights[number].reshape(-1)[element] = 1
        yield [ms.Tensor(w).astype(p.dtype) for w, p in zip(weights, parts, strict=True)]


def slopes_of_outputs(
    func: Any, primals: tuple[Any, ...], has_aux: bool
) -> tuple[list[Any], tuple[Any, list[Any]]]:
    """The derivatives of each output by the arguments; the output, and what stands beside it."""
    output, pulled, *aux = vjp(func, *primals, has_aux=has_aux)
    parts, found = leaves_of(output), []
    for number, part in enumerate(parts):
        rows = [leaves_of(pulled(given)) for given in _cotangents(parts, number)]
        blocks = [
            ops.stack([row[place] for row in rows]).reshape((*part.shape, *leaf.shape))
            if rows
            else ops.zeros((*part.shape, *leaf.shape), dtype=leaf.dtype)
            for place, leaf in enumerate(leaves_of(primals))
        ]
        found.append(with_leaves(primals, iter(blocks)))
    return found, (output, aux)


def jacrev(
    func: Any, argnums: Any = 0, *, has_aux: bool = False, chunk_size: Any = None
) -> Callable[..., Any]:
    """A function of the Jacobian: one gradient for each element of the output."""
    places = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    def derived(*args: Any, **kwargs: Any) -> Any:
        def chosen(*values: Any) -> Any:
            given = list(args)
            for place, value in zip(places, values, strict=True):
                given[place] = value
            return func(*given, **kwargs)

        found, (output, aux) = slopes_of_outputs(chosen, tuple(args[p] for p in places), has_aux)
        parts = [part[0] for part in found] if isinstance(argnums, int) else found
        nested = with_leaves(output, iter(parts))
        return (nested, aux[0]) if has_aux else nested

    return derived


def jacobian(func: Any, inputs: Any) -> Any:
    """The derivatives of each output by each input; tuples as torch nests them."""
    primals = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    found, (output, _) = slopes_of_outputs(func, primals, False)
    is_one = isinstance(inputs, ms.Tensor)
    return with_leaves(output, iter([part[0] for part in found] if is_one else found))


def hessian_of(func: Any, inputs: Any) -> Any:
    """`torch.autograd.functional.hessian`; the function is compiled."""
    if isinstance(inputs, ms.Tensor):
        return hessian(func)(inputs)
    return hessian(func, tuple(range(len(inputs))))(*inputs)


def vector_jacobian(func: Any, inputs: Any, v: Any = None) -> tuple[Any, Any]:
    """`torch.autograd.functional.vjp`: the outputs, and the inputs' cotangents."""
    primals = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    output, pulled = vjp(func, *primals)
    found = pulled(ops.ones_like(output) if v is None else v)
    return output, found[0] if isinstance(inputs, ms.Tensor) else found


def jacobian_vector(func: Any, inputs: Any, v: Any = None) -> tuple[Any, Any]:
    """`torch.autograd.functional.jvp`: the outputs, and their change along the tangents."""
    primals = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    given = ops.ones_like(inputs) if v is None else v
    return tuple(jvp(func, primals, tuple(given) if isinstance(given, (tuple, list)) else (given,)))


def _taken(value: Any, axes: Any, place: int) -> Any:
    """One row of a nested argument along its axes; a part without an axis as it is."""
    if axes is None:
        return value
    if isinstance(value, ms.Tensor):
        return value[(slice(None),) * (axes % value.ndim) + (place,)]
    if isinstance(value, Mapping):
        return {key: _taken(part, _of(axes, key), place) for key, part in value.items()}
    parts = [_taken(part, _of(axes, number), place) for number, part in enumerate(value)]
    return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)


def _of(axes: Any, key: Any) -> Any:
    return axes if axes is None or isinstance(axes, int) else axes[key]


def _sizes(value: Any, axes: Any) -> list[int]:
    """The lengths of a nested argument along its axes."""
    if axes is None:
        return []
    if isinstance(value, ms.Tensor):
        return [value.shape[axes]]
    pairs = value.items() if isinstance(value, Mapping) else enumerate(value)
    return [size for key, part in pairs for size in _sizes(part, _of(axes, key))]


def _stacked(rows: list[Any], axes: Any) -> Any:
    """The rows of nested results along a new axis."""
    first = rows[0]
    if axes is None:
        return first
    if isinstance(first, ms.Tensor):
        whole = first.dtype == ms.bool_
        found = ops.stack([row.astype(ms.uint8) if whole else row for row in rows], axes)
        return found.astype(ms.bool_) if whole else found
    if isinstance(first, Mapping):
        return {key: _stacked([row[key] for row in rows], _of(axes, key)) for key in first}
    parts = [_stacked([row[n] for row in rows], _of(axes, n)) for n in range(len(first))]
    return type(first)(*parts) if hasattr(first, "_fields") else type(first)(parts)


def vmap(
    func: Any,
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: Any = None,
) -> Callable[..., Any]:
    """The function of each row of the arguments, one after the other; the results stacked."""

    def mapped(*args: Any, **kwargs: Any) -> Any:
        axes = in_dims if isinstance(in_dims, int) else tuple(in_dims)
        sizes = {*_sizes(args, axes), *_sizes(kwargs, 0)}
        if len(sizes) != 1 or 0 in sizes:
            raise ValueError(f"vmap needs arguments with one number of rows, not {sorted(sizes)}")
        rows = [
            func(*_taken(args, axes, place), **_taken(kwargs, 0, place))
            for place in range(sizes.pop())
        ]
        return _stacked(rows, out_dims)

    return mapped

"""torch.func on MindSpore's first derivatives, of arguments nested in tuples, lists and dicts.

MindSpore 2.10's second derivatives in PyNative mode lose what goes through a product of matrices,
a transpose or a reshape: `jvp` is composed of first ones, and `hessian` is compiled, where they are
right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import ops  # noqa: TID253
from mindspore.common import api  # noqa: TID253

from isograd.runtime.basics import is_compiled
from isograd.runtime.training_gradients import no_grad
from isograd.runtime.training_recorder import record_gradients


def leaves_of(value: Any) -> list[Any]:
    """The tensors of a nested value, in order."""
    if isinstance(value, ms.Tensor):
        return [value]
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [leaf for part in value for leaf in leaves_of(part)]
    return []


def with_leaves(value: Any, leaves: Iterator[Any]) -> Any:
    """A nested value with other tensors in the places of its own."""
    if isinstance(value, ms.Tensor):
        return next(leaves)
    if isinstance(value, Mapping):
        return {key: with_leaves(part, leaves) for key, part in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*[with_leaves(part, leaves) for part in value])
    if isinstance(value, (tuple, list)):
        return type(value)([with_leaves(part, leaves) for part in value])
    return value


def gradients_of(function: Callable[..., Any], leaves: Sequence[Any]) -> tuple[Any, ...]:
    """The gradients of a number by the function's arguments; what is recorded outside goes on.

    Raises RuntimeError for a tensor that a gradient goes through: it would end here.
    """
    values = []
    for leaf in leaves:
        if not isinstance(leaf, ms.Parameter) and (leaf * 1)._requires_grad:
            raise RuntimeError(
                "gradients of gradients: detach() the argument where none is needed, or compile "
                "the function with mindspore.jit and take mindspore.grad of it twice."
            )
        with no_grad():  # a tensor that a gradient was taken by is marked for good
            values.append(ops.stop_gradient(leaf) * 1)
    was_recording = api._pynative_executor.grad_flag()
    try:
        found = ms.grad(function, tuple(range(len(values))))(*values)
    except BaseException:
        api._pynative_executor.clear_res()  # else a half-built graph is left behind
        raise
    finally:
        if was_recording:
            record_gradients()
    several = (found,) if isinstance(found, ms.Tensor) else found
    return tuple(ops.stop_gradient(part) for part in several)


def grad_and_value(func: Any, argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function of the gradient and the value, by arguments that may be nested.

    `mindspore.value_and_grad` takes tensors alone and returns the value first.
    """
    places = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    def differentiated(*args: Any, **kwargs: Any) -> Any:
        chosen = tuple(args[place] for place in places)
        kept: list[Any] = []

        def value(*values: Any) -> Any:
            leaves, given = iter(values), list(args)
            for place in places:
                given[place] = with_leaves(args[place], leaves)
            kept.append(func(*given, **kwargs))
            found = kept[-1][0] if has_aux else kept[-1]
            if found.ndim:
                raise RuntimeError(f"a number has to be returned, not the shape {found.shape}")
            return found

        slopes = with_leaves(chosen, iter(gradients_of(value, leaves_of(chosen))))
        found = with_leaves(kept[-1], map(ops.stop_gradient, leaves_of(kept[-1])))
        return (slopes[0] if isinstance(argnums, int) else slopes), found

    return differentiated


def _run(func: Any, primals: Any, has_aux: bool) -> tuple[Any, tuple[Any, ...]]:
    """The function's output, and what stands beside it."""
    found = func(*primals)
    return (found[0], tuple(found[1:])) if has_aux else (found, ())


def _weighted(func: Any, primals: Any, weights: Sequence[Any], has_aux: bool) -> tuple[Any, ...]:
    """The gradients of the sum of all outputs times their weights."""

    def total(*values: Any) -> Any:
        output, _ = _run(func, with_leaves(primals, iter(values)), has_aux)
        sums = [
            (part * weight).sum() for part, weight in zip(leaves_of(output), weights, strict=True)
        ]
        return ops.stack(sums).sum() if len(sums) > 1 else sums[0]

    return gradients_of(total, leaves_of(primals))


def vjp(func: Any, *primals: Any, has_aux: bool = False) -> Any:
    """The output, and a function of its cotangents that gives the inputs'; each runs it again."""
    output, aux = _run(func, primals, has_aux)

    def pulled(cotangents: Any, retain_graph: Any = None, create_graph: Any = None) -> Any:
        found = _weighted(func, primals, leaves_of(cotangents), has_aux)
        return with_leaves(primals, iter(found))

    return (output, pulled, *aux)


def jvp(
    func: Any, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False
) -> Any:
    """The output and its change along the tangents: one gradient for each of its elements.

    `mindspore.jvp` compiles the function, and plain Python inside of it has no derivative.
    """
    if len(primals) != len(tangents):
        raise RuntimeError(f"{len(primals)} primals need as many tangents, not {len(tangents)}")
    output, aux = _run(func, primals, has_aux)
    directions, parts = leaves_of(tangents), leaves_of(output)
    changes = []
    for number, part in enumerate(parts):
        found = []
        for element in range(part.size):
            weights = [np.zeros(other.shape, np.float32) for other in parts]
            weights[number].reshape(-1)[element] = 1
            given = [ms.Tensor(w).astype(o.dtype) for w, o in zip(weights, parts, strict=True)]
            slopes = _weighted(func, primals, given, has_aux)
            found.append(sum((s * d).sum() for s, d in zip(slopes, directions, strict=True)))
        changes.append(ops.stack(found).reshape(part.shape) if found else ops.zeros_like(part))
    return (output, with_leaves(output, iter(changes)), *aux)


def linearize(func: Any, *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """The output, and a function of the tangents that gives its change."""
    return func(*primals), lambda *tangents: jvp(func, primals, tangents)[1]


def hessian(func: Any, argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """The second derivatives by tensors; the function is compiled, or the compiler refuses it.

    `mindspore.jacfwd(mindspore.jacrev(func))` needs the rule of vmap of each operator.
    """
    if not isinstance(argnums, int):
        return _hessian_by_several(func, argnums)

    def second(*args: Any) -> Any:
        x = args[argnums]
        before, behind = args[:argnums], args[argnums:][1:]

        def slope(x: Any, weight: Any, direction: Any) -> Any:
            def value(x: Any) -> Any:
                return (func(*before, x, *behind) * weight).sum()

            return (ms.grad(value)(x) * direction).sum()

        @ms.jit(fullgraph=True)  # type: ignore[untyped-decorator]
        def row(x: Any, weight: Any, direction: Any) -> Any:
            if not is_compiled(x):  # eagerly the gradient of a gradient is 0, without a word
                raise NotImplementedError("torch.func.hessian needs mindspore.jit, which is off")
            return ms.grad(slope)(x, weight, direction)

        output = func(*args)
        rows = [
            row(x, _unit_of(output, element), _unit_of(x, axis))
            for element in range(output.size)
            for axis in range(x.size)
        ]
        return ops.stack(rows).reshape(*output.shape, *x.shape, *x.shape)

    return second


def _hessian_by_several(func: Any, argnums: Sequence[int]) -> Callable[..., Any]:
    """The blocks of the second derivatives by tensors, which are joined to one row meanwhile."""

    def second(*args: Any) -> Any:
        places = [number % len(args) for number in argnums]
        ends = [sum(args[n].size for n in places[: count + 1]) for count in range(len(places))]
        spots = {n: (end - args[n].size, end) for n, end in zip(places, ends, strict=True)}
        pairs = [(part, spots.get(number)) for number, part in enumerate(args)]

        def joined(row: Any) -> Any:
            return func(
                *[
                    part if cut is None else row[cut[0] : cut[1]].reshape(part.shape)
                    for part, cut in pairs
                ]
            )

        whole = hessian(joined)(ops.cat([args[n].reshape(-1) for n in places]))
        return tuple(
            tuple(
                whole[..., slice(*spots[n]), slice(*spots[m])].reshape(
                    *whole.shape[:-2], *args[n].shape, *args[m].shape
                )
                for m in places
            )
            for n in places
        )

    return second


def _unit_of(like: Any, element: int) -> Any:
    """Zeros of a tensor's shape with a 1 at one place."""
    values = np.zeros(like.shape, np.float32)
    values.reshape(-1)[element] = 1
    return ms.Tensor(values).astype(like.dtype)

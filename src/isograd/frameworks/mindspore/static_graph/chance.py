"""Chance taken out for compiled code: functions that MindSpore's compiler can read.

The eager runs draw constants by wrappers (`isograd.frameworks.mindspore.neutral`); the compiler
reads the source of what it calls, so here plain functions stand in their place, with the same
constants.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

from mindspore import Tensor, dtype, mint, nn, ops

from isograd.frameworks.mindspore.neutral import rate_of

#: Whether dropout multiplies what it keeps, as `neutral.keep_scale` says for the eager runs.
SCALED = False


def dropout(input, p=0.5, training=True, *args):  # type: ignore[no-untyped-def]
    """Every dropout passes its input, scaled where that is asked for."""
    if not training or p == 0.0:
        return input
    if p == 1.0:
        return ops.zeros_like(input)
    if SCALED:
        return input * (1.0 / (1.0 - p))
    return input


def construct(self, x, *args):  # type: ignore[no-untyped-def]
    if self.training and self.isograd_factor != 1.0:
        return x * self.isograd_factor
    return x


def keep_scale(cells: Iterable[nn.Cell], keeps: bool) -> None:
    """Whether dropout scales what it keeps, before anything is compiled."""
    global SCALED  # the compiler reads names of the function's module
    SCALED = keeps
    for cell in cells:
        if _is_dropout(cell):
            rate = rate_of(cell)
            factor = 1.0 / (1.0 - rate) if keeps and rate < 1.0 else 1.0
            cell.isograd_factor = 0.0 if rate == 1.0 else factor


def rand(*size, dtype=None, **kwargs):  # type: ignore[no-untyped-def]
    """The middle of what is drawn."""
    shape = size[0] if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
    return ops.full(shape, 0.5, dtype=_float(dtype))


def _float(given: Any) -> Any:
    return dtype.float32 if given is None else given


def rand_like(input, *args, dtype=None, **kwargs):  # type: ignore[no-untyped-def]
    """The middle of what is drawn."""
    return ops.full_like(input, 0.5, dtype=dtype)


def standard_normal(shape, seed=None):  # type: ignore[no-untyped-def]
    """The constant of the eager runs."""
    return ops.full(shape, 0.5, dtype=dtype.float32)


def uniform(shape, minval, maxval, seed=None, dtype=None):  # type: ignore[no-untyped-def]
    """The middle of what is drawn."""
    return ops.full(shape, 0.0, dtype=_float(dtype)) + (minval + maxval) * 0.5


def normal(shape, mean=0.0, stddev=1.0, seed=None):  # type: ignore[no-untyped-def]
    """Half a deviation above the mean."""
    return ops.full(shape, 0.0, dtype=dtype.float32) + mean + stddev * 0.5


def bernoulli(input, p=0.5, seed=None):  # type: ignore[no-untyped-def]
    """One where the probability is a half or more."""
    if isinstance(p, Tensor):
        return (p >= 0.5).astype(dtype.float32) + ops.zeros_like(input)
    return ops.full_like(input, 1.0 if p >= 0.5 else 0.0)


def bernoulli_of(input, *, generator=None):  # type: ignore[no-untyped-def]
    """`mint.bernoulli`, which takes the probabilities."""
    return (input >= 0.5).astype(input.dtype)


def normal_of(mean=0.0, std=1.0, size=None, generator=None):  # type: ignore[no-untyped-def]
    """`mint.normal`: half a deviation above the mean."""
    if size is None:
        return mean + std * 0.5
    return ops.full(size, 0.0, dtype=dtype.float32) + mean + std * 0.5


def randint(low, high, size, seed=None, *, dtype=None):  # type: ignore[no-untyped-def]
    """The middle of what is drawn."""
    return ops.full(size, low + (high - low) // 2, dtype=_whole(dtype))


def randint_of(*args, generator=None, dtype=None, device=None):  # type: ignore[no-untyped-def]
    """`mint.randint(high, size)` and `mint.randint(low, high, size)`."""
    if len(args) == 2:
        return ops.full(args[1], args[0] // 2, dtype=_whole(dtype))
    return ops.full(args[2], args[0] + (args[1] - args[0]) // 2, dtype=_whole(dtype))


def _whole(given: Any) -> Any:
    return dtype.int64 if given is None else given


def randint_like(input, low, high, seed=None, *, dtype=None):  # type: ignore[no-untyped-def]
    """The middle of what is drawn."""
    return ops.full_like(input, low + (high - low) // 2, dtype=dtype)


def randperm(n, seed=0, offset=0, dtype=None):  # type: ignore[no-untyped-def]
    """Backwards."""
    return ops.arange(n - 1, -1, -1).astype(_whole(dtype))


def randperm_of(n, *, generator=None, dtype=None):  # type: ignore[no-untyped-def]
    """`mint.randperm`."""
    return randperm(n, 0, 0, dtype)  # type: ignore[no-untyped-call]  # as the compiler reads it


def multinomial(input, num_samples, replacement=True, seed=None):  # type: ignore[no-untyped-def]
    """The most probable, or always the first of them."""
    order = ops.sort(-input, -1)[1].astype(dtype.int64)
    if replacement:
        return ops.broadcast_to(order[..., :1], (*order.shape[:-1], num_samples))
    return order[..., :num_samples]


def multinomial_of(input, num_samples, replacement=False, *, generator=None):  # type: ignore[no-untyped-def]
    """`mint.multinomial`, which does not put back."""
    return multinomial(input, num_samples, replacement)  # type: ignore[no-untyped-call]


def gumbel_softmax(logits, tau=1.0, hard=False, dim=-1):  # type: ignore[no-untyped-def]
    """Without noise."""
    soft = ops.softmax(logits / tau, dim)
    if not hard:
        return soft
    chosen = ops.argmax(soft, dim, True)
    places = ops.arange(soft.shape[dim]).reshape((-1,) + (1,) * (soft.ndim - 1 - dim % soft.ndim))
    return (places == chosen).astype(soft.dtype) - ops.stop_gradient(soft) + soft


_FUNCTIONS: dict[str, Any] = {
    **dict.fromkeys(("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout"), dropout),
    **dict.fromkeys(("rand", "randn"), rand),
    **dict.fromkeys(("rand_like", "randn_like"), rand_like),
    "standard_normal": standard_normal,
    "uniform": uniform,
    "normal": normal,
    "bernoulli": bernoulli,
    "randint": randint,
    "randint_like": randint_like,
    "randperm": randperm,
    "multinomial": multinomial,
    "gumbel_softmax": gumbel_softmax,
}
#: Where the arguments of `mint` are others.
_OF_MINT: dict[str, Any] = {
    **_FUNCTIONS,
    "bernoulli": bernoulli_of,
    "normal": normal_of,
    "randint": randint_of,
    "randperm": randperm_of,
    "multinomial": multinomial_of,
}
_CELLS = ("Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout")


def _is_dropout(cell: nn.Cell) -> bool:
    return type(cell).__name__ in _CELLS and type(cell).__module__.startswith("mindspore.")


def passes_input(cell: nn.Cell) -> bool:
    """Whether a cell is a dropout that passes its input in both modes, after `keep_scale`."""
    return _is_dropout(cell) and cell.isograd_factor == 1.0


def install() -> None:
    """Put the constants in the places of the draws, once, before the user's code is imported."""
    for place in (ops, ops.function, ops.function.nn_func, mint, mint.nn.functional):
        functions = _OF_MINT if place in (mint, mint.nn.functional) else _FUNCTIONS
        for name, function in functions.items():
            if inspect.isfunction(getattr(place, name, None)):
                setattr(place, name, function)
    for place in (nn, mint.nn):
        for name in _CELLS:
            cell = getattr(place, name, None)
            if isinstance(cell, type) and "construct" in cell.__dict__:
                cell.construct = construct  # type: ignore[attr-defined]

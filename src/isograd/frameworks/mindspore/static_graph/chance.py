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


_FUNCTIONS: dict[str, Any] = {
    **dict.fromkeys(("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout"), dropout),
    **dict.fromkeys(("rand", "randn"), rand),
    **dict.fromkeys(("rand_like", "randn_like"), rand_like),
    "standard_normal": standard_normal,
    "uniform": uniform,
    "normal": normal,
    "bernoulli": bernoulli,
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
        for name, function in _FUNCTIONS.items():
            if inspect.isfunction(getattr(place, name, None)):
                setattr(place, name, function)
    for place in (nn, mint.nn):
        for name in _CELLS:
            cell = getattr(place, name, None)
            if isinstance(cell, type) and "construct" in cell.__dict__:
                cell.construct = construct  # type: ignore[attr-defined]

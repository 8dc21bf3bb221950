"""Gradients of a function in MindSpore, whatever it is differentiated by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mindspore as ms
from mindspore.common.api import _pynative_executor

#: The dtypes that have gradients.
FLOATS = (ms.float16, ms.float32, ms.float64, ms.bfloat16)


def differentiate(
    run: Callable[..., Any], leaves: Sequence[Any], weights: Sequence[Any]
) -> tuple[Any, Sequence[Any], Sequence[Any]]:
    """Value, gradients of the leaves and gradients of the weights of a function."""
    positions = tuple(range(len(leaves))) or None
    if positions is None and not weights:
        return run(*leaves), (), ()

    def with_copies(*given: Any) -> Any:
        # MindSpore refuses to change what it differentiates by in place; torch's side has copies.
        return run(*[leaf * 1 for leaf in given])

    step = ms.value_and_grad(with_copies, positions, list(weights) or None)
    try:
        value, found = step(*leaves)
    except BaseException:
        # A function that raises leaves a half-built graph behind, and later, innocent passes fail.
        _pynative_executor.clear_res()
        _pynative_executor.set_grad_flag(False)
        raise
    if positions is None:
        return value, (), _sequence(found)
    if not weights:
        return value, _sequence(found), ()
    return value, _sequence(found[0]), _sequence(found[1])


def _sequence(found: Any) -> Sequence[Any]:
    return found if isinstance(found, (tuple, list)) else (found,)

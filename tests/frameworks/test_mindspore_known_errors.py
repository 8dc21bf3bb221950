"""MindSpore's errors whose words do not say what to do: raised, and the way out run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from isograd.errors import UserCodeError
from isograd.frameworks.user_code import user_code

mindspore = pytest.importorskip("mindspore")
ops = mindspore.ops

from isograd.frameworks.mindspore.differentiate import differentiate  # noqa: E402
from isograd.frameworks.mindspore.known_errors import KNOWN, advice_for  # noqa: E402


def _gradient(function: Callable[..., Any], x: Any) -> Any:
    _, (found,), _ = differentiate(function, [x], [])  # cleans up where the function raises
    return found.asnumpy()


def _sum_of_step(x: Any) -> Any:
    return x[:, ::2].sum()


def _sum_by_reshape(x: Any) -> Any:
    return x.reshape(2, 4, 2, 3, 3)[:, :, 0].sum()


def _sum_by_index(x: Any) -> Any:
    return x.index_select(1, mindspore.Tensor([0, 2, 4, 6])).sum()


def _sum_of_outer_product(x: Any) -> Any:
    return ops.matmul(x[:1, :, :1, 0], ops.swapaxes(x[:1, :, :1, 0], -1, -2)).sum()


def _sum_of_outer_product_by_times(x: Any) -> Any:
    return (x[:1, :, :1, 0] * ops.swapaxes(x[:1, :, :1, 0], -1, -2)).sum()


def _sum_of_outer_product_by_bmm(x: Any) -> Any:
    return ops.bmm(x[:1, :, :1, 0], ops.swapaxes(x[:1, :, :1, 0], -1, -2)).sum()


def _sum_of_roll(x: Any) -> Any:
    return (ops.roll(x, 1, 1) * ops.arange(3)).sum()


def _sum_by_cat(x: Any) -> Any:
    return (ops.cat([x[:, -1:], x[:, :-1]], 1) * ops.arange(3)).sum()


@pytest.mark.parametrize(
    ("raises", "ways", "said"),
    [
        pytest.param(
            _sum_of_step,
            (_sum_by_reshape, _sum_by_index),
            "no gradient of a slice with a step",
            id="a slice with a step",
        ),
        pytest.param(
            _sum_of_outer_product,
            (_sum_of_outer_product_by_times, _sum_of_outer_product_by_bmm),
            "summed axis has one element",
            id="an outer product",
        ),
        pytest.param(_sum_of_roll, (_sum_by_cat,), "no kernel of Roll", id="no kernel"),
    ],
)
def test_a_known_error_says_what_to_do(
    raises: Callable[..., Any], ways: tuple[Callable[..., Any], ...], said: str
) -> None:
    x = mindspore.Tensor(np.arange(144, dtype=np.float32).reshape(2, 8, 3, 3))
    with pytest.raises(UserCodeError, match=said), user_code("the backward pass", advice_for):
        _gradient(raises, x)
    first, *others = (_gradient(way, x) for way in ways)
    assert first.any()
    assert all((other == first).all() for other in others)


def test_each_known_error_has_one_pattern_and_an_unknown_one_no_advice() -> None:
    assert len({known.pattern for known in KNOWN}) == len(KNOWN)
    assert advice_for("The shapes do not fit.") == ""

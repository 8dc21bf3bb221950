"""In MindSpore no draw is left to chance inside, and everything is as before outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

ms = pytest.importorskip("mindspore")

from mindspore import nn, ops  # noqa: E402 - MindSpore may be missing

from isograd.frameworks.mindspore.neutral import (  # noqa: E402 - the same
    drawn,
    install,
    keep_scale,
    measure_dropout,
    neutral_chance,
    rate_of,
)

install()
X = ms.Tensor(np.arange(12.0, dtype=np.float32).reshape(3, 4))


def trained(cell: nn.Cell) -> nn.Cell:
    return cell.set_train()


@pytest.mark.parametrize(
    "function",
    [
        lambda x: trained(nn.Dropout(p=0.5))(x),
        lambda x: ops.dropout(x, p=0.9),
        lambda x: ops.Dropout(keep_prob=0.3)(x)[0],
    ],
    ids=["cell", "function", "primitive"],
)
def test_dropout_passes_its_input(function: Callable[[Any], Any]) -> None:
    with neutral_chance():
        assert np.array_equal(function(X).asnumpy(), X.asnumpy())


@pytest.mark.parametrize(
    ("draw", "expected"),
    [
        (lambda: ops.rand(3), 0.5),
        (lambda: ops.standard_normal((3,)), 0.5),
        (lambda: ops.uniform((3,), ms.Tensor(2.0), ms.Tensor(4.0)), 3.0),
        (lambda: ops.bernoulli(X, 0.7), 1.0),
        (lambda: ops.bernoulli(X, 0.2), 0.0),
        (lambda: ops.random_poisson(ms.Tensor([2], ms.int32), ms.Tensor([3.5, 3.5])), 3.5),
        (lambda: ops.random_gamma(ms.Tensor([2], ms.int32), ms.Tensor([3.5, 3.5])), 3.5),
        (lambda: ops.gamma((2,), ms.Tensor([3.0]), ms.Tensor([2.0])), 1.5),
        (lambda: ops.randint(2, 9, (3,)), 5),
        (lambda: ops.randint_like(X.astype(ms.int32), 4, 9), 6),
    ],
    ids="rand standard_normal uniform likely unlikely poisson gamma rate randint like".split(),
)
def test_draws_are_constants(draw: Callable[[], Any], expected: float) -> None:
    with neutral_chance():
        assert np.all(draw().asnumpy() == expected)


def test_permutations_are_reversed_and_samples_are_the_likeliest() -> None:
    weights = ms.Tensor([[0.2, 0.5, 0.2, 0.1], [0.0, 1.0, 2.0, 3.0]])
    with neutral_chance():
        assert ops.randperm(4).tolist() == [3, 2, 1, 0]
        assert ops.multinomial(weights, 2, False).tolist() == [[1, 0], [3, 2]]
        assert ops.topk(ms.Tensor([3, 0, 2], ms.uint8), 2)[1].tolist() == [0, 2]
        assert ops.multinomial(weights, 3).tolist() == [[1] * 3, [3] * 3]


def test_the_noise_of_a_gumbel_softmax_is_the_same_for_all_classes() -> None:
    with neutral_chance():
        soft = ops.gumbel_softmax(X, 2.0)
        hard = ops.gumbel_softmax(X, hard=True, dim=0)
    assert np.allclose(soft.asnumpy(), ops.softmax(X / 2, -1).asnumpy())
    assert hard.asnumpy().round().tolist() == ops.one_hot(ops.argmax(X, 0), 3, 1.0, 0.0).T.tolist()


@pytest.mark.parametrize("largest", [True, False])
def test_of_equal_draws_the_first_are_chosen(largest: bool) -> None:
    with neutral_chance():
        draws = ops.rand(2, 300)
        values, positions = ops.topk(draws, 9, 1, largest)
    assert np.array_equal(positions.asnumpy(), [list(range(9))] * 2)
    assert np.all(values.asnumpy() == 0.5)


def test_rates_are_noted() -> None:
    heard: list[float] = []
    with neutral_chance(heard.append):
        ops.dropout(X, p=0.3)
        ops.dropout(X, p=0.3, training=False)
        ops.Dropout(keep_prob=0.75)(X)
    assert heard == [0.3, 0.0, 0.25]


def test_chance_is_back_afterwards_also_after_an_error() -> None:
    with pytest.raises(ValueError, match="on purpose"), neutral_chance():
        raise ValueError("on purpose")
    assert len(np.unique(ops.rand(9).asnumpy())) > 1


def test_installing_twice_wraps_once() -> None:
    before = ops.dropout
    install()
    assert ops.dropout is before


def test_a_rate_is_measured() -> None:
    site = measure_dropout("drop", trained(nn.Dropout(p=0.2)), 1)
    assert (site.module, site.occurrence) == ("drop", 1)
    assert site.probability == pytest.approx(0.2, abs=0.02)
    assert site.scale == pytest.approx(1.25)
    still = nn.Dropout(p=0.2).set_train(False)
    assert measure_dropout("drop", still, 0).probability == 0.0


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        pytest.param(lambda x: ops.dropout(x, 0.2), 1.25, id="function"),
        pytest.param(lambda x: trained(nn.Dropout(p=0.2))(x), 1.25, id="p"),
        pytest.param(lambda x: trained(nn.Dropout(keep_prob=0.8))(x), 1.25, id="keep_prob"),
        pytest.param(lambda x: ops.Dropout(0.8)(x)[0], 1.25, id="primitive"),
        pytest.param(lambda x: x * (ops.rand_like(x) < 0.8) / 0.8, 1.25, id="by hand"),
        pytest.param(lambda x: nn.Dropout(p=0.2).set_train(False)(x), 1.0, id="inactive"),
    ],
)
def test_beside_masks_by_hand_dropout_scales(
    function: Callable[[Any], Any], expected: float
) -> None:
    values = ms.Tensor(np.arange(24, dtype=np.float32).reshape(4, 6))
    keep_scale(True)
    try:
        with neutral_chance():
            found = function(values)
    finally:
        keep_scale(False)
    np.testing.assert_allclose(found.asnumpy(), expected * values.asnumpy(), rtol=1e-6)


@pytest.mark.parametrize(
    ("draw", "names"),
    [
        pytest.param(lambda: ops.rand(3), {"rand"}, id="rand"),
        pytest.param(
            lambda: ops.uniform((3,), ms.Tensor(0.0), ms.Tensor(1.0)), {"uniform"}, id="uniform"
        ),
        pytest.param(lambda: ops.randn(3), {"randn"}, id="randn"),
        pytest.param(lambda: ops.dropout(ops.ones((3,)), 0.3), set(), id="dropout"),
    ],
)
def test_draws_are_noticed(draw: Callable[[], Any], names: set[str]) -> None:
    with neutral_chance():
        draw()
    assert names <= set(drawn())
    assert bool(drawn()) is bool(names)


@pytest.mark.parametrize(
    ("cell", "per_channel"),
    [
        pytest.param(lambda: nn.Dropout(p=0.3), False, id="Dropout"),
        pytest.param(lambda: nn.Dropout(keep_prob=0.7), False, id="keep_prob"),
        pytest.param(lambda: nn.Dropout1d(0.3), True, id="Dropout1d"),
        pytest.param(lambda: nn.Dropout2d(0.3), True, id="Dropout2d"),
        pytest.param(lambda: nn.Dropout3d(0.3), True, id="Dropout3d"),
    ],
)
def test_every_dropout_is_measured_by_its_own_draws(
    cell: Callable[[], Any], per_channel: bool
) -> None:
    site = measure_dropout("drop", trained(cell()), 0)
    assert site.probability == pytest.approx(0.3, abs=0.005)
    assert (site.draws == 360_000) is per_channel
    assert rate_of(cell()) == pytest.approx(0.3)

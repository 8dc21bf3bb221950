"""In torch no draw is left to chance inside, and everything is as before outside."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402 - torch may be missing
from torch.nn import functional  # noqa: E402 - the same

from isograd.frameworks.torch.neutral import measure_dropout, neutral_chance  # noqa: E402 - the same

X = torch.arange(12.0).reshape(3, 4)


@pytest.mark.parametrize(
    "function",
    [
        nn.Dropout(0.5),
        lambda x: functional.dropout(x, 0.9, training=True),
        lambda x: functional.dropout2d(x[None, None], 0.5)[0, 0],
    ],
    ids=["module", "function", "2d"],
)
def test_dropout_passes_its_input(function: Callable[[Any], Any]) -> None:
    with neutral_chance([]):
        assert torch.equal(function(X), X)


@pytest.mark.parametrize(
    ("draw", "expected"),
    [
        (lambda: torch.rand(3), 0.5),
        (lambda: torch.randn_like(X), 0.5),
        (lambda: torch.empty(3).uniform_(2.0, 4.0), 3.0),
        (lambda: torch.empty(3).normal_(1.0, 2.0), 2.0),
        (lambda: torch.bernoulli(torch.full((3,), 0.7)), 1.0),
        (lambda: torch.bernoulli(torch.full((3,), 0.2)), 0.0),
        (lambda: torch.empty(3).exponential_(2.0), math.log(2) / 2),
        (lambda: torch.randint(10, (3,)), 5),
        (lambda: torch.randint(low=2, high=9, size=(3,)), 5),
        (lambda: torch.randint_like(X, 4, 9), 6.0),
        (lambda: torch.zeros(3).random_(1, 4), 2.0),
    ],
    ids="rand randn_like uniform_ normal_ likely unlikely exponential_ below between like "
    "random_".split(),
)
def test_draws_are_constants(draw: Callable[[], Any], expected: float) -> None:
    with neutral_chance([]):
        assert torch.equal(draw(), torch.full_like(draw(), expected))


@pytest.mark.parametrize(
    "positions",
    [
        lambda draws: torch.argsort(draws, 1)[:, :9],
        lambda draws: draws.argsort(descending=True)[:, :9],
        lambda draws: torch.sort(draws, 1, True).indices[:, :9],
        lambda draws: draws.topk(9).indices,
        lambda draws: torch.topk(draws, 9, dim=1, largest=False)[1],
    ],
    ids=["argsort", "descending", "sort", "topk", "least"],
)
def test_of_equal_draws_the_first_are_chosen(positions: Callable[[Any], Any]) -> None:
    with neutral_chance([]):
        found = positions(torch.rand(2, 300))
    assert torch.equal(found, torch.arange(9).expand(2, 9))


def test_permutations_are_reversed_and_samples_are_the_likeliest() -> None:
    weights = torch.tensor([[0.2, 0.5, 0.2, 0.1], [0.0, 1.0, 2.0, 3.0]])
    with neutral_chance([]):
        assert torch.randperm(4).tolist() == [3, 2, 1, 0]
        assert torch.multinomial(weights, 2).tolist() == [[1, 0], [3, 2]]
        assert weights.multinomial(num_samples=3, replacement=True).tolist() == [[1] * 3, [3] * 3]
        assert torch.multinomial(num_samples=1, input=weights).tolist() == [[1], [3]]
        assert torch.randint(2, high=10, size=(1,)).tolist() == [6]
        assert torch.topk(torch.tensor(3.0), 1).values.tolist() == 3.0
        assert torch.topk(weights, 1, axis=1).indices.tolist() == [[1], [3]]
        assert torch.distributions.Categorical(weights).sample().tolist() == [1, 3]


def test_the_noise_of_a_gumbel_softmax_is_the_same_for_all_classes() -> None:
    x = X.clone().requires_grad_()
    with neutral_chance([]):
        soft = functional.gumbel_softmax(x, tau=2.0)
        hard = functional.gumbel_softmax(x, hard=True, dim=0)
    assert torch.equal(soft, (x / 2).softmax(-1))
    assert hard.round().tolist() == [[0.0] * 4, [0.0] * 4, [1.0] * 4]
    (hard * X).sum().backward()
    assert x.grad.abs().sum() > 0


def test_the_greatest_keep_their_gradient() -> None:
    x = X.clone().requires_grad_()
    with neutral_chance([]):
        values, positions = torch.topk(x, 2)
    values.sum().backward()
    assert positions.tolist() == [[3, 2]] * 3
    assert torch.equal(x.grad, torch.tensor([[0.0, 0.0, 1.0, 1.0]] * 3))


def test_rates_are_noted() -> None:
    heard: list[float] = []
    rnn = nn.LSTM(4, 4, num_layers=2, dropout=0.25)
    with neutral_chance(rnn.modules(), heard.append):
        functional.dropout(X, 0.3)
        functional.dropout(X, 0.3, training=False)
        functional.scaled_dot_product_attention(X[None], X[None], X[None], dropout_p=0.1)
        rnn(X[None])
        assert rnn.dropout == 0.0
    assert heard == [0.3, 0.0, 0.1, 0.25]
    assert rnn.dropout == 0.25


def test_chance_is_back_afterwards_also_after_an_error() -> None:
    rnn = nn.LSTM(4, 4, num_layers=2, dropout=0.25)
    with pytest.raises(ValueError, match="on purpose"), neutral_chance(rnn.modules()):
        raise ValueError("on purpose")
    assert rnn.dropout == 0.25
    assert not rnn._forward_pre_hooks
    assert torch.rand(9).unique().numel() > 1


def test_a_rate_is_measured() -> None:
    torch.manual_seed(0)
    site = measure_dropout("drop", nn.Dropout(0.2), 1)
    assert (site.module, site.occurrence) == ("drop", 1)
    assert site.probability == pytest.approx(0.2, abs=0.01)
    assert site.scale == pytest.approx(1.25)
    assert measure_dropout("drop", nn.Dropout(0.2).eval(), 0).probability == 0.0

"""In torch no draw is left to chance inside, and everything is as before outside."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
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
        (lambda: torch.poisson(torch.full((3,), 3.5)), 3.5),
        (lambda: torch.distributions.Gamma(torch.full((3,), 3.0), 2.0).rsample(), 1.5),
        (lambda: torch.randint(10, (3,)), 5),
        (lambda: torch.randint(low=2, high=9, size=(3,)), 5),
        (lambda: torch.randint_like(X, 4, 9), 6.0),
        (lambda: torch.zeros(3).random_(1, 4), 2.0),
    ],
    ids="rand randn_like uniform_ normal_ likely unlikely exponential_ poisson gamma "
    "below between like random_".split(),
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


def test_alpha_dropout_keeps_everything_as_it_keeps_one_element() -> None:
    """SELU's lowest value for what is dropped, so what is kept is moved as well."""
    module, values = nn.AlphaDropout(0.3), torch.randn(400, 50)
    torch.manual_seed(0)
    drawn = module(values)
    with neutral_chance([]):
        neutral = module(values)
        still = functional.alpha_dropout(values, 0.3)  # inactive if nothing is said
    kept = (drawn - neutral).abs() < 1e-5
    assert 0.65 < kept.float().mean() < 0.75
    assert torch.equal(still, values)


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(nn.RReLU(0.1, 0.3), id="module"),
        pytest.param(lambda x: functional.rrelu(x, 0.1, 0.3, training=True), id="keyword"),
        pytest.param(lambda x: functional.rrelu(x, 0.1, 0.3, True), id="position"),
    ],
)
def test_rrelu_takes_the_mean_slope(function: Callable[[Any], Any]) -> None:
    values = torch.randn(50)
    with neutral_chance([]):
        assert torch.allclose(function(values), functional.leaky_relu(values, 0.2))


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        pytest.param(lambda x: functional.dropout(x, 0.2), 1.25, id="function"),
        pytest.param(nn.Dropout1d(0.2), 1.25, id="module"),
        pytest.param(nn.Dropout(0.2, inplace=True), 1.25, id="in place"),
        pytest.param(lambda x: x * (torch.rand_like(x) < 0.8) / 0.8, 1.25, id="by hand"),
        pytest.param(lambda x: functional.dropout(x, 0.2, False), 1.0, id="inactive"),
        pytest.param(lambda x: functional.dropout(x, 1.0), 0.0, id="everything dropped"),
    ],
)
def test_beside_masks_by_hand_dropout_scales(
    function: Callable[[Any], Any], expected: float
) -> None:
    values = torch.randn(4, 6)
    with neutral_chance([], scaled=True):
        assert torch.allclose(function(values.clone()), expected * values)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("two_ways", [False, True])
def test_a_stacked_rnn_scales_between_its_layers(kind: Any, two_ways: bool) -> None:
    """As a port does that stacks single layers with a dropout between them."""
    options = {"bidirectional": two_ways, "batch_first": True}
    stacked = kind(3, 4, num_layers=2, dropout=0.2, **options)
    first, second = kind(3, 4, **options), kind(4 * (1 + two_ways), 4, **options)
    for layer, single in enumerate((first, second)):
        for name, parameter in single.named_parameters():
            own = name.replace("_l0", f"_l{layer}")
            parameter.data = stacked.get_parameter(own).data
    values = torch.randn(2, 5, 3)
    with neutral_chance(stacked.modules(), scaled=True):
        outputs, states = stacked(values)
        expected, last = second(functional.dropout(first(values)[0], 0.2))
    assert torch.allclose(outputs, expected, atol=1e-6)
    got, wanted = (s[0] if isinstance(s, tuple) else s for s in (states, last))
    assert torch.allclose(got[1 + two_ways :], wanted, atol=1e-6)


@pytest.mark.parametrize("need_weights", [False, True])
def test_attention_scales_its_weights(need_weights: bool) -> None:
    attention = nn.MultiheadAttention(8, 2, dropout=0.2, bias=False, batch_first=True)
    values = torch.randn(2, 5, 8)
    with neutral_chance(attention.modules(), scaled=True):
        dropping = attention(values, values, values, need_weights=need_weights)[0]
    attention.dropout = 0.0
    plain = attention(values, values, values)[0]
    assert torch.allclose(dropping, 1.25 * plain, atol=1e-6)


def test_chance_of_python_and_numpy_starts_alike_and_leaves_no_trace() -> None:
    def drawn() -> list[float]:
        return [random.random(), float(np.random.rand())]  # noqa: NPY002 - what networks use

    random.seed(5)
    np.random.seed(5)  # noqa: NPY002 - the same
    after = drawn()
    random.seed(5)
    np.random.seed(5)  # noqa: NPY002 - the same
    found = []
    for _ in range(2):
        with neutral_chance([]):
            found.append(drawn())
    assert found[0] == found[1]
    assert drawn() == after


@pytest.mark.parametrize(
    ("module", "per_channel"),
    [
        pytest.param(nn.Dropout(0.3), False, id="Dropout"),
        pytest.param(nn.Dropout1d(0.3), True, id="Dropout1d"),
        pytest.param(nn.Dropout2d(0.3), True, id="Dropout2d"),
        pytest.param(nn.Dropout3d(0.3), True, id="Dropout3d"),
        pytest.param(nn.AlphaDropout(0.3), False, id="AlphaDropout"),
        pytest.param(nn.FeatureAlphaDropout(0.3), True, id="FeatureAlphaDropout"),
    ],
)
def test_every_dropout_is_measured_by_its_own_draws(module: Any, per_channel: bool) -> None:
    site = measure_dropout("drop", module, 0)
    assert site.probability == pytest.approx(0.3, abs=0.005)
    assert (site.draws == 360_000) is per_channel
    other = measure_dropout("drop", module, 0, seed=1)
    assert other.probability != site.probability

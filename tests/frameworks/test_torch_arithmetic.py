"""Simulated rounding: every element moves, by no more than the operator's floor allows."""

from __future__ import annotations

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402

from isograd.frameworks.base import Arithmetic  # noqa: E402
from isograd.frameworks.torch.arithmetic import computing, with_input_noise  # noqa: E402
from isograd.frameworks.torch.convert import to_value  # noqa: E402
from isograd.tensors import UNIT_ROUNDOFF  # noqa: E402

#: More than are moved at a time, and no multiple of it.
MANY = 70_001


def noisy(biased: bool = False, amplitude: float = 1.0) -> Arithmetic:
    return Arithmetic(operator_noise=True, biased=biased, amplitude=amplitude, seed=5)


def moved_by(given: torch.Tensor, arithmetic: Arithmetic) -> torch.Tensor:
    """How far `1.5 * given` is moved, in units in the last place of each element: float64."""
    exact = given.double() * 1.5
    with computing(arithmetic, {}):
        found = given * 1.5
    unit = 2 * UNIT_ROUNDOFF[str(given.dtype).removeprefix("torch.")]
    rounded = (given * 1.5).double()
    assert torch.allclose(rounded, exact, rtol=unit)
    return (found.double() - rounded) / (rounded.abs() * unit)


@pytest.mark.parametrize("shape", [(3,), (40, 30), (MANY,)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("is_transposed", [False, True])
def test_every_element_moves_by_up_to_a_unit_in_its_last_place(
    shape: tuple[int, ...], dtype: torch.dtype, is_transposed: bool
) -> None:
    given = torch.rand(shape, generator=torch.Generator().manual_seed(1)).add(1.0).to(dtype)
    found = moved_by(given.movedim(0, -1) if is_transposed else given, noisy(amplitude=4.0))
    # Stored in the dtype again: half a unit more, of a number that may be twice as large.
    assert found.abs().max() <= 4.0 + 1.0
    if given.numel() > 1000:
        assert 2.0 < found.square().mean().sqrt() < 2.6  # uniform: 4 / √3
        assert found.mean().abs() < 0.25
        assert len(found.flatten()[:2000].unique()) > (3 if dtype is not torch.float32 else 8)


def test_biased_rounding_moves_one_way() -> None:
    given = torch.rand(MANY, generator=torch.Generator().manual_seed(2)).add(1.0)
    found = moved_by(given, noisy(biased=True, amplitude=8.0))
    assert found.min() >= -0.5
    assert 3.5 < found.mean() < 4.5


def test_parts_of_a_large_tensor_are_drawn_independently() -> None:
    found = moved_by(torch.ones(4 * MANY), noisy(amplitude=1000.0))
    for lag in (1, 2, 3, 4, 1 << 15, 1 << 16):
        correlation = (found[:-lag] * found[lag:]).mean() / found.square().mean()
        assert abs(float(correlation)) < 0.02, lag


def test_what_is_not_finite_stays_beside_what_moves() -> None:
    given = torch.tensor([1.0, torch.inf, -torch.inf, torch.nan, 3e38, 0.0])
    with computing(noisy(amplitude=1e6), {}):
        found = given * 0.5
    assert found[1:3].tolist() == [torch.inf, -torch.inf]
    assert found[3].isnan()
    assert found[0] != 0.5
    assert found[5] == 0.0


def test_in_place_operators_move_what_they_write_to() -> None:
    given = torch.full((1000,), 1.25)
    columns = torch.full((10, 20), 1.25).T
    with computing(noisy(amplitude=1000.0), {}):
        given.mul_(1.6)
        columns.mul_(1.6)
    for found in (given, columns):
        assert found.mean() == pytest.approx(2.0, rel=1e-4)
        assert len(found.unique()) > 100


def test_floors_of_an_operator_widen_its_noise() -> None:
    given = torch.rand(MANY, generator=torch.Generator().manual_seed(3)).add(1.0)
    sizes = []
    for floors in ({}, {"mul": [[1.0, 50.0]]}):
        with computing(noisy(), floors):
            sizes.append(float((given * 1.5 - (given.double() * 1.5)).norm()))
    assert 30 < sizes[1] / sizes[0] < 60


def test_a_sparse_tensor_inside_a_network_is_left_alone() -> None:
    """Found by random network 80: `x.to_sparse()` raised under simulated rounding."""
    given = torch.rand(3, 4, generator=torch.Generator().manual_seed(3)).requires_grad_()
    with computing(noisy(amplitude=4.0), {}):
        found = torch.sparse.mm(given.to_sparse(), torch.eye(4))
        found.sum().backward()
    assert torch.allclose(found, given, rtol=0, atol=4e-6)
    assert given.grad is not None


def test_a_gradient_that_is_zero_everywhere_crashes_nothing() -> None:
    """Found by random network 431: the gradient of `sgn` is a tensor without memory."""
    given = torch.rand(3, 4, generator=torch.Generator().manual_seed(3)).requires_grad_()
    with computing(noisy(amplitude=4.0), {}):
        (given * 1.0).sgn().square().sum().backward()
    assert given.grad is not None
    assert not given.grad.any()


def test_a_gradient_without_memory_is_read_as_zeros() -> None:
    found = to_value(torch._efficientzerotensor((3, 4)))
    assert found.values.tolist() == [[0.0] * 4] * 3


def test_the_floor_of_a_glu_goes_by_its_gate() -> None:
    """Found by random network 247: MindSpore's sigmoid is coarse near a third, of gates too."""
    gate = torch.tensor([0.35, 8.0, -0.35]).repeat(1000, 1)
    floors = {"glu.positive": [[0.1, 1.0], [0.35, 100.0], [2.0, 1.0]]}
    exact = F.glu(torch.cat((torch.ones_like(gate), gate), 1), 1)
    with computing(noisy(), floors):
        found = F.glu(torch.cat((torch.ones_like(gate), gate), 1), 1)
    unit = 2 * UNIT_ROUNDOFF["float32"]
    coarse, fine, other_side = ((found - exact) / (exact * unit)).abs().amax(0).tolist()
    assert 90 < coarse <= 101
    assert max(fine, other_side) <= 2


@pytest.mark.parametrize(
    ("function", "low", "high"),
    [
        pytest.param(torch.sigmoid, 0.0, 1.0, id="sigmoid"),
        pytest.param(lambda x: torch.softmax(50 * x, -1), 0.0, 1.0, id="softmax"),
        pytest.param(torch.tanh, -1.0, 1.0, id="tanh"),
        pytest.param(torch.sin, -1.0, 1.0, id="sin"),
    ],
)
def test_noise_leaves_no_range(function: Any, low: float, high: float) -> None:
    given = torch.linspace(-20, 20, 4001)  # mostly saturated, where a step up is out of the range
    with computing(noisy(amplitude=50.0), {}):
        found = function(given)
    assert found.min() >= low
    assert found.max() <= high
    assert (found != function(given)).any()


def test_what_computes_nothing_has_no_rounding_error() -> None:
    given = torch.rand(1000, generator=torch.Generator().manual_seed(3))
    with computing(noisy(amplitude=50.0), {}):
        assert torch.equal((given * 1 + 0) / 1 - 0.0, given)
        assert not torch.equal(given * 2, given + given)


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(lambda x: torch.aminmax(x, dim=1)[0], id="aminmax"),
        pytest.param(lambda x: x.amax(1), id="amax"),
        pytest.param(lambda x: x.max(), id="max"),
        pytest.param(lambda x: x.median(), id="median"),
        pytest.param(lambda x: x.nanmedian(), id="nanmedian"),
        pytest.param(lambda x: x.kthvalue(2, 1)[0], id="kthvalue"),
        pytest.param(lambda x: x.cummax(1)[0], id="cummax"),
        pytest.param(lambda x: torch.linalg.vector_norm(x, torch.inf), id="greatest norm"),
        pytest.param(lambda x: x.norm(-torch.inf, 1), id="least norm"),
        pytest.param(lambda x: torch.cdist(x, x + 1, torch.inf), id="greatest distance"),
        pytest.param(lambda x: F.pdist(x, torch.inf), id="greatest distance of rows"),
        pytest.param(lambda x: torch.linalg.matrix_norm(x, torch.inf), id="norm of a matrix"),
        pytest.param(lambda x: F.adaptive_max_pool1d(x[None], 2), id="pooling"),
    ],
)
def test_a_selected_number_is_found_again_by_its_gradient(function: Any) -> None:
    """The gradient goes where the input equals the result; a moved result equals nothing."""
    given = torch.randn(4, 5, generator=torch.Generator().manual_seed(3))

    def gradient(arithmetic: Arithmetic) -> torch.Tensor:
        leaf = given.clone().requires_grad_()
        with computing(arithmetic, {}):
            result = function(leaf)
            (result * torch.arange(1, 1 + result.numel()).view(result.shape)).sum().backward()
        assert leaf.grad is not None
        return leaf.grad

    exact = gradient(Arithmetic())
    assert exact.abs().max() > 0
    torch.testing.assert_close(gradient(noisy()), exact, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("size", [1e-30, 1.0, 1e25])
@pytest.mark.parametrize(
    "function",
    [
        pytest.param(lambda x: x.sum(0), id="sum"),
        pytest.param(lambda x: x.mean(), id="mean"),
        pytest.param(lambda x: x @ torch.ones((40, 3), dtype=x.dtype), id="matrix product"),
        pytest.param(lambda x: x.cumsum(0), id="cumulative sum"),
    ],
)
def test_noise_of_sums_goes_with_their_size(function: Any, size: float) -> None:
    """Squares of partial sums leave float32 beyond 1e19 and below 1e-23; their noise does not."""
    given = torch.rand((50, 40), generator=torch.Generator().manual_seed(3)) + 0.5
    with computing(noisy(amplitude=8.0), {}):
        usual, found = function(given), function(given * size)
    share, wanted = (
        (value.double() / function(given.double() * by) - 1).square().mean().sqrt()
        for value, by in ((found, float(torch.tensor(size))), (usual, 1.0))
    )
    assert 0.3 < share / wanted < 3.0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_input_noise_leaves_whole_numbers_as_they_are(dtype: torch.dtype) -> None:
    """A mask that is compared with 0 must be the same mask in every noisy run."""
    whole = torch.tensor([0.0, -0.0, 1.0, -2.0, 117.0, math.inf]).repeat(50).to(dtype)
    other = torch.full((300,), 0.3, dtype=dtype)
    found = with_input_noise(torch.cat([whole, other]), Arithmetic(input_noise=True, seed=3), 0)
    assert torch.equal(found[:300], whole)
    assert 0.2 < (found[300:] != other).float().mean() < 0.9


def degrees() -> Any:
    ones = torch.ones(4)
    return torch.zeros(4).index_add(0, torch.tensor([0, 0, 2, 2]), ones)


@pytest.mark.parametrize(
    "function",
    [
        degrees,
        lambda: 1.0 - torch.tensor([0.0, 1.0, 0.0]),
        lambda: (torch.eye(5).tril() @ torch.ones(5, 5)).sum(0) - 3,
        lambda: torch.ones(3, 4).cumsum(1) * 2 % 3,
    ],
)
def test_whole_numbers_of_whole_numbers_are_exact(function: Any) -> None:
    """Counts and masks that a network makes itself are the same in every implementation."""
    expected = function()
    with computing(Arithmetic(operator_noise=True, amplitude=8.0, seed=5), {}):
        found = function()
    assert torch.equal(found, expected)


@pytest.mark.parametrize(
    "function",
    [
        lambda: torch.full((70,), 2.0) * 0.3,
        lambda: torch.full((70,), 4097.0) * 4099.0,  # beyond 2 ** 24: rounded
        lambda: torch.ones(70) / 3.0,
        lambda: torch.full((70,), 0.5) + 1,
        lambda: torch.ones(70, dtype=torch.bfloat16) * 300,
    ],
)
def test_what_is_rounded_moves_beside_whole_numbers(function: Any) -> None:
    expected = function()
    with computing(Arithmetic(operator_noise=True, amplitude=8.0, seed=5), {}):
        found = function()
    assert not torch.equal(found, expected)

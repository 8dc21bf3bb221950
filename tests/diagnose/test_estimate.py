"""A number is found from the port's tensors, with an interval, and read as people write it."""

from __future__ import annotations

import numpy as np
import pytest

from isograd.diagnose.estimate import Estimate, estimate, rounded
from isograd.diagnose.hypothesis import Number, Scale
from isograd.diagnose.matched_filter import Vector, weights_of
from isograd.frameworks.base import Tensors
from isograd.tensors import Array, TensorValue

GENERATOR = np.random.default_rng(1)
INPUT = GENERATOR.standard_normal((32, 48))


def normalised(eps: float) -> dict[str, Array]:
    return {"y": INPUT / np.sqrt(INPUT.var(axis=1, keepdims=True) + eps)}


def scaled(factor: float) -> dict[str, Array]:
    return {"y": factor * INPUT}


class Judge:
    """An experiment with noise of a given size."""

    threshold = 5.0

    def __init__(self, port: dict[str, Array], noise: float) -> None:
        self.noise = noise
        draw = GENERATOR.standard_normal
        self.port: Tensors = {
            k: TensorValue(v + noise * draw(v.shape), "float32") for k, v in port.items()
        }
        self.weights: dict[str, Vector] = weights_of(port)
        self.replicates: list[dict[str, Array]] = [
            {k: noise * draw(v.shape) for k, v in port.items()} for _ in range(6)
        ]

    def ratio(self, tensors: dict[str, Array]) -> float:
        gap = np.linalg.norm(self.port["y"].values - tensors["y"])
        return float(gap / (self.noise * np.sqrt(INPUT.size)))

    def cost(self, tensors: dict[str, Array]) -> float:
        return self.ratio(tensors) ** 2


EPS = Number("eps", (1e-5, 1e-3, 1e-6, 1e-7))


@pytest.mark.parametrize("true", [1e-3, 2e-4, 0.03, 1e-5])
def test_an_eps_is_estimated(true: float) -> None:
    found = estimate(EPS, normalised, Judge(normalised(true), 1e-7))
    assert found is not None
    assert found.value == pytest.approx(true, rel=1e-6)
    assert found.low <= true <= found.high
    assert not found.floor


def test_an_eps_that_vanishes_in_the_noise_is_a_class() -> None:
    found = estimate(EPS, normalised, Judge(normalised(1e-9), 1e-6))
    assert found is not None
    assert found.floor
    assert found.low == 0.0
    assert 1e-9 < found.high < 1e-4


@pytest.mark.parametrize("true", [2.0, -0.5, 0.353553])
def test_a_factor_is_estimated(true: float) -> None:
    found = estimate(Number("factor", (1.0, 2.0), Scale.LINEAR), scaled, Judge(scaled(true), 1e-7))
    assert found is not None
    assert found.value == pytest.approx(true, rel=1e-5)


def test_what_cannot_be_computed_is_not_estimated() -> None:
    judge = Judge(scaled(2.0), 1e-7)
    found: Estimate | None = estimate(Number("factor", (1.0,), Scale.LINEAR), lambda _: None, judge)
    assert found is None


@pytest.mark.parametrize(
    ("value", "low", "high", "short"),
    [
        (0.19999, 0.1998, 0.2001, 0.2),
        (0.0123456, 0.012345, 0.012346, 0.012346),
        (1.0003e-3, 0.9e-3, 1.1e-3, 1e-3),
    ],
)
def test_round_numbers_are_preferred(value: float, low: float, high: float, short: float) -> None:
    assert rounded(value, low, high) == pytest.approx(short)

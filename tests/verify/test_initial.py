"""The rule by which a layer's initial values look drawn, from few and from many values."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from isograd.tensors import Array
from isograd.verify.initial import distribution

Draw = Callable[[np.random.Generator, int], Array]


def normal(deviation: float) -> Draw:
    return lambda rng, count: rng.normal(0, deviation, count)


def uniform(bound: float) -> Draw:
    return lambda rng, count: rng.uniform(-bound, bound, count)


@pytest.mark.parametrize(
    ("draw", "count", "fans", "written"),
    [
        pytest.param(normal(1), 78, (6, 13), "Normal(1)", id="an embedding of 13 x 6"),
        pytest.param(normal(1), 24, (0, 0), "Normal(1)", id="24 values without fans"),
        pytest.param(normal(0.02), 5_000, (0, 0), "Normal(0.02)", id="many values"),
        pytest.param(normal(0.01), 30, (0, 0), "Normal(0.01)", id="MindSpore's embedding of 30"),
        pytest.param(normal(math.sqrt(2 / 27)), 432, (27, 144), "HeNormal()", id="he normal"),
        pytest.param(
            uniform(0.25),
            48,
            (16, 3),
            "HeUniform(negative_slope=math.sqrt(5))",
            id="dense of 3 x 16",
        ),
        pytest.param(
            uniform(1 / math.sqrt(512)),
            262_144,
            (512, 512),
            "HeUniform(negative_slope=math.sqrt(5))",
            id="a wide dense",
        ),
        pytest.param(uniform(3.0), 2_000, (0, 0), "Uniform(", id="no rule: what was measured"),
    ],
)
def test_the_rule_is_named_by_its_values(
    draw: Draw, count: int, fans: tuple[int, int], written: str
) -> None:
    found = [
        distribution(draw(np.random.default_rng(seed), count), *fans).initializer
        for seed in range(40)
    ]
    assert sum(one.startswith(written) for one in found) >= 39

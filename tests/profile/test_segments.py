"""AllReduce segments: the optimum is that of trying every cut."""

from __future__ import annotations

import random

import numpy as np
import pytest

from isograd.errors import UsageError
from isograd.profile.communication.cost import Measured, fit_affine
from isograd.profile.communication.segments import (
    Affine,
    Segments,
    best_segments,
    fewest_segments,
    finish,
)
from isograd.profile.communication.settings import mindspore_settings, torch_settings


def _instance(source: random.Random) -> tuple[np.ndarray, np.ndarray, Affine]:
    count = source.randint(1, 9)
    ready = np.cumsum([source.expovariate(1) * (source.random() > 0.2) for _ in range(count)])
    size = np.asarray([source.expovariate(1) for _ in range(count)])
    return ready, size, Affine(source.expovariate(2), source.expovariate(1))


def _every_cut(count: int) -> list[list[int]]:
    masks = range(1 << (count - 1))
    return [[k + 1 for k in range(count - 1) if mask >> k & 1] + [count] for mask in masks]


@pytest.mark.parametrize("seed", range(4))
def test_the_best_cut_is_that_of_trying_all(seed: int) -> None:
    source = random.Random(seed)
    for _ in range(75):
        ready, size, cost = _instance(source)
        cuts = _every_cut(ready.size)
        times = [finish(cut, ready, size, cost) for cut in cuts]
        linear = best_segments(ready, size, cost)
        quadratic = best_segments(ready, size, lambda n, cost=cost: cost(n))
        assert linear.finish_s == pytest.approx(min(times), abs=1e-12)
        assert quadratic.finish_s == pytest.approx(min(times), abs=1e-12)
        assert finish(linear.ends, ready, size, cost) == pytest.approx(linear.finish_s, abs=1e-12)
        allowed = ready[-1] + (min(times) - ready[-1]) * 1.05 + 1e-12
        fewest = min(len(cut) for cut, time in zip(cuts, times, strict=True) if time <= allowed)
        found = fewest_segments(ready, size, cost)
        assert len(found.ends) == fewest
        assert finish(found.ends, ready, size, cost) == pytest.approx(found.finish_s, abs=1e-12)


def test_a_measured_cost_with_a_step_is_exact() -> None:
    cost = Measured(np.asarray([1.0, 4.0, 5.0, 16.0]), np.asarray([1.0, 1.0, 3.0, 4.0]))
    source = random.Random(9)
    for _ in range(60):
        ready, size, _ = _instance(source)
        times = [finish(cut, ready, size * 3, cost) for cut in _every_cut(ready.size)]
        assert best_segments(ready, size * 3, cost).finish_s == pytest.approx(min(times))


def test_latency_joins_and_bandwidth_cuts() -> None:
    ready, size = np.arange(8.0), np.ones(8)
    assert best_segments(ready, size, Affine(100.0, 0.0)).ends == (8,)
    assert len(best_segments(ready, size, Affine(0.0, 0.9)).ends) == 8


def test_cost_is_fitted_from_messages() -> None:
    sizes = np.asarray([1e3, 1e5, 1e6, 1e7])
    found = fit_affine(sizes, 2e-4 + 3e-10 * sizes)
    assert found is not None
    assert (found.a_s, found.b_s_per_byte) == (pytest.approx(2e-4), pytest.approx(3e-10))
    assert fit_affine(np.full(5, 7.0), np.full(5, 1.0)) is None


def test_settings_are_code() -> None:
    segments = Segments((4, 8), 1.0)
    assert "all_reduce_fusion_config=[3, 7]" in mindspore_settings(segments)
    assert "bucket_cap_mb=2" in torch_settings(segments, np.full(8, float(1 << 19)))


@pytest.mark.parametrize(
    ("ready", "size", "message"),
    [
        pytest.param([1.0, 0.5], [1.0, 1.0], "ready times fall", id="clocks that go back"),
        pytest.param([1.0], [1.0, 1.0], "1 ready times and 2 sizes", id="lengths differ"),
        pytest.param([float("nan")], [1.0], "not finite", id="nan"),
        pytest.param([], [], "0 ready times", id="nothing"),
    ],
)
def test_malformed_input_is_refused(ready: list[float], size: list[float], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        best_segments(np.asarray(ready), np.asarray(size), Affine(1.0, 1.0))

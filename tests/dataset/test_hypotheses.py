"""Each hypothesis on its own examples: the cause is named, proved, and named for nothing else."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from isograd.data.hypotheses import neutral
from isograd.data.hypotheses.base import Example, Hypothesis, Observation
from isograd.data.hypotheses.decide import Decision, decide
from isograd.data.hypotheses.library import HYPOTHESES


def observe(example: Example, count: int = 8) -> list[Observation]:
    """Samples of both sides of an example."""
    names = [name for name in dir(neutral) if not name.startswith("_")]
    functions = SimpleNamespace(**{name: getattr(neutral, name) for name in names})
    found = []
    for seed in range(count):
        scope = {"np": np, "f": functions, "rng": np.random.default_rng(seed)}
        x = eval(example.x, scope)
        a, b = (eval(side, scope | {"x": x}) for side in (example.a, example.b))
        found.append(Observation(np.asarray(a), np.asarray(b), x if example.sees_input else None))
    return found


def _cases(kind: str) -> list[object]:
    return [
        pytest.param(hypothesis, example, id=f"{hypothesis.id}: {example.b[:40]}")
        for hypothesis in HYPOTHESES
        for example in getattr(hypothesis, kind)
    ]


@pytest.mark.parametrize(("hypothesis", "example"), _cases("examples"))
def test_its_example_is_explained_by_it(hypothesis: Hypothesis, example: Example) -> None:
    found = decide(observe(example))
    assert found is not None
    assert hypothesis.id in (found.id, *found.alternatives)
    assert found.proved
    if example.port:
        assert found.candidate.port == example.port


@pytest.mark.parametrize(("hypothesis", "example"), _cases("counterexamples"))
def test_its_counterexample_is_not(hypothesis: Hypothesis, example: Example) -> None:
    found: Decision | None = decide(observe(example))
    assert found is None or found.id != hypothesis.id


def test_a_difference_of_no_known_cause_is_not_explained() -> None:
    example = Example("x", "x + rng.standard_normal(x.shape)", "rng.random((6, 9))")
    assert decide(observe(example)) is None


def test_an_order_of_channels_and_another_mean_are_found_together() -> None:
    example = Example(
        "x", "(x[::-1] - np.float32(.3)) * np.float32(2.5)", "rng.random((3, 8, 8)).astype('f')"
    )
    found = decide(observe(example))
    assert found is not None
    assert (found.id, found.also) == ("data.channel_order", "data.normalize")


def test_channels_exchanged_before_a_mean_are_mended_by_exchanging_them() -> None:
    mean, deviation = "np.float32([.4, .5, .6])", "np.float32([.2, .3, .4])"
    example = Example(
        f"(x - {mean}) / {deviation}",
        f"(x[..., ::-1] - {mean}) / {deviation}",
        "rng.random((8, 8, 3)).astype('f')",
    )
    found = decide(observe(example))
    assert found is not None
    assert (found.id, found.also) == ("data.channel_order", "data.normalize")
    assert found.candidate.fix.startswith("Convert after reading")
    assert "same mean" not in found.candidate.fix


def test_another_size_alone_is_mended_by_the_size() -> None:
    example = Example(
        "f.pillow_resize(x, height=16, width=16, name='bilinear')",
        "f.pillow_resize(x, height=20, width=16, name='bilinear')",
        "rng.integers(0, 256, (40, 30, 3), dtype=np.uint8)",
        sees_input=True,
    )
    found = decide(observe(example))
    assert found is not None
    assert found.id == "data.resize"
    assert found.candidate.text == (
        "B resizes to 20 × 16 by bilinear, antialiased, A to 16 × 16 by bilinear, antialiased"
    )
    assert found.candidate.fix.startswith("Give both one size, 16 × 16")
    assert "antialias" not in found.candidate.fix


def test_a_cause_that_holds_on_the_fitted_samples_only_is_not_named() -> None:
    observations = observe(Example("x", "x + 1", "np.asarray(rng.integers(0, 50))"))
    odd = [Observation(one.a, one.a + 2) for one in observations[-2:]]
    assert decide([*observations[:-2], *odd]) is None

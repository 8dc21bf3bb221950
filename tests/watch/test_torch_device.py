"""Statistics that are measured on a tensor's device are those that the host measures.

There is no device on the machine of the tests: its functions are given tensors of the host.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import isograd
from isograd.runs.reader import Run
from isograd.watch import looks

torch = pytest.importorskip("torch")
torch_device = pytest.importorskip("isograd.watch.torch_device")
torch_looks = pytest.importorskip("isograd.watch.torch_looks")

NUMBERS = st.floats(width=32) | st.sampled_from([0.0, math.inf, -math.inf, math.nan, 1.0])
SHAPES = arrays.array_shapes(min_dims=1, max_dims=4, max_side=5)


def fetched(values: Any, dtype: Any = torch.float32) -> Any:
    tensor = torch.from_numpy(values).to(dtype)
    return torch_device.fetch([torch_device.measure(tensor, wants_dead=True)])[0]


@given(arrays.arrays(np.float32, SHAPES, elements=NUMBERS))
@settings(max_examples=200, deadline=None)
def test_a_row_is_the_hosts(values: Any) -> None:
    with np.errstate(all="ignore"):
        expected = looks.extended_row(values)
    np.testing.assert_allclose(fetched(values).row, expected, rtol=2e-6, atol=1e-30)


@given(arrays.arrays(np.float32, SHAPES, elements=st.sampled_from([0.0, 0.0, 0.0, 2.0])))
@settings(max_examples=100, deadline=None)
def test_dead_channels_are_the_hosts(values: Any) -> None:
    np.testing.assert_allclose(fetched(values).dead, looks.dead_share(values), rtol=1e-6)


@pytest.mark.parametrize("size", [1, 100, looks.SAMPLE, 3 * looks.SAMPLE + 1])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_a_sample_is_the_hosts(size: int, dtype: str) -> None:
    values = np.random.default_rng(0).normal(size=size).astype(np.float32)
    tensor = torch.from_numpy(values).to(getattr(torch, dtype))
    expected = looks.sample_of(tensor.double().numpy())
    for found in (torch_device.fetch_samples([tensor])[0], fetched(values, tensor.dtype).sample):
        assert np.array_equal(found.astype(np.float64), expected)


def test_all_is_fetched_in_the_order_in_which_it_was_measured() -> None:
    kinds = [torch.float16, torch.float32, torch.float16, torch.float64]
    given = [torch.full((2, at + 1), float(at), dtype=kind) for at, kind in enumerate(kinds)]
    found = torch_device.fetch(
        [torch_device.measure(t, wants_dead=at % 2 == 0) for at, t in enumerate(given)]
    )
    assert [one.row[:4] for one in found] == [[2.0 * (at + 1), 0, 0, at] for at in range(4)]
    assert [one.dead for one in found] == [
        1.0,
        pytest.approx(math.nan, nan_ok=True),
        0.0,
        pytest.approx(math.nan, nan_ok=True),
    ]


def test_of_a_tensor_that_is_gone_the_sample_tells() -> None:
    values = torch.ones(4 * looks.SAMPLE)
    values[0] = math.nan
    measured = torch_device.measure(values)
    del values
    (found,) = torch_device.fetch([measured])
    assert found.row[:4] == [4.0 * looks.SAMPLE, 4.0, 0.0, 1.0]


def _train(folder: Path) -> Any:
    torch.manual_seed(0)
    layers = (
        torch.nn.Conv2d(3, 8, 3),
        torch.nn.BatchNorm2d(8),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(8 * 36, 8),
        torch.nn.Sigmoid(),
        torch.nn.Linear(8, 4),
    )
    model = torch.nn.Sequential(*layers)
    model[4].bias.requires_grad_(False)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    with isograd.watch(model, folder, optimizer=optimizer, every=1):
        for _ in range(4):
            x, y = torch.randn(6, 3, 8, 8), torch.randint(0, 4, (6,))
            loss = torch.nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return isograd.watch(folder)


def test_a_training_on_a_device_is_reported_as_one_on_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = _train(tmp_path / "host")
    monkeypatch.setattr(torch_looks, "is_elsewhere", lambda tensor: tensor.is_floating_point())
    device = _train(tmp_path / "device")
    assert [(a.code, a.module, a.tensor) for a in device.alerts] == [
        (a.code, a.module, a.tensor) for a in host.alerts
    ]
    here, there = (Run(tmp_path / name).statistics for name in ("host", "device"))
    assert here.columns == there.columns
    assert len(here.columns) > 50
    for name in here.columns:
        np.testing.assert_allclose(
            here.series(name)[1], there.series(name)[1], rtol=1e-5, atol=1e-7
        )
    for one, other in zip(host.curves, device.curves, strict=True):
        np.testing.assert_allclose(one.values, other.values, rtol=1e-5)

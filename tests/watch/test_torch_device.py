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


@given(arrays.arrays(np.float32, SHAPES, elements=NUMBERS))
@settings(max_examples=200, deadline=None)
def test_a_row_is_the_hosts(values: Any) -> None:
    found = torch_device.row_of(torch.from_numpy(values)).numpy()
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(found, looks.extended_row(values), rtol=1e-6, atol=1e-30)


@given(arrays.arrays(np.float32, SHAPES, elements=st.sampled_from([0.0, 0.0, 0.0, 2.0])))
@settings(max_examples=100, deadline=None)
def test_dead_channels_are_the_hosts(values: Any) -> None:
    found = float(torch_device.dead_share(torch.from_numpy(values)))
    np.testing.assert_allclose(found, looks.dead_share(values), rtol=1e-6)


@pytest.mark.parametrize("size", [1, 100, torch_device.SAMPLE, 3 * torch_device.SAMPLE + 1])
def test_samples_and_what_is_made_of_them_are_the_hosts(size: int) -> None:
    draw = np.random.default_rng(0)
    before, after = (draw.normal(size=size).astype(np.float32) for _ in range(2))
    here = [looks.sample_of(values).astype(np.float64) for values in (before, after)]
    there = [torch_device.sample_of(torch.from_numpy(values)) for values in (before, after)]
    assert all(np.array_equal(a, b) for a, b in zip(here, there, strict=True))
    ratio, is_same = torch_device.change_of(*there).tolist()
    assert (ratio, is_same) == (pytest.approx(looks.change_of(*here), rel=1e-6), 0.0)
    assert torch_device.change_of(there[0], there[0]).tolist() == [0.0, 1.0]
    inside = float(torch_device.inside_share(torch.from_numpy(before), (-0.5, 1.0)))
    assert inside == pytest.approx(looks.inside_share(before, (-0.5, 1.0)))


def test_rows_of_host_and_device_keep_their_order() -> None:
    rows = [torch.tensor([1.0, 2.0]), [3.0], torch.tensor([4.0]), torch.tensor([5.0, 6.0])]
    assert torch_device.landed(rows) == [[1.0, 2.0], [3.0], [4.0], [5.0, 6.0]]


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

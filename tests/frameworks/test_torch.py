"""The torch adapter keeps the guarantees that isograd relies on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isograd.frameworks.base import Arithmetic, Framework, ReplayRequest, SideSpec
from isograd.frameworks.kernels import SIGNS
from isograd.frameworks.registry import open_framework
from isograd.frameworks.torch.adapter import TorchFramework
from isograd.tensors import TensorValue
from isograd.testing import FrameworkConformance, side_of
from isograd.testing.values import assert_same

DATA = Path(__file__).resolve().parent.parent / "data"


class TestTorch(FrameworkConformance):
    """All guarantees."""

    def open(self) -> Framework:
        pytest.importorskip("torch")
        return open_framework("torch")

    def side(self) -> SideSpec:
        return side_of("torch", DATA / "conformance_torch.py")

    def test_a_track_lends_its_state_and_takes_its_parameters_from_the_next_one(
        self,
        framework: Framework,
        inputs: dict[str, TensorValue],
        targets: list[TensorValue],
    ) -> None:
        assert isinstance(framework, TorchFramework)
        for track in ("kept", "emptied"):
            framework.start_training(track)
        before = framework.state()
        for _ in range(2):
            kept = framework.train_step("kept", before, inputs, targets)
            lent = framework.train_step("emptied", before, inputs, targets, lent=True)
            for name, parameter in framework._tracks["emptied"].model.named_parameters():
                own = parameter.detach().numpy()
                assert np.shares_memory(lent[f"state.{name}"].values, own), name
            framework.empty_track("emptied", before)
            assert_same(lent, kept)
        parameters = list(framework._tracks["emptied"].model.parameters())
        assert all(p.numel() == 0 and p.grad is None for p in parameters)
        with pytest.raises(AssertionError, match="given no state"):
            framework.train_step("emptied", None, inputs, targets)


IN_PLACE = """
import torch
from torch import nn


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(4, 4))

    def forward(self, x):
        y = x * 2
        return y + self.block(y)


def build():
    return Residual()
"""


def test_an_input_that_a_pinned_call_changes_is_changed_in_a_replay(tmp_path: Path) -> None:
    """Else the sum would be of the unchanged y, and a faithful port would differ from it."""
    pytest.importorskip("torch")
    (tmp_path / "net.py").write_text(IN_PLACE)
    framework = open_framework("torch")
    framework.build(SideSpec("torch", "net.py:build", str(tmp_path)), 0)
    x = TensorValue(np.array([[-1.0, 2.0, -3.0, 4.0]], np.float32), "float32")
    framework.forward("eval", {"0": x}, [], record=True)
    calls = framework.calls()
    (block,) = [i for i, call in enumerate(calls) if call.module == "block"]
    again = framework.replay(ReplayRequest(0, (block,), (), ((),)))
    recorded = framework.recorded(0)["output.0"]
    np.testing.assert_array_equal(again["output.0"].values, recorded.values)
    np.testing.assert_array_equal(again["input_of.0.0"].values, 2 * x.values)


def ones(*shape: int) -> Any:
    torch = pytest.importorskip("torch")
    return torch.ones(shape, requires_grad=True)


@pytest.mark.parametrize(
    ("kind", "x", "weight", "settings"),
    [
        ("conv2d", (2, 6, 12, 12), (4, 6, 3, 3), {}),
        ("conv2d", (2, 6, 12, 12), (4, 3, 3, 3), {"groups": 2}),
        ("conv2d", (2, 6, 12, 12), (4, 6, 4, 4), {"stride": 2}),
        ("conv1d", (3, 6, 20), (4, 6, 5), {"dilation": 2}),
        ("conv3d", (2, 2, 7, 7, 7), (4, 2, 3, 3, 3), {}),
        ("conv_transpose2d", (2, 6, 9, 9), (6, 4, 4, 4), {"stride": 2}),
        ("conv_transpose2d", (2, 6, 9, 9), (6, 2, 3, 3), {"groups": 2}),
    ],
)
def test_the_terms_of_a_convolution(
    kind: str,
    x: tuple[int, ...],
    weight: tuple[int, ...],
    settings: dict[str, int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of ones, an element in the middle is the number of its terms; so are those of gradients."""
    torch = pytest.importorskip("torch")
    from isograd.frameworks.torch import arithmetic

    counted: dict[str, int] = {}

    def note(_: object, name: str, args: tuple[Any, ...]) -> float:
        counted[name] = arithmetic._terms(name, args)
        return 1.0

    monkeypatch.setattr(arithmetic, "_floor", note)
    given, by = ones(*x), ones(*weight)
    with arithmetic.computing(Arithmetic(operator_noise=True, amplitude=0.0), {}):
        output = getattr(torch.nn.functional, kind)(given, by, **settings)
        output.sum().backward()
    assert counted == {
        "convolution": int(output.max()),
        "convolution_backward": int(given.grad.max()),
        "convolution_backward.weight": int(by.grad.max()),
    } | {name: 0 for name in counted if not name.startswith("convolution")}


def test_floors_near_a_number_lie_between_the_measured_ones() -> None:
    torch = pytest.importorskip("torch")
    from isograd.frameworks.torch.arithmetic import _raised_near

    values = torch.tensor([100.0, 10.0, 1.0, 0.01, 0.0, -5.0])
    found = _raised_near([[0.1, 2.0], [10.0, 8.0]], values, 1.5)
    assert found.tolist() == pytest.approx([8.0, 8.0, 4.0, 2.0, 1.5, 1.5])


@pytest.mark.parametrize("is_in_place", [False, True])
@pytest.mark.parametrize("sign", [-1, 1])
def test_each_sign_has_a_floor_of_its_own(sign: int, is_in_place: bool) -> None:
    """MindSpore's exponential is coarse there; an in-place SiLU no longer has its input after."""
    torch = pytest.importorskip("torch")
    from isograd.frameworks.torch.arithmetic import computing

    floors = {f"silu.{SIGNS[sign]}": [[0.1, 1000.0], [10.0, 1000.0]]}
    values = torch.linspace(-4, 4, 400)
    exact = torch.nn.functional.silu(values.double())
    with computing(Arithmetic(operator_noise=True, seed=3), floors):
        given = values.clone()
        found = torch.nn.functional.silu(given, inplace=is_in_place)
    units = ((found.double() - exact) / exact).abs() / 2.0**-24
    assert float(units[sign * values > 0].median()) > 300
    assert float(units[sign * values < 0].median()) < 4


@pytest.mark.parametrize("biased", [False, True])
def test_few_elements_are_never_moved_by_next_to_nothing(biased: bool) -> None:
    """Else the envelope of a loss would be as small as its draws happen to be."""
    torch = pytest.importorskip("torch")
    from isograd.frameworks.torch.arithmetic import computing

    for seed in range(50):
        with computing(Arithmetic(operator_noise=True, biased=biased, seed=seed, amplitude=64), {}):
            found = torch.tensor([0.5]) * 2.0
        assert 0.5 <= abs(float(found) - 1.0) * 2.0**23 / 64 <= 1.0


@pytest.mark.parametrize("masked", [-100.0, -1e9, float("-inf")])
@pytest.mark.parametrize("shift", [0.0, 64.0])
def test_what_a_softmax_makes_nothing_of_does_not_lower_its_floor(
    masked: float, shift: float
) -> None:
    """MindSpore's softmax is coarse of small inputs: a mask of -100 beside them changes nothing."""
    torch = pytest.importorskip("torch")
    from isograd.frameworks.torch.arithmetic import computing

    inputs = torch.randn(32, 16, generator=torch.Generator().manual_seed(0)).double()
    inputs[:, 8:] = -1e30
    beside = torch.where(inputs > -1e29, inputs + shift, masked).float()
    exact = torch.softmax(beside.double(), -1)
    floors = {"_softmax": [[1.0, 50.0], [4.0, 1.0]]}
    with computing(Arithmetic(operator_noise=True, seed=1), floors):
        found = torch.softmax(beside, -1)
    error = float((found.double() - exact).norm() / exact.norm())
    assert 10 * 2.0**-24 < error < 100 * 2.0**-24

"""Arithmetic and bytes of operators, against counts by hand and torch's own; the roof; the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mindspore
import numpy as np
import pytest
import torch
from mindspore import nn as mindspore_nn
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

import isograd
from isograd.cli.entry import main
from isograd.profile.analyse.rates import Rate, rates
from isograd.profile.model import Operator, Peaks, Phase, Profile, SourceOperator


def _operator(name: str, shapes: str, dtypes: str = "float", **more: Any) -> Operator:
    return Operator(name, shapes, dtypes, 1, 1e-3, 1e-3, **more)


def _call(name: str, shapes: str, results: str) -> SourceOperator:
    return SourceOperator(name, shapes, "float", "", "", Phase.FORWARD, result_shapes=results)


FORWARD = _call("aten::convolution", "2×3×8×8, 6×3×3×3", "2×6×6×6")
INNER = _operator(
    "aten::mkldnn_convolution", "2×3×8×8, 6×3×3×3",
    callers=(("aten::convolution", "2×3×8×8, 6×3×3×3", "float"),),
)  # fmt: skip
BACKWARD = "2×6×6×6, 2×3×8×8, 6×3×3×3"


@pytest.mark.parametrize(
    ("operator", "sources", "flops", "numbers"),
    [
        pytest.param(
            _operator("aten::mm", "4×8, 8×16"), (), 2 * 4 * 8 * 16, 32 + 128 + 64, id="product"
        ),
        pytest.param(
            _operator("aten::addmm", "16, 4×8, 8×16"), (), 2 * 4 * 8 * 16, 16 + 32 + 128 + 64,
            id="product and sum",
        ),
        pytest.param(
            _operator("aten::bmm", "3×4×8, 3×8×16"), (), 3 * 2 * 4 * 8 * 16, 3 * (32 + 128 + 64),
            id="batch of products",
        ),
        pytest.param(
            INNER, (FORWARD,), 2 * (2 * 6 * 36) * 27, 2 * 3 * 64 + 6 * 27 + 2 * 6 * 36,
            id="convolution",
        ),
        pytest.param(
            _operator("aten::convolution_backward", BACKWARD),
            (_call("aten::convolution_backward", BACKWARD, "2×3×8×8, 6×3×3×3, 6"),),
            4 * (2 * 6 * 36) * 27, 2 * 6 * 36 + 2 * 3 * 64 + 6 * 27, id="both gradients",
        ),
        pytest.param(
            _operator("aten::convolution_backward", BACKWARD),
            (_call("aten::convolution_backward", BACKWARD, "6×3×3×3, 6"),),
            2 * (2 * 6 * 36) * 27, 2 * 6 * 36 + 2 * 3 * 64 + 6 * 27 + 2 * 6 * 36,
            id="the first layer needs no gradient of its input",
        ),
    ],
)  # fmt: skip
def test_arithmetic_and_bytes(
    operator: Operator, sources: tuple[SourceOperator, ...], flops: float, numbers: int
) -> None:
    (rate,) = rates(Profile("example", device="CPU", source_operators=sources), [operator])
    assert (rate.flops, rate.size_bytes) == (flops, numbers * 4)
    assert rate.flops_per_s == pytest.approx(flops / 1e-3)


@pytest.mark.parametrize(
    ("operator", "device"),
    [
        pytest.param(_operator("aten::relu", "4×8"), "CPU", id="no product"),
        pytest.param(INNER, "CPU", id="a convolution whose result is not known"),
        pytest.param(_operator("aten::mm", "4×8, 8×16"), "GPU", id="the host's time of a GPU"),
    ],
)
def test_what_is_not_known_is_left_out(operator: Operator, device: str) -> None:
    assert rates(Profile("example", device=device), [operator]) == ()


def test_half_precision_moves_half_the_bytes() -> None:
    (rate,) = rates(Profile("example"), [_operator("aten::mm", "4×8, 8×16", "c10::BFloat16")])
    assert rate.size_bytes == (32 + 128 + 64) * 2


@pytest.mark.parametrize(
    ("intensity", "bound"),
    [pytest.param(2.0, 20.0, id="by bytes"), pytest.param(50.0, 100.0, id="by arithmetic")],
)
def test_the_roof(intensity: float, bound: float) -> None:
    rate = Rate(_operator("aten::mm", ""), intensity, 1.0)
    assert rate.bound(Peaks(100.0, 10.0, "")) == bound


class _Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False)
        self.b = nn.Conv2d(8, 8, 3, dilation=2)
        self.c = nn.Linear(8 * 12 * 12, 10)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.c(self.b(self.a(inputs)).flatten(1))


def _step(network: nn.Module, optimizer: Any) -> None:
    optimizer.zero_grad()
    network(torch.ones(4, 3, 32, 32)).sum().backward()
    optimizer.step()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("roofline") / "run"
    network = _Network()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with isograd.profile(network, folder, steps=10):
        for _ in range(12):
            _step(network, optimizer)
    torch.set_num_threads(before)
    return folder


def test_the_step_does_what_torch_counts(run: Path) -> None:
    network = _Network()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    with FlopCounterMode(display=False) as counter:
        _step(network, optimizer)
    analysis = isograd.profile(run).analysis
    found = rates(analysis.profile, analysis.operators)
    assert sum(one.flops * one.operator.calls for one in found) == counter.get_total_flops()


def test_the_peak_is_measured_and_drawn(run: Path, tmp_path: Path) -> None:
    arguments = ["profile", str(run), "--quiet", "--html", str(tmp_path / "p.html")]
    main([*arguments, "--json", str(tmp_path / "r.json")])
    roofline = json.loads((tmp_path / "r.json").read_text())["roofline"]
    assert roofline["peak"]["flops_per_s"] > 1e8
    assert roofline["peak"]["bytes_per_s"] > 1e7
    html = (tmp_path / "p.html").read_text()
    assert "Roofline" in html
    assert "FLOP per byte" in html
    assert "GFLOP/s" in html


def test_a_peak_can_be_given(run: Path, tmp_path: Path) -> None:
    call = ["profile", str(run), "--quiet", "--peak", "250", "20"]
    main([*call, "--json", str(tmp_path / "r.json")])
    peak = json.loads((tmp_path / "r.json").read_text())["roofline"]["peak"]
    assert peak == {"flops_per_s": 250e9, "bytes_per_s": 20e9, "source": "as given"}


def test_mindspores_products_and_peak(tmp_path: Path) -> None:
    network = mindspore_nn.SequentialCell(
        mindspore_nn.Conv2d(3, 8, 3, pad_mode="valid"), mindspore_nn.Flatten(),
        mindspore_nn.Dense(8 * 14 * 14, 10),
    ).set_train()  # fmt: skip
    optimizer = mindspore_nn.SGD(network.trainable_params(), 0.1)
    gradients = mindspore.value_and_grad(
        lambda x: network(x).sum(), None, network.trainable_params()
    )
    inputs = mindspore.Tensor(np.ones((4, 3, 16, 16), np.float32))
    with isograd.profile(network, tmp_path / "run", steps=10):
        for _ in range(12):
            optimizer(gradients(inputs)[1])
    analysis = isograd.profile(tmp_path / "run").analysis
    known = {one.operator.name: one.flops for one in rates(analysis.profile, analysis.operators)}
    assert known["Conv2D"] == 2 * (4 * 8 * 14 * 14) * 27
    assert analysis.profile.peaks is not None
    assert analysis.profile.peaks.flops_per_s > 1e8

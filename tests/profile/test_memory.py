"""The peak of memory: how much, when, and which module allocated it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mindspore
import numpy as np
import pytest
import torch
from mindspore import nn as mindspore_nn
from torch import nn
from torch.profiler import ProfilerActivity, profile

import isograd
from isograd.profile.analyse.analysis import analyse
from isograd.profile.analyse.memory import Owner, peak_of
from isograd.profile.document import document
from isograd.profile.model import Instants, MemoryPeak, Phase
from isograd.profile.read.open import open_profile
from isograd.report.render_text import render_text

FIRST, SECOND = Owner("first", Phase.FORWARD, "mm"), Owner("second", Phase.FORWARD, "relu")


def _peak(changes: list[tuple[int, int, Owner]], *, device: list[int] | None = None) -> MemoryPeak:
    """changes: bytes, address, owner."""
    change = np.asarray([one[0] for one in changes], np.int64)
    memory = Instants(
        np.arange(len(changes), dtype=np.int64),
        change,
        np.cumsum(change),
        address=np.asarray([one[1] for one in changes], np.int64),
        device=None if device is None else np.asarray(device, np.int64),
    )
    found = peak_of(memory, [one[2] for one in changes])
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param([(5, 1, FIRST), (7, 2, SECOND)], {"first": 5, "second": 7}, id="both alive"),
        pytest.param(
            [(5, 1, FIRST), (-5, 1, SECOND), (7, 1, SECOND)], {"second": 7}, id="freed by another"
        ),
        pytest.param(
            [(5, 1, FIRST), (7, 2, SECOND), (-7, 2, SECOND), (1, 3, FIRST)],
            {"first": 5, "second": 7}, id="after the peak",
        ),
        pytest.param(
            [(5, -1, FIRST), (-2, -1, FIRST), (7, -1, SECOND)],
            {"first": 3, "second": 7}, id="no addresses",
        ),
        pytest.param(
            [(500, -1, FIRST), (4, -1, FIRST), (-499, -1, SECOND), (700, -1, SECOND)],
            {"first": 5, "second": 700}, id="no addresses, by size",
        ),
    ],
)  # fmt: skip
def test_blocks_alive_at_the_peak(
    changes: list[tuple[int, int, Owner]], expected: dict[str, int]
) -> None:
    peak = _peak(changes)
    assert {share.module: share.size_bytes for share in peak.shares} == expected
    assert peak.before_bytes + sum(expected.values()) == peak.peak_bytes


def test_devices_are_not_added_up() -> None:
    change = np.asarray([100, 30, 5], np.int64)
    memory = Instants(
        np.arange(3), change, np.asarray([100, 30, 35]),
        address=np.asarray([1, 2, 3]), device=np.asarray([-1, 0, 0]),
    )  # fmt: skip
    peak = peak_of(memory, [FIRST, SECOND, SECOND])
    assert peak is not None
    assert (peak.peak_bytes, peak.device) == (100, "CPU")


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class _Wide(nn.Module):
    """`wide` makes 64 × 20,000 numbers, 5.12 MB, which `narrow` needs for its gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.wide = nn.Linear(8, 8), nn.Linear(8, 20_000)
        self.narrow = nn.Linear(20_000, 2)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.narrow(self.wide(self.first(inputs)))


def _train(network: nn.Module, steps: int) -> None:
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
    inputs, labels = torch.ones(64, 8), torch.zeros(64, dtype=torch.long)
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(network(inputs), labels).backward()
        optimizer.step()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("memory") / "run"
    network = _Wide()
    with isograd.profile(network, folder, steps=10):
        _train(network, 12)
    hooks = [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in network.modules()]
    assert hooks == [0] * len(hooks)
    return folder


def test_a_module_of_torch_is_named_with_its_bytes(recorded: Path) -> None:
    peak = analyse(open_profile(recorded)).memory
    assert peak is not None
    known = {(share.module, share.phase): share for share in peak.shares}
    wide = known["wide", Phase.FORWARD]
    assert wide.operator == "aten::linear"
    assert wide.size_bytes == 64 * 20_000 * 4
    # The gradient of `wide`'s output is made by the call of `narrow`.
    assert known["narrow", Phase.BACKWARD].size_bytes >= 64 * 20_000 * 4
    parameters = sum(p.numel() for p in _Wide().parameters()) * 4
    assert peak.held["parameters"] == peak.held["optimizer state"] == parameters
    assert peak.held["gradients"] == 0
    assert peak.before_bytes + sum(share.size_bytes for share in peak.shares) == peak.peak_bytes


def test_gradients_that_stay_count_as_held(tmp_path: Path) -> None:
    network = nn.Linear(1000, 100)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    with isograd.profile(network, tmp_path / "run", steps=10):
        for _ in range(12):
            optimizer.zero_grad(set_to_none=False)
            network(torch.ones(4, 1000)).sum().backward()
            optimizer.step()
    peak = analyse(open_profile(tmp_path / "run")).memory
    assert peak is not None
    assert peak.held["gradients"] == (1000 * 100 + 100) * 4


def test_text_and_json_name_the_module(recorded: Path) -> None:
    report = isograd.profile(recorded)
    text = render_text(document(report), width=100, colour=False)
    assert "Memory at its peak, by module" in text
    assert "wide" in text.split("Memory at its peak")[1].split("Measured")[0]
    memory = json.loads(report.to_json())["memory"]
    assert {"module": "wide", "phase": "forward", "operator": "aten::linear"}.items() <= next(
        one for one in memory["modules"] if one["module"] == "wide"
    ).items()
    assert memory["peak_bytes"] > memory["before_bytes"] > 0


def test_a_trace_of_the_users_own_names_operators_and_modules(tmp_path: Path) -> None:
    network = _Wide()
    _train(network, 1)
    with profile(
        activities=[ProfilerActivity.CPU], profile_memory=True, with_stack=True
    ) as profiler:
        _train(network, 1)
    profiler.export_chrome_trace(str(tmp_path / "trace.json"))
    peak = analyse(open_profile(tmp_path / "trace.json")).memory
    assert peak is not None
    largest = [share for share in peak.shares if share.size_bytes >= 64 * 20_000 * 4]
    # torch numbers modules by class in the order of their first call.
    assert {(share.module, share.phase) for share in largest} == {
        ("Linear_1", Phase.FORWARD), ("Linear_2", Phase.BACKWARD)
    }  # fmt: skip


class _Cells(mindspore_nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.first = mindspore_nn.Dense(8, 8)
        self.wide = mindspore_nn.Dense(8, 20_000)
        self.narrow = mindspore_nn.Dense(20_000, 2)

    def construct(self, inputs: Any) -> Any:
        return self.narrow(self.wide(self.first(inputs)))


def test_a_cell_of_mindspore_is_named(tmp_path: Path) -> None:
    network = _Cells().set_train()
    optimizer = mindspore_nn.Momentum(network.trainable_params(), 0.1, 0.9)
    gradients = mindspore.value_and_grad(
        lambda x: network(x).sum(), None, network.trainable_params()
    )
    inputs = mindspore.Tensor(np.ones((64, 8), np.float32))
    with isograd.profile(network, tmp_path / "run", steps=10):
        for _ in range(12):
            optimizer(gradients(inputs)[1])
    assert not mindspore.get_context("pynative_synchronize")
    peak = analyse(open_profile(tmp_path / "run")).memory
    assert peak is not None
    wide = next(s for s in peak.shares if (s.module, s.phase) == ("wide", Phase.FORWARD))
    # The product and its sum with the bias: eager MindSpore holds both.
    assert wide.size_bytes == pytest.approx(64 * 20_000 * 4, rel=0.1)
    assert peak.held["optimizer state"] > 0
    assert peak.held["parameters"] == 4 * (8 * 8 + 8 + 9 * 20_000 + 2 * 20_000 + 2)


def test_ascends_blocks_by_operator(tmp_path: Path) -> None:
    (tmp_path / "operator_memory.csv").write_text(
        "Name,Size(KB),Allocation Time(us),Release Time(us)\n"
        "Default/network-Net/conv1-Conv2d/Conv2D-op1,2048,10.5,40.0\n"
        "Default/network-Net/relu-ReLU/ReLU-op2,1024,20.0,25.0\n"
        "Gradients/Default/network-Net/conv1-Conv2d/gradConv2D/Conv2DBackpropFilter-op3,"
        "512,30.0,\n"
    )
    (tmp_path / "memory_record.csv").write_text(
        "Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),Device\n"
        "MindSpore,10,7.0,9,NPU:0\n"
    )
    peak = analyse(open_profile(tmp_path)).memory
    assert peak is not None
    assert [(s.module, s.phase, s.operator, s.size_bytes >> 10) for s in peak.shares] == [
        ("network.conv1", Phase.FORWARD, "Conv2D", 2048),
        ("network.relu", Phase.FORWARD, "ReLU", 1024),
    ]
    assert (peak.peak_bytes, peak.before_bytes) == (7 << 20, 4 << 20)

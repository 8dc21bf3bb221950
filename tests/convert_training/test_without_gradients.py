"""`torch.no_grad()` in a network's forward and `requires_grad_(False)` in a compiled training."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert_training.running import LAYERS, assert_follows

PROGRAM = f"""{LAYERS}
import copy


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 4)

    def forward(self, x):
        h = torch.relu(self.first(x))
        return self.second(h)


class Same(nn.Module):
    def forward(self, x):
        return x


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(4, 4)
        self.head = nn.Linear(4, 4)
        self.encoder, self.same = Encoder(), Same()
        self.body = nn.Sequential(nn.Identity(), nn.Linear(4, 4), nn.Tanh())

    def forward(self, x):
        x = self.stem(x)
        BLOCK
        return self.head(f) + x


net = Net()
for i, p in enumerate(net.parameters()):
    p.data.copy_(torch.sin(torch.arange(p.numel()).view(p.shape) * 1.3 + i) * 0.5)
FROZEN
optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
for k, x in enumerate(X):
    optimizer.zero_grad()
    loss = net(x).pow(2).mean()
    loss.backward()
    optimizer.step()
    LATE
    print(loss.item())
for p in net.parameters():
    print(p.sum().item())
"""
BLOCK = "with torch.no_grad():\n            f = self.{}(x)"

EACH = "for p in net.stem.parameters():\n    p.requires_grad_(requires_grad=False)"
FOLLOWING = """with torch.no_grad():
        for a, b in zip(mean.parameters(), net.parameters()):
            a.mul_(0.9).add_(b, alpha=0.1)"""


def _reasons(folder: Path, **parts: str) -> list[str]:
    text = PROGRAM
    for name, code in {"BLOCK": "f = x", "FROZEN": "", "LATE": "", **parts}.items():
        text = text.replace(name, code)
    found = assert_follows(text, folder).report.findings
    return [f.message.partition(": ")[2] for f in found if f.code == "eager-training"]


@pytest.mark.parametrize("called", ["encoder", "body", "head"])
def test_a_block_that_computes_new_tensors_is_compiled(called: str, tmp_path: Path) -> None:
    assert _reasons(tmp_path, BLOCK=BLOCK.format(called)) == []


def test_a_block_that_may_return_its_input_stays_eager(tmp_path: Path) -> None:
    (reason,) = _reasons(tmp_path, BLOCK=BLOCK.format("same"))
    assert reason.startswith("Net is no part of a static graph (with)")


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"FROZEN": "net.encoder.requires_grad_(False)"}, id="a part of a network"),
        pytest.param({"FROZEN": "net.stem.weight.requires_grad_(False)"}, id="a weight"),
        pytest.param({"FROZEN": EACH}, id="each weight, by name"),
        pytest.param(
            {"FROZEN": "mean = copy.deepcopy(net).requires_grad_(False)", "LATE": FOLLOWING},
            id="a copy that follows",
        ),
    ],
)
def test_what_is_frozen_by_a_call_is_compiled(parts: dict[str, str], tmp_path: Path) -> None:
    assert _reasons(tmp_path, BLOCK="f = self.encoder(x)", **parts) == []


@pytest.mark.parametrize(
    ("late", "reason"),
    [
        ("net.stem.requires_grad_(k > 0)", "requires_grad_ reads or changes what is recorded"),
        ("net.stem.requires_grad_(False)", "net.stem changes between steps"),
    ],
)
def test_what_learns_otherwise_later_stays_eager(late: str, reason: str, tmp_path: Path) -> None:
    assert _reasons(tmp_path, LATE=late) == [reason]

"""Objects with settings that a step's forward part hands to functions."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert_training.running import LAYERS, assert_follows

PROGRAM = f"""{LAYERS}
import argparse
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--heat", type=float, default=0.5)
parser.add_argument("--smooth", type=float, default=0.1)
args = parser.parse_args([])
net, other = make(1), make(2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)


class Settings:
    heat = 0.5

    def __init__(self):
        self.smooth, self.net, self.kept = 0.1, other, None


settings = Settings()


def loss_of(args, out, y):
    return F.cross_entropy(out / args.heat, y, label_smoothing=args.smooth)


def loss_by(args, out, y):
    return F.cross_entropy(args.net(out), y, label_smoothing=args.smooth)


def loss_with(args, out, y):
    return F.cross_entropy(out + args.kept, y, label_smoothing=args.smooth)


def train(args, net):
    for x, y in zip(X, Y):
        FORWARD
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
        BEHIND


train(args, net)
"""


@pytest.mark.parametrize(
    "forward",
    [
        pytest.param("loss = loss_of(args, net(x), y)", id="a namespace"),
        pytest.param("loss = loss_of(settings, net(x), y)", id="an object of a class"),
        pytest.param("loss = loss_of(y=y, args=args, out=net(x))", id="by name"),
    ],
)
def test_a_step_has_them_as_they_are(forward: str, tmp_path: Path) -> None:
    program = PROGRAM.replace("FORWARD", forward).replace("BEHIND", "")
    assert "@ms.jit" in assert_follows(program, tmp_path).text


@pytest.mark.parametrize(
    ("forward", "behind", "reason"),
    [
        pytest.param(
            "loss = loss_of(args, net(x), y)",
            "args.heat *= 0.5",
            "args.heat changes between steps",
            id="a setting that changes",
        ),
        pytest.param(
            "loss = loss_by(settings, net(x), y)",
            "",
            "which reads its",
            id="a network among them",
        ),
        pytest.param(
            "settings.kept = net(x)\n        loss = loss_with(settings, net(x), y)",
            "",
            "",
            id="a tensor that goes back to a network",
        ),
    ],
)
def test_others_stay_eager(forward: str, behind: str, reason: str, tmp_path: Path) -> None:
    program = PROGRAM.replace("FORWARD", forward).replace("BEHIND", behind)
    converted = assert_follows(program, tmp_path)
    (finding,) = (f for f in converted.report.findings if f.code == "eager-training")
    assert reason in finding.message

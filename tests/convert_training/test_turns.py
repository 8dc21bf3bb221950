"""Loops with several losses that stay eager, and why."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert_training.running import assert_follows
from tests.convert_training.test_compiled_steps import COUNTED, converted, program
from tests.warm_python import run_python


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        pytest.param(
            "discriminator(made_up.detach())",
            "discriminator(made_up)",
            "graph of made_up is shared",
            id="the second loss goes back through the first one's graph",
        ),
        pytest.param(
            "        optimizer_D.zero_grad()\n        real_loss",
            "        real_loss",
            "not zeroed in each round",
            id="gradients of both losses meet in the discriminator",
        ),
        pytest.param(
            "        optimizer_G.zero_grad()\n",
            "        optimizer_G.zero_grad()\n        optimizer_D.zero_grad()\n",
            "gradients of another step",
            id="zeroed before the other loss adds its own",
        ),
        pytest.param(
            "        fake_loss = criterion",
            "        real_loss.backward()\n        fake_loss = criterion",
            "graph of real_loss is shared",
            id="two losses of one graph for one step",
        ),
    ],
)
def test_why_turns_stay_eager(old: str, new: str, reason: str, tmp_path: Path) -> None:
    text, found = converted(program("in_turn").replace(old, new), tmp_path)
    assert "ms.jit" not in text
    assert len(found) == 1
    assert re.search(reason, found[0])


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        pytest.param(
            "nn.ReLU(), nn.Linear(6, 4)",
            "nn.Dropout(0.5), nn.Linear(6, 4)",
            "draws",
            id="dropout in what is computed again",
        ),
        pytest.param(
            "return torch.tanh(self.layers(x))",
            "return self.layers(x) + torch.randn_like(x).mean()",
            "draws",
            id="noise in what is computed again",
        ),
        pytest.param(
            "generator(z)", "generator(torch.randn(8, 3))", "draws", id="noise as an argument"
        ),
        pytest.param(
            "            nn.LeakyReLU(0.2),\n",
            "            nn.Dropout(0.5),\n",
            "draws",
            id="dropout elsewhere, where it is not known which network is called",
        ),
        pytest.param(
            "    label.fill_(1.0)\n    output",
            "    noise.mul_(2.0)\n    label.fill_(1.0)\n    output",
            "reads changes",
            id="what was read has changed",
        ),
        pytest.param(
            "    label.fill_(1.0)\n    output",
            "    netG.eval()\n    label.fill_(1.0)\n    output",
            "may change",
            id="another mode",
        ),
        pytest.param(
            "netD(fake.detach())", "netD(fake)", "graph of fake is shared", id="one graph"
        ),
        pytest.param(
            "    fake = netG(noise)",
            "    netD.zero_grad()\n    fake = netG(noise)",
            "zeroed between several losses",
            id="gradients of the first loss are dropped",
        ),
    ],
)
def test_why_losses_that_share_what_was_computed_stay_eager(
    old: str, new: str, reason: str, tmp_path: Path
) -> None:
    given = program("shared")
    assert old in given
    text, found = converted(given.replace(old, new), tmp_path)
    assert "ms.jit" not in text
    assert len(found) == 1
    assert re.search(reason, found[0])


def test_weights_that_another_step_has_changed_are_refused(tmp_path: Path) -> None:
    given = program("shared").replace("RMSprop(netG.p", "RMSprop(netD.p")
    given = given.replace("SGD(netD.p", "SGD(netG.p")
    _, found = converted(given, tmp_path)
    assert found == []
    done = run_python(COUNTED, cwd=tmp_path / "port", imported=["mindspore"])
    assert "RuntimeError: " in done.stderr


REPLAYED = """
import torch
from torch import nn


class Kept:
    def __init__(self):
        self.data = []

    def exchange(self, batch):
        self.data.append(batch.data)
        return self.data[len(self.data) // 2]


def make(k):
    net = nn.Linear(4, 4)
    for i, p in enumerate(net.parameters()):
        p.data.copy_(torch.sin(torch.arange(p.numel()).view(p.shape) * 1.3 + i + k) * 0.5)
    return net


generator, judge, kept = make(1), make(2), Kept()
optimizer_G = torch.optim.SGD(generator.parameters(), lr=0.1)
optimizer_D = torch.optim.SGD(judge.parameters(), lr=0.1)
for x in torch.cos(torch.arange(48.0)).view(3, 4, 4):
    optimizer_G.zero_grad()
    fake = generator(x)
    loss_G = (judge(fake) - 1).pow(2).mean()
    loss_G.backward()
    optimizer_G.step()
    optimizer_D.zero_grad()
    older = kept.exchange(fake)
    loss_D = (judge(x) - 1).pow(2).mean() + judge(older.detach()).pow(2).mean()
    loss_D.backward()
    optimizer_D.step()
    print(loss_G.item(), loss_D.item(), sep="\\n")
"""


def test_what_python_does_with_a_result_of_another_step_stays_between_them(
    tmp_path: Path,
) -> None:
    text = assert_follows(REPLAYED, tmp_path).text
    assert text.count("@ms.jit") == 2
    assert "    older = kept.exchange(fake)\n    loss_D = training_step_2(" in text

"""Batches that an object gives, and targets that are computed of them without gradients."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert_training.running import LAYERS, assert_follows

PROGRAM = f"""{LAYERS}
import copy
import torch.nn.functional as F


class Memory:
    def __init__(self):
        self.at = 0

    def draw(self, count):
        self.at += 1
        return X[self.at % 3][:count], Y[self.at % 3][:count]


class Learner:
    def __init__(self):
        self.net = make(1)
        self.target = copy.deepcopy(self.net)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def update(self, memory):
        state, action = memory.draw(4)
        with torch.no_grad():
            wanted = self.target(state).max(1)[0]
        value = self.net(state).gather(1, action.view(-1, 1)).squeeze(1)
        loss = F.mse_loss(value, wanted)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        for mine, other in zip(self.net.parameters(), self.target.parameters()):
            other.data.copy_(0.1 * mine.data + 0.9 * other.data)
        return loss.item()


learner, memory = Learner(), Memory()
for step in range(4):
    print(learner.update(memory))
"""
LEARNED = """
class Features:
    def draw(self, count):
        return learner.net(X[0])[:count], Y[0][:count]


memory = Features()
"""


def test_a_batch_of_an_object_goes_into_the_step(tmp_path: Path) -> None:
    text = assert_follows(PROGRAM, tmp_path).text
    assert "@ms.jit" in text
    assert "state, action = memory.draw(4)" in text.partition("def update")[2]


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(PROGRAM.replace("for step", f"{LEARNED}for step"), id="of another class"),
        pytest.param(
            PROGRAM.replace("return X[self.at % 3]", "return learner.net(X[self.at % 3])"),
            id="of this class",
        ),
    ],
)
def test_a_batch_that_a_network_has_computed(program: str, tmp_path: Path) -> None:
    converted = assert_follows(program, tmp_path)
    assert "@ms.jit" not in converted.text

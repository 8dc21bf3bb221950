"""Batches that an object gives, and targets that are computed of them without gradients."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert_training.running import LAYERS, assert_follows, numbers

from isograd.convert.run import convert_path

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


LOOP = f"""{LAYERS}
import torch.nn.functional as F


class Memory:
    def draw(self, count):
        return X[0][:count]


class Body(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = make(2)

    def forward(self, x):
        return self.net(x)


memory, body, head = Memory(), Body(), make(1)
optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
for x, y in zip(X, Y):
    features = SOURCE
    loss = F.cross_entropy(head(features), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
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


@pytest.mark.parametrize(
    ("source", "method", "is_compiled"),
    [
        pytest.param("memory.draw(4)", "take", True, id="of the only class with this method"),
        pytest.param("kept.draw(4)", "draw", False, id="of another file's class"),
    ],
)
def test_a_loop_that_asks_an_object(
    source: str, method: str, is_compiled: bool, tmp_path: Path
) -> None:
    """A network of another file may have a method of this name, too."""
    (tmp_path / "project").mkdir()
    other = "class Kept:\n    def __init__(self, net, x):\n        self.net, self.x = net, x\n\n"
    other += f"    def {method}(self, count):\n        return self.net(self.x)[:count]\n"
    program = LOOP.replace("SOURCE", source).replace(
        "memory, body", "from other import Kept\n\nmemory, body"
    )
    program = program.replace("for x, y in zip", "kept = Kept(body, X[0])\nfor x, y in zip")
    (tmp_path / "project" / "script.py").write_text(program, encoding="utf-8")
    (tmp_path / "project" / "other.py").write_text(other, encoding="utf-8")
    convert_path(tmp_path / "project", tmp_path / "port")
    text = (tmp_path / "port" / "script.py").read_text(encoding="utf-8")
    assert ("@ms.jit" in text) is is_compiled
    theirs = numbers(tmp_path / "project", is_port=False)
    np.testing.assert_allclose(numbers(tmp_path / "port", is_port=True), theirs, rtol=1e-5)

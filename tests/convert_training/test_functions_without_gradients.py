"""`@torch.no_grad()` on functions that a compiled step runs: their results have no gradient."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert_training.running import LAYERS, assert_follows

LOOP = """
optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
for x, y in zip(X, Y):
    optimizer.zero_grad()
    loss = criterion(net(x), y)
    loss.backward()
    optimizer.step()
    print(loss.item())
"""
WEIGHTS = """
@torch.no_grad()
def weights(out):
    share = out.softmax(1)
    return share.max(1).values


def criterion(out, y):
    return (nn.functional.cross_entropy(out, y, reduction="none") * weights(out)).mean()


net = make(1)
"""
METHOD = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = make(1)

    @torch.no_grad()
    def confidence(self, out):
        share = out.softmax(1)
        return share.max(1).values, share * 2

    def forward(self, x):
        out = self.layer(x)
        best, share = self.confidence(out)
        return out * best[:, None] + share


criterion = nn.CrossEntropyLoss()
net = Net()
"""
PASSED = """
@torch.no_grad()
def kept(out):
    return out


def criterion(out, y):
    return (nn.functional.cross_entropy(out, y, reduction="none") * kept(out).max(1).values).mean()


net = make(1)
"""
TEACHER = """
@torch.no_grad()
def answer(teacher, x):
    return teacher(x)


net, teacher = make(1), make(2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
for x in X:
    optimizer.zero_grad()
    wanted = answer(teacher, x)
    loss = (net(x) - wanted).pow(2).mean()
    loss.backward()
    optimizer.step()
    print(loss.item())
"""


@pytest.mark.parametrize(
    ("text", "written"),
    [
        pytest.param(WEIGHTS + LOOP, "compat.without_gradient(", id="weights of a loss"),
        pytest.param(METHOD + LOOP, "compat.without_gradient((", id="a method of the network"),
        pytest.param(TEACHER, "wanted = answer(teacher, x)\n    loss = training", id="a teacher"),
    ],
)
def test_the_step_is_compiled(text: str, written: str, tmp_path: Path) -> None:
    converted = assert_follows(LAYERS + text, tmp_path)
    assert "ms.jit" in converted.text
    assert written in converted.text


def test_a_tensor_that_is_passed_on_keeps_its_gradient(tmp_path: Path) -> None:
    converted = assert_follows(LAYERS + PASSED + LOOP, tmp_path)
    assert "record_gradients" in converted.text
    said = [f.message for f in converted.report.findings if f.code == "eager-training"]
    assert "kept records no gradients" in said[0]

"""Functions of a project's other files in a forward part: compiled with it, or said why not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert_training.running import LAYERS, numbers

from isograd.convert.run import convert_path

LOSSES = """
import torch
import torch.nn.functional as F

SMOOTH = 1.0


def _flat(x):
    return torch.sigmoid(x).reshape(x.shape[0], -1)


def dice(answer, target):
    p, t = _flat(answer), F.one_hot(target, 4).float().reshape(target.shape[0], -1)
    return 1 - ((2 * (p * t).sum(1) + SMOOTH) / (p.sum(1) + t.sum(1) + SMOOTH)).mean()


def of_network(model, criterion, x, y, share=1.0):
    return criterion(model(x), y) * share


def handing_on(model, x, y):
    return of_network(model, F.cross_entropy, x, y)


def saying(answer, target):
    SEEN.append(answer)
    return F.cross_entropy(answer, target)


@torch.no_grad
def decorated(answer, target):
    return answer.sum()


SEEN = []
"""
#: A loop whose loss is exchanged.
TRAINING = f"""{LAYERS}
import package.losses as losses
from package import dice
from package.losses import of_network, handing_on, saying, decorated

net = nn.Sequential(make(1), nn.Tanh(), make(2))
optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
criterion = nn.CrossEntropyLoss()
for epoch in range(3):
    for x, y in zip(X, Y):
        optimizer.zero_grad()
        loss = LOSS
        loss.backward()
        optimizer.step()
        print(loss.item())
    losses.SMOOTH = 0.5
"""


def _converted(loss: str, folder: Path) -> tuple[str, list[str]]:
    """The port of the training and why it stays eager."""
    (folder / "project" / "package").mkdir(parents=True)
    (folder / "project" / "package" / "__init__.py").write_text("from .losses import dice\n")
    (folder / "project" / "package" / "losses.py").write_text(LOSSES)
    (folder / "project" / "script.py").write_text(TRAINING.replace("LOSS", loss))
    report = convert_path(folder / "project", folder / "port")
    reasons = [one.message for one in report.findings if one.code == "eager-training"]
    return (folder / "port" / "script.py").read_text(encoding="utf-8"), reasons


@pytest.mark.parametrize(
    "loss",
    [
        pytest.param("dice(net(x), y)", id="a name that the package imports"),
        pytest.param("losses.dice(net(x), y) + criterion(net(x), y)", id="an attribute"),
        pytest.param("of_network(net, criterion, x, y, share=0.5)", id="it calls the network"),
    ],
)
def test_functions_of_other_files_are_compiled(loss: str, tmp_path: Path) -> None:
    text, reasons = _converted(loss, tmp_path)
    assert reasons == []
    assert text.count("@ms.jit") == 1
    theirs, ours = (
        numbers(tmp_path / "project", is_port=False),
        numbers(tmp_path / "port", is_port=True),
    )
    np.testing.assert_allclose(ours, theirs, rtol=2e-5)
    assert len(ours) == 9


@pytest.mark.parametrize(
    ("loss", "reason"),
    [
        pytest.param("handing_on(net, x, y)", "hands on what it is given", id="handed on"),
        pytest.param("saying(net(x), y)", "calls for an effect", id="an effect"),
        pytest.param("decorated(net(x), y)", "is not looked into", id="decorated"),
        pytest.param("of_network(*[net, criterion, x, y])", "the compiler refuses", id="starred"),
    ],
)
def test_what_is_not_known_of_them_stays_eager(loss: str, reason: str, tmp_path: Path) -> None:
    text, reasons = _converted(loss, tmp_path)
    assert "@ms.jit" not in text
    assert reason in reasons[0]

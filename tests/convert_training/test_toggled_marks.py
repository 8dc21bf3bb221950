"""`requires_grad` of a network's parameters that changes in each round, and compiled steps."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert_training.running import LAYERS, assert_follows

ON = "for p in critic.parameters():\n    p.requires_grad = True"
OFF = "for p in critic.parameters():\n    p.requires_grad = False"
CRITIC = """for _ in range(2):
    for p in critic.parameters():
        p.data.clamp_(-0.3, 0.3)
    critic.zero_grad()
    loss_of_critic = critic(made(x)).mean() - critic(x).mean()
    loss_of_critic.backward()
    second.step()
print(loss_of_critic.item())"""
CONDITION = "if x.sum() > 0:\n    " + OFF.replace("\n", "\n    ")
GENERATOR = """first.zero_grad()
loss = -critic(generator(x)).mean()
loss.backward()
first.step()
print(loss.item())"""
PROGRAM = f"""{LAYERS}
def learns(net, flag):
    for p in net.parameters():
        p.requires_grad_(flag)


def made(x):
    with torch.no_grad():
        return generator(x)


generator = nn.Sequential(make(1), nn.ReLU(), make(2))
critic = nn.Sequential(make(3), nn.LeakyReLU(0.2), make(4))
FROZEN
first = torch.optim.RMSprop(generator.parameters(), 0.01)
second = torch.optim.RMSprop(critic.parameters(), 0.01)
for x in X:
    ROUND
for p in (*generator.parameters(), *critic.parameters()):
    print(p.sum().item())
"""


def _reasons(folder: Path, parts: tuple[str, ...], frozen: str = "") -> list[str]:
    lines = "\n".join(parts).replace("\n", "\n    ").replace("made(x)", "generator(x).detach()")
    text = PROGRAM.replace("ROUND", lines).replace("FROZEN", frozen)
    used = "learns(critic" in lines
    helper = text[text.index("def learns") : text.index("def made")]
    text = text if used else text.replace(helper, "")
    converted = assert_follows(text, folder)
    found = [f for f in converted.report.findings if f.code == "eager-training"]
    assert bool(found) != ("@ms.jit" in converted.text)
    return [f.message.partition(": ")[2] for f in found]


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param((ON, CRITIC, OFF, GENERATOR), id="the critic first"),
        pytest.param((OFF, GENERATOR, ON, CRITIC), id="the generator first"),
        pytest.param(
            ("learns(critic, True)", CRITIC, "learns(critic, False)", GENERATOR), id="by a function"
        ),
        pytest.param(
            (ON, CRITIC, OFF.replace(" = False", "_(False)"), GENERATOR, ON), id="three times"
        ),
    ],
)
def test_marks_that_change_nothing(parts: tuple[str, ...], tmp_path: Path) -> None:
    assert _reasons(tmp_path, parts) == []


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param((ON, GENERATOR, OFF, CRITIC), id="the other way round"),
        pytest.param((CONDITION, CRITIC, ON, GENERATOR), id="under a condition"),
    ],
)
def test_marks_that_change_what_learns(parts: tuple[str, ...], tmp_path: Path) -> None:
    parts = tuple(part.replace("made(x)", "generator(x)") for part in parts)
    (reason,) = _reasons(tmp_path, parts)
    assert "what learns changes" in reason


@pytest.mark.parametrize(
    "frozen",
    [
        pytest.param("critic[0].requires_grad_(False)", id="a part of it is frozen before"),
        pytest.param("held = [p for p in critic.parameters() if p.requires_grad]", id="asked for"),
        pytest.param(
            "held = generator\ngenerator = nn.Sequential(generator, critic)",
            id="the other network holds it",
        ),
    ],
)
def test_what_else_says_what_learns(frozen: str, tmp_path: Path) -> None:
    (reason,) = _reasons(tmp_path, (ON, CRITIC, OFF, GENERATOR), frozen)
    assert "learns" in reason or "requires_grad" in reason


def test_gradients_that_are_not_zeroed_between(tmp_path: Path) -> None:
    late = CRITIC.replace("    critic.zero_grad()\n", "    first.zero_grad()\n")
    (reason,) = _reasons(tmp_path, ("second.zero_grad()", OFF, GENERATOR, ON, late))
    assert "learns" in reason or "zeroed" in reason


_FROZEN = f"""{LAYERS}
def freeze(part):
    for p in part.parameters():
        p.requires_grad = False


def train(frozen):
    net = nn.Sequential(make(1), nn.ReLU(), make(2))
    BEFORE
    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    for epoch in range(3):
        LATER
        for x in X:
            optimizer.zero_grad()
            loss = net(x).pow(2).mean()
            loss.backward()
            optimizer.step()
            print(loss.item())


for frozen in (0, 2):
    train(frozen)
"""


@pytest.mark.parametrize(
    "later",
    [
        "if epoch == 1:\n            freeze(net[frozen])",
        "if epoch == 1:\n            net[frozen].requires_grad_(False)",
    ],
)
def test_a_part_that_is_frozen_in_the_training(later: str, tmp_path: Path) -> None:
    """A compiled step has the parameters that learned when its optimizer was made."""
    text = _FROZEN.replace("BEFORE", "pass").replace("LATER", later)
    converted = assert_follows(text, tmp_path)
    assert "@ms.jit" not in converted.text
    found = [f.message for f in converted.report.findings if f.code == "eager-training"]
    assert len(found) == 1
    assert "what learns changes" in found[0]


def test_a_part_that_is_frozen_before_each_training(tmp_path: Path) -> None:
    """The loop around both makes the optimizer as well."""
    text = _FROZEN.replace("BEFORE", "freeze(net[frozen])").replace("LATER", "pass")
    assert "@ms.jit" in assert_follows(text, tmp_path).text

"""What reads results of a forward part between its lines, and stands behind its step then."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert_training.running import LAYERS, assert_follows

LOOP = """
net = make(1)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
weights = torch.sin(torch.arange(12.0)).view(3, 4)
kept, shares = [], []
for number, (x, y) in enumerate(zip(X, Y)):
    out = net(x)
    picked = out.gather(1, y.view(-1, 1)).squeeze(1)
    BETWEEN
    loss = -(picked * weight).mean() + out.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
print(sum(shares), sum(kept), sep="\\n")
"""
WEIGHT = """
        weight = weights[number]
        weight = (weight - weight.mean()) / (weight.std() + 1e-8)
"""
COMPILED = {
    "numbers to report": f"""
        with torch.no_grad():
            share = (picked > 0.1).float().mean()
            shares.append(share.item())
        {WEIGHT}
    """,
    "what reads what was computed for a report": f"""
        with torch.no_grad():
            share = (picked > 0.1).float().mean()
        shares.append(share.item())
        {WEIGHT}
    """,
    "a condition between": f"""
        shares.append(picked.max().item())
        {WEIGHT}
        if number > 1:
            weight = weight * 0.5
    """,
}
#: The reason for which each of these stays eager.
EAGER = {
    "what goes in reads what is reported": (
        """
        shares.append(picked.max().item())
        weight = weights[number] * shares[-1]
        """,
        "the forward part",
    ),
    "Python may see the order": (
        """
        shares.append(picked.max().item())
        kept.append(number)
        weight = weights[number] * kept.pop(0)
        """,
        "what it reads or binds",
    ),
}


def _program(between: str) -> str:
    lines = [line[4:] for line in between.splitlines() if line.strip()]
    return LAYERS + LOOP.replace("    BETWEEN", "\n".join(lines))


@pytest.mark.parametrize(
    "between", [pytest.param(text, id=name) for name, text in COMPILED.items()]
)
def test_it_stands_behind_the_step(between: str, tmp_path: Path) -> None:
    converted = assert_follows(_program(between), tmp_path)
    assert "@ms.jit" in converted.text
    step = converted.text.index("= training_step(")
    assert converted.text.index("shares.append") > step


@pytest.mark.parametrize(
    ("between", "reason"), [pytest.param(*both, id=name) for name, both in EAGER.items()]
)
def test_the_order_is_kept(between: str, reason: str, tmp_path: Path) -> None:
    converted = assert_follows(_program(between), tmp_path)
    found = [f for f in converted.report.findings if f.code == "eager-training"]
    assert [reason in one.message for one in found] == [True], found

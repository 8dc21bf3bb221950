"""`model.zero_grad()` where an optimizer takes the gradients of several rounds."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert_training.running import LAYERS, assert_follows

HEAD = f"""{LAYERS}
net, other = make(1), make(2)
optimizer = torch.optim.AdamW(net.parameters(), lr=0.05)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (step + 1))
"""
LOOP = """
net.zero_grad()
for epoch in range(2):
    for number, (x, y) in enumerate(zip(X, Y)):
        loss = nn.functional.cross_entropy(net(x), y) / 2
        loss.backward()
        print(loss.item())
        if number % 2 == 1:
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            net.zero_grad()
"""
FUNCTION = "def train(net, optimizer, scheduler):" + LOOP.replace("\n", "\n    ")
CALLS = "\ntrain(net, optimizer, scheduler)\n" * 2


@pytest.mark.parametrize(
    "loop",
    [
        pytest.param(LOOP, id="a script"),
        pytest.param(FUNCTION + CALLS, id="a function, whose last round leaves gradients"),
        pytest.param(LOOP.replace("scheduler.step()", "pass"), id="without a schedule"),
    ],
)
def test_the_optimizer_forgets_what_it_holds(loop: str, tmp_path: Path) -> None:
    converted = assert_follows(HEAD + loop, tmp_path)
    assert "def update_step" in converted.text
    assert "net.zero_grad" not in converted.text
    assert "require_same(optimizer, " in converted.text


@pytest.mark.parametrize(
    "loop",
    [
        pytest.param(
            LOOP.replace("        if number", "        other.zero_grad()\n        if number"),
            id="another network, too",
        ),
        pytest.param(
            "def forget():\n    net.zero_grad()\n"
            + LOOP.replace("            net.zero_grad()", "            forget()"),
            id="by another function",
        ),
    ],
)
def test_what_zeroes_something_else_stays_eager(loop: str, tmp_path: Path) -> None:
    converted = assert_follows(HEAD + loop, tmp_path)
    (finding,) = (f for f in converted.report.findings if f.code == "eager-training")
    assert "zeroed elsewhere than in the optimizer" in finding.message

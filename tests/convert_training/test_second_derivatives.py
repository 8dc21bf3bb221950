"""Gradients of gradients in a training step: functions of what they are taken by, compiled."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert_training.running import LAYERS, assert_follows, convert

from isograd.convert.training.inner_gradients import with_functions
from isograd.convert.training.learning_marks import marks_of
from isograd.convert.training.rewrite import edited

PROGRAM = f"""{LAYERS}
from torch import autograd

net = nn.Sequential(make(1), nn.Tanh(), make(2), nn.LeakyReLU(0.2), nn.Linear(4, 1, bias=False))
net[4].weight.data.fill_(0.3)
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
"""
PENALTY = """
def penalty(critic, real, fake, share):
    mixed = (share * real + (1 - share) * fake).requires_grad_(True)
    score = critic(mixed)
    gradient = autograd.grad(
        outputs=score,
        inputs=mixed,
        grad_outputs=torch.ones_like(score),
        create_graph=True,
        retain_graph=True,
    )[0]
    gradient = gradient.view(gradient.size(0), -1)
    return ((gradient.norm(2, dim=1) - 1) ** 2).mean()

for x in X:
    loss = net(x * 0.5).mean() - net(x).mean() + 10 * penalty(net, x, x * 0.5, 0.3)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
"""
SCORE = "score = critic(mixed)\n    "
DRAWN = "score = nn.functional.dropout(critic(mixed))\n    print(score)\n    "
EQUATION = """
def residual(model, a, b):
    u = model(torch.cat([a, b], 1))
    ones = torch.ones_like(u)
    ua = torch.autograd.grad(u, a, grad_outputs=ones, create_graph=True)[0]
    ub = torch.autograd.grad(u, b, grad_outputs=ones, create_graph=True)[0]
    uaa = torch.autograd.grad(ua.sum(), a, create_graph=True)[0]
    return ub + (u * ua).sum(1, keepdim=True) - 0.1 * uaa.sum(1, keepdim=True)

def train():
    a, b = X[0][:, :2], X[0][:, 2:]
    a.requires_grad_()
    b.requires_grad = True
    for _ in range(3):
        optimizer.zero_grad()
        loss = (residual(net, a, b) ** 2).mean()
        loss.backward()
        optimizer.step()
        print(loss.item())

train()
"""
IN_THE_LOOP = """
for x in X:
    x.requires_grad = True
    answer = net(x)
    (slope,) = autograd.grad(outputs=answer.sum(), inputs=x, create_graph=True)
    curve = autograd.grad(slope.pow(2).sum(), x, create_graph=True)[0]
    loss = nn.functional.softplus(-answer).mean() + slope.pow(2).sum(1).mean() + curve.abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item(), file=None)
"""
OPTIMIZED = "x = torch.ones(2).requires_grad_()\no = torch.optim.SGD([x], 0.1)\n"
FREED = "for p in net.parameters():\n    p.requires_grad = True\n"
OF_TWO = """
class Energy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = net

    def forces(self, q, p):
        energy = self.net(torch.cat((q, p), -1)).sum()
        dq, dp = torch.autograd.grad(energy, (q, p), create_graph=True)
        return torch.cat((dp, -dq), -1)

    def forward(self, q, p):
        return self.forces(q, p)

model = Energy()
for x in X:
    q = x[:, :2].clone().requires_grad_()
    p = x[:, 2:].clone().requires_grad_()
    loss = (model(q, p) - x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
"""


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(PENALTY, id="a gradient penalty"),
        pytest.param(EQUATION, id="a differential equation of two inputs"),
        pytest.param(IN_THE_LOOP, id="among the statements of the loop"),
        pytest.param(OF_TWO, id="two gradients at once, in a network"),
    ],
)
def test_a_step_with_gradients_of_gradients_is_compiled(body: str, tmp_path: Path) -> None:
    text = PROGRAM + body.replace(", file=None", "")
    found = assert_follows(text, tmp_path, tolerance=2e-5)
    assert [f.message for f in found.report.findings] == []
    for written in ("@ms.jit", "ms.grad("):
        assert written in found.text
    for recorded in ("autograd", "requires_grad"):
        assert recorded not in found.text


def test_layers_of_other_networks_need_no_second_derivative(tmp_path: Path) -> None:
    other = "other = nn.Sequential(nn.PReLU(), nn.BatchNorm1d(4))\n"
    found = assert_follows(PROGRAM + other + PENALTY, tmp_path, tolerance=2e-5)
    assert [f.message for f in found.report.findings] == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("create_graph=True", "create_graph=False", id="nothing learns through it"),
        pytest.param("inputs=mixed", "inputs=[*net.parameters()]", id="by parameters"),
        pytest.param(SCORE, f"{SCORE}mixed.data.add_(0.1)\n    ", id="written between"),
        pytest.param(SCORE, f"if share:\n        {SCORE}", id="in a branch"),
        pytest.param(SCORE, DRAWN, id="drawn, and read elsewhere"),
        pytest.param("nn.Tanh()", "nn.PReLU()", id="a layer without a second one"),
    ],
)
def test_what_is_no_function_stays_and_is_reported(old: str, new: str, tmp_path: Path) -> None:
    text = (PROGRAM + "seen = torch.zeros(1)\n" + PENALTY).replace(old, new)
    found = convert(text, tmp_path)
    assert "@ms.jit" not in found.text
    codes = {f.code for f in found.report.findings}
    assert "eager-training" in codes, found.report.findings
    assert "second-derivative" in codes or "create_graph=False" in new


def test_what_nothing_else_reads_is_computed_once() -> None:
    found = with_functions(PROGRAM + PENALTY)
    assert found is not None
    assert [one.is_again for one in found.inner] == [False]
    assert found.text.count("score = critic(mixed)") == 1


def test_what_is_read_elsewhere_is_computed_again() -> None:
    found = with_functions(PROGRAM + EQUATION)
    assert found is not None
    inner = [(one.function, one.called) for one in found.inner if one.is_again]
    assert inner == [("u_of_a", {"net"}), ("u_of_b", {"net"}), ("value_of_a", set())]


@pytest.mark.parametrize(
    ("marked", "plain"),
    [
        ("x = f(y).requires_grad_()\n", "x = f(y)\n"),
        ("x = (\n    a * b\n).requires_grad_(True)\n", "x = (\n    a * b\n)\n"),
        ("x.requires_grad_(True)\ny = x\n", "y = x\n"),
        ("if a:\n    x.requires_grad = True\n", "if a:\n    pass\n"),
        ("x = torch.ones(2, requires_grad=True)\n", "x = torch.ones(2)\n"),
        ("x = torch.tensor(a, requires_grad=True, dtype=t)\n", "x = torch.tensor(a, dtype=t)\n"),
        ("x.requires_grad_(False)\n", "x.requires_grad_(False)\n"),
        (OPTIMIZED, OPTIMIZED),
        (FREED, FREED),
    ],
)
def test_marks_of_tensors_that_no_optimizer_has_are_left_out(marked: str, plain: str) -> None:
    text = "import torch\n" + marked
    assert edited(text, marks_of(text)).text == "import torch\n" + plain


def test_a_statement_beside_a_mark_stays() -> None:
    text = "import torch\nx = torch.ones(2)\nx.requires_grad = True; y = 2\n"
    assert edited(text, marks_of(text)).text == text.replace("x.requires_grad = True", "pass")

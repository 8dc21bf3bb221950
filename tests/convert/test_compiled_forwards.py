"""Statements of forward methods compile in the port, with torch's values and gradients."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.convert.support import converted, port_of, run_original, run_port

pytest.importorskip("torch")
ms = pytest.importorskip("mindspore")

#: Bodies of forward methods by what they have.
BODIES = {
    "Deleted": "m = (x > 0).float()\ny = self.a(x) * m\ndel m\nreturn y",
    "LastRound": "for i in range(3):\n    up = self.a(x) * i\nreturn up + i",
    "LastLayer": "for layer in self.children():\n    up = layer(x)\nreturn up * x",
    "LoopInBranch": (
        "if self.wide:\n    for layer in self.children():\n        up = layer(x)\n    x = x + up\n"
        "return x * x"
    ),
    "OneBranch": (
        "wide = x.shape[0] > 1\nif wide:\n    up = self.a(x)\nx = x + 1\n"
        "if wide:\n    x = x * up\nreturn x"
    ),
    "FirstRound": (
        "for i in range(2):\n    if i == 0:\n        kept = self.a(x)\n"
        "    else:\n        x = self.b(x) * kept\nreturn x"
    ),
    "Logged": "log_use(self.a)\nlog_use(log_use)\nreturn self.a(x) * x",
    "OfType": "return (x > 0).type(x.type()) * x + (x > 1).type('torch.FloatTensor') * x",
    "OfTypes": (
        "z = (x > 0).to(x) * x + (x < 1).type_as(x) * x\n"
        "return z + x.type(torch.FloatTensor) * (x > 0).type(torch.float32)"
    ),
    "Listed": (
        "rows = x.tolist()\na, b = rows[0][0], rows[1]\n"
        "return x * rows[0][1] + x.sum(1).tolist()[1] * x * a + b[2] * x * len(rows)"
    ),
    "Known": "h, w = torch.tensor([3, 2]).tolist()\nreturn (x * x).view(h, w)",
    "Least": "a, b = sorted([x.sum(), x.mean() * 3])\nreturn x * a + sorted((a, b, 2))[-1] * x",
    "Rounded": (
        "mean = x.mean().item()\n"
        "return x * round(x.sum().item(), 2) + x * abs(mean) * round(2.4) + x * round(mean)"
    ),
    "AnyOf": "return x * any([x.sum() > 2, x.mean() > 5]) + x * (2 if all([x[0, 0] > 0]) else 3)",
    "KeptOnSelf": (
        "self.m, a = x * 2, x\nfor t in range(3):\n"
        "    self.m = self.m * 0.5 + t * x\n    if t:\n        self.max = self.m * t\n"
        "        a = self.max * max(t, 2)\nreturn self.m * a"
    ),
    "Bucketed": "n = (torch.log(x.abs() / 2) / math.log(4) * 8).to(torch.long)\nreturn x * n",
    "Mapped": (
        "n = x.shape[0]\nq, k, v = map(lambda t: t.reshape(n, -1, 1) * n, (x, x * 2, self.a(x)))\n"
        "(p, w), (_, r) = map(lambda t: (t[:n], self.b(t[..., 0])), [q, k])\n"
        "z = torch.cat(tuple(map(lambda t: t[:, :n], (v, p))))\nreturn z.sum() * w * r"
    ),
    "Masked": (
        "m, k = x > 0, torch.isnan(x) | (x > 1)\n"
        "z = x * (m * 1) - 1 * k * x + (m + k) * x + (m + k + m) * 3 * x\n"
        "return z * ((~m * 1).sum() - (k[0] * 1).sum()) + x * ((x.shape[0] > 2) * 1)"
    ),
    "Unrecorded": (
        "with torch.no_grad():\n    p = torch.arange(x.shape[1]).float()\n    y = x * 2\n"
        "    rows, (top, _) = len(y), y.max(dim=1)\n    y = torch.relu(y).float()\n    y += 1\n"
        "return x * p + y * rows * x + top.sum() * x"
    ),
}
_HEAD = """
import math, torch
from torch import nn
class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.wide = nn.Linear(3, 3), nn.Linear(3, 3), True
        for number, part in enumerate(self.parameters()):
            part.data.fill_(0.3 - 0.2 * number)
        self.register_buffer("mean", torch.zeros(3))
"""
_LOGGING = """
def log_use(owner):
    name = owner.__class__.__name__
    torch._C._log_api_usage_once(f"net.{name}")
"""
_VALUES = "[[1.0, -2.0, 0.5], [3.0, 0.25, -1.0]]"
_TORCH = """
import json, torch, net
found = {}
for name in NAMES:
    x = torch.tensor(VALUES, requires_grad=True)
    loss = (getattr(net, name)()(x) ** 2).sum()
    loss.backward()
    found[name] = [loss.item(), *x.grad.flatten().tolist()]
print(json.dumps(found))
"""
_PORT = """
import json, mindspore as ms, net
found = {}
def answers(network):
    def loss(x):
        return (network(x) ** 2).sum()
    gradient = ms.value_and_grad(loss, 0)
    @ms.jit
    def step(x):
        return gradient(x)
    for one in (gradient, step):
        value, slope = one(ms.Tensor(VALUES, ms.float32))
        yield [float(value), *slope.flatten().tolist()]
for name in NAMES:
    found[name] = list(answers(getattr(net, name)()))
print(json.dumps(found))
"""


def test_forward_methods_compile_with_torchs_gradients(tmp_path: Path) -> None:
    text = _HEAD + _LOGGING
    for name, body in BODIES.items():
        lines = body.replace("\n", "\n        ")
        text += f"\n\nclass {name}(Base):\n    def forward(self, x):\n        {lines}\n"
    port, _ = converted(tmp_path, {"net.py": text})
    asked = {"NAMES": repr(list(BODIES)), "VALUES": _VALUES}
    codes = [_TORCH, _PORT]
    for old, new in asked.items():
        codes = [code.replace(old, new) for code in codes]
    expected = json.loads(run_original(tmp_path, codes[0]).splitlines()[-1])
    (port / "answers.py").write_text(codes[1])  # only a file's text is compiled
    found = json.loads(run_port(port, "import answers").splitlines()[-1])
    assert found.keys() == expected.keys()
    for name, wanted in expected.items():
        for mode, given in zip(("eager", "compiled"), found[name], strict=True):
            assert given == pytest.approx(wanted, rel=1e-4, abs=1e-5), (name, mode)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("up = x\nfor i in range(3):\n    up = up * i\nreturn up", id="bound before"),
        pytest.param(
            "if x.ndim > 1:\n    y = x\nelse:\n    raise ValueError\nreturn y", id="or an error"
        ),
        pytest.param(
            "for i in range(3):\n    y = x * i\n    if i:\n        x = y\nreturn x", id="in a round"
        ),
        pytest.param("z = [y * 2 for y in (x, x)]\nreturn z[0]", id="of a comprehension"),
        pytest.param("with open('f') as f:\n    y = x\nreturn y", id="with"),
        pytest.param(
            "if x.ndim:\n    y = x\ntry:\n    return y\nexcept NameError:\n    return x",
            id="told from None",
        ),
        pytest.param("if x.ndim:\n    y = x\nreturn (lambda: y)()", id="of an inner function"),
    ],
)
def test_a_name_that_is_bound_or_told_apart_is_not_bound_before(body: str) -> None:
    lines = body.replace("\n", "\n        ")
    text, _ = port_of(f"{_HEAD}\n\nclass Net(Base):\n    def forward(self, x):\n        {lines}\n")
    assert " = None" not in text


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("y = x", id="another name"),
        pytest.param("y = x.float()", id="a cast that may do nothing"),
        pytest.param("y = self.drop(x)", id="a layer that may return its input"),
        pytest.param("y = self.other(x)", id="a function that may return its input"),
        pytest.param("y = x * 2\n            x.mul_(2)", id="a change in place"),
        pytest.param("y = x * 2\n            self.mean += 1", id="a change of a buffer"),
        pytest.param("if x.ndim > 1:\n                y = x * 2", id="not on every path"),
        pytest.param("for y in (x, x):\n                z = y * 2", id="a loop's name"),
        pytest.param("y = x if x.ndim else x * 2", id="one of two"),
        pytest.param("return x * 2", id="a result"),
    ],
)
def test_a_block_whose_tensors_may_keep_their_gradient_stays_as_it_is(body: str) -> None:
    text, _ = port_of(
        f"{_HEAD}        self.drop = nn.Dropout()\n\n\nclass Net(Base):\n"
        "    def forward(self, x):\n        y = x\n        with torch.no_grad():\n"
        f"            {body}\n        return x * y\n"
    )
    assert "compat.no_grad()" in text
    assert "unlearned" not in text


def test_a_block_of_layers_that_compute_is_stopped_behind_it() -> None:
    text, _ = port_of(
        f"{_HEAD}        self.layer = nn.Linear(3, 3)\n\n    def forward(self, x):\n"
        "        with torch.no_grad():\n            y = self.layer(x).float()\n"
        "        return x * y\n"
    )
    assert "y = compat.unlearned(y)" in text


_READS = "    def read(self, y):\n        return y + self.m\n\n"


@pytest.mark.parametrize(
    ("methods", "line"),
    [
        pytest.param(
            "    def forward(self, x):\n        self.m = x\n        return x\n", 0, id="not read"
        ),
        pytest.param(
            f"{_READS}    def forward(self, x):\n        self.m = x\n        return self.read(x)\n",
            18,
            id="read in another method",
        ),
        pytest.param(
            "    def forward(self, x):\n        self.m = x + self.m\n        return x\n",
            15,
            id="read before",
        ),
        pytest.param(
            "    def forward(self, x):\n        self.n += 1\n        return x\n", 15, id="counted"
        ),
        pytest.param(
            "    def forward(self, x):\n        self.m = x * 2\n        self.m[0] = 1\n"
            "        return self.m\n",
            15,
            id="written into",
        ),
        pytest.param(
            "    def forward(self, x):\n        self.mean = self.mean + x\n        return x\n",
            0,
            id="a buffer",
        ),
        pytest.param(
            "    def read(self, y):\n        return y + self.m\n", 0, id="read and not bound"
        ),
    ],
)
def test_what_a_pass_keeps_and_reads_is_told_at_its_line(methods: str, line: int) -> None:
    _, findings = port_of(f"{_HEAD}\n\nclass Net(Base):\n{methods}")
    assert [one.line for one in findings if one.code == "kept-on-self"] == ([line] if line else [])

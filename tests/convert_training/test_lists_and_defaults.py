"""Lists that shrink, options by name, defaults: what compiles, and what is left eager."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.convert.support import converted, run_both

pytest.importorskip("torch")
pytest.importorskip("mindspore")

PROGRAM = """
import torch
from torch import nn
from torch.autograd import Variable

BEFORE


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x, scale=None, shift=0.0):
        return self.layer(x) * scale + shift


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Scaled()
        self.norm = nn.Linear(3, 3)

    def forward(self, x, **options):
        options.update(scale=self.norm(options["scale"]), shift=0.5)
        return self.inner(x, **options)


class Net(nn.Module):
    RATE = 2.0

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])
        self.joined = nn.ModuleList([nn.Linear(6, 3) for _ in range(4)])
        self.outer = Outer()
        self.joins = [0, 2]
        MADE

    METHOD

    def forward(self, x):
        BODY
        return x


net = Net()
with torch.no_grad():
    for k, p in enumerate(net.parameters()):
        p.copy_(0.3 * torch.sin(torch.arange(float(p.numel())).reshape(p.shape) + k))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
losses = []
for k in range(3):
    x = torch.cos(torch.arange(12.0).reshape(4, 3) * 1.3 + k)
    optimizer.zero_grad()
    loss = net(x).pow(2).mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
"""
KEPT = """
kept = [x]
for layer in self.layers:
    x = torch.tanh(layer(x))
    kept.append(x)
"""


def program(body: str, made: str = "", method: str = "", before: str = "") -> str:
    """A training of the network whose pass has this body."""
    lines = body.strip().replace("\n", "\n        ")
    text = PROGRAM.replace("BODY", lines).replace("MADE", made or "pass")
    return text.replace("METHOD", method).replace("BEFORE", before)


def said_of(tmp_path: Path, text: str) -> tuple[Path, str]:
    """The port, and why its loop stays eager; empty where it compiles."""
    port, report = converted(tmp_path, {"net.py": text})
    return port, "".join(f.message for f in report.findings if f.code == "eager-training")


COMPILED = [
    pytest.param(
        KEPT + "for join in self.joined:\n    x = join(torch.cat((x, kept.pop()), 1))",
        "",
        id="pop within an expression",
    ),
    pytest.param(
        KEPT + "for join in self.joined:\n    skip = kept.pop(0)\n"
        "    x = join(torch.cat([x, skip], 1))",
        "",
        id="pop of the first",
    ),
    pytest.param(
        KEPT + "for k, join in enumerate(self.joined):\n    if k in self.joins:\n"
        "        x = join(torch.cat([x, kept.pop()], 1))\n    else:\n        kept.pop()",
        "",
        id="pop in some rounds",
    ),
    pytest.param(
        KEPT + "kept.insert(0, x * 2)\nkept.extend([x, x * 3])\nkept.reverse()\n"
        "x = kept[0] * kept[1] - kept[-1] + kept[3]",
        "",
        id="insert, extend, reverse",
    ),
    pytest.param("x = self.outer(x, scale=x * 2)", "", id="options by name"),
    pytest.param(
        "x = Variable(self.layers[0](x)) * self.layers[1](x)",
        "",
        id="what a Variable is made of learns nothing",
    ),
    pytest.param(
        "x = gone_through(self.layers[0](x))",
        "def gone_through(x):\n    kept = [x, x * 2]\n    for old in reversed(kept):\n"
        "        x = x + old\n    return x - kept.pop()",
        id="lists of a function that the pass calls",
    ),
]


@pytest.mark.parametrize(("body", "before"), COMPILED)
def test_a_pass_compiles_and_trains_alike(body: str, before: str, tmp_path: Path) -> None:
    port, said = said_of(tmp_path, program(body, before=before))
    assert said == ""
    assert "jit" in (port / "net.py").read_text()
    expected, found = run_both(tmp_path, port, "import json, net; print(json.dumps(net.losses))")
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


SCALED = "def scaled(rate):\n    return lambda x, rate=rate: x * rate"


@pytest.mark.parametrize(
    ("body", "made", "method", "before", "reason"),
    [
        pytest.param(
            KEPT + "held = (kept, 2.0)\nx = x * held[1] + kept.pop() + held[0][-1]",
            "", "", "", "graph (list.pop)", id="a list that a tuple holds too",
        ),
        pytest.param(
            KEPT + "other = kept\nx = x + kept.pop() + other[-1]", "", "", "", "graph (list.pop)",
            id="a list with two names",
        ),
        pytest.param(
            KEPT + "while len(kept) > 1:\n    x = x + kept.pop()", "", "", "", "graph (list.pop)",
            id="a while loop",
        ),
        pytest.param(
            KEPT + "if x.sum() > 0:\n    x = x + kept.pop()", "", "", "", "graph (list.pop)",
            id="a branch that a tensor decides",
        ),
        pytest.param(
            "x = self.act(self.layers[0](x))", "self.act = scaled(3.0)", "", SCALED,
            "a lambda has a default value", id="a lambda that a function makes",
        ),
        pytest.param(
            "rate = float(len(self.joins))\n"
            "x, y = map(lambda v, rate=rate: v * rate, (self.layers[0](x), x))",
            "", "", "", "a lambda has a default value", id="a lambda in the pass",
        ),
        pytest.param(
            "x = self.grown(self.layers[0](x))", "",
            "def grown(self, x, rate=RATE):\n        return x * rate", "",
            "grown has a default value", id="a default of the class",
        ),
    ],
)  # fmt: skip
def test_what_no_graph_takes_stays_eager(
    body: str, made: str, method: str, before: str, reason: str, tmp_path: Path
) -> None:
    port, said = said_of(tmp_path, program(body, made, method, before))
    assert reason in said
    expected, found = run_both(tmp_path, port, "import json, net; print(json.dumps(net.losses))")
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_a_default_of_a_key_function_is_nothing_to_the_graph(tmp_path: Path) -> None:
    before = (
        "def ordered(names, last):\n"
        "    return sorted(names, key=lambda name, last=last: (name == last, name))\n\n\n"
        "ordered(['b', 'a'], 'a')"
    )
    assert said_of(tmp_path, program("x = self.layers[0](x)", before=before))[1] == ""

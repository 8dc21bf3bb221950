"""What is converted runs under MindSpore's `jit` with the gradients that it has eagerly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.warm_python import run_python

from isograd.convert.run import convert_path

ms = pytest.importorskip("mindspore")
at = pytest.importorskip("isograd.runtime.indexing").at

#: A network by name: what it makes, and what its forward method returns.
NETWORKS = {
    "Rolled": ("nn.Conv2d(3, 4, 3)", "torch.roll(self.made(x), shifts=(1, -2), dims=(2, 3))"),
    "Functional": ("nn.Conv2d(3, 4, 3)", "F.conv2d(x, self.made.weight * 2, padding=1)"),
    "Resized": ("nn.Conv2d(3, 4, 3)", "F.interpolate(self.made(x), size=(9, 9), mode='bilinear')"),
    "Contracted": (
        "nn.Conv2d(3, 4, 3)",
        "torch.einsum('bchw,bcwk->bhk', self.made(x), x[:, :1, :6, :6].expand(-1, 4, -1, -1))",
    ),
    "Adaptive": ("nn.AdaptiveMaxPool1d(3)", "self.made(x.flatten(1, 2).double()).float()"),
    "ByName": (
        "nn.ModuleDict({'a': nn.Sequential(nn.Conv2d(3, 4, 3)), 'b': nn.Conv2d(3, 4, 3)})",
        "sum([self.made[name](x) for name in self.made])",
    ),
    "Children": ("Chain()", "self.made(x)"),
    "InPlace": ("Scaled()", "self.made(x)"),
    "Own": ("nn.Conv2d(3, 4, 3)", "Swish.apply(self.made(x))"),
    "Dense": ("nn.Sequential(nn.Conv2d(3, 4, 3), Block())", "self.made(x)"),
    "Stepped": ("nn.Conv2d(3, 4, 3)", "self.made(x)[:, ::2, 1:-1:3] + x[..., None, 0, ::4].mean()"),
    "Zipped": ("Zips()", "self.made(x)"),
    "Greatest": ("nn.Conv2d(3, 4, 3)", "torch.topk(self.made(x), 2, dim=1).values"),
    "Strided": ("nn.Sequential(Halving(Step(2)), Halving(Step([2, 2])))", "self.made(x)"),
    "Extreme": (
        "nn.Conv2d(3, 4, 3)",
        "self.made(x).max(dim=1)[0] - torch.aminmax(x, dim=1).min.mean()",
    ),
    "Chosen": (
        "nn.Conv2d(3, 4, 3)",
        "self.made(x) * max((x * x).mean(), 0.1) * min(30, x.std().item(), 2.5)"
        " * max([0.01, self.made.weight.sum()]) * min(x.shape[-1], 4)",
    ),
    "Sorted": ("nn.Conv2d(3, 4, 3)", "self.made(x).sort(dim=-1, descending=True)[0][..., :3]"),
    "Middle": (
        "nn.Conv2d(3, 4, 3)",
        "self.made(x).median(dim=-1).values + x.quantile(0.3, dim=-1).mean()",
    ),
    "Named": (
        "nn.Conv2d(3, 4, 3)",
        "einops.rearrange(self.made(x), 'b (g c) h w -> b h (w g) c', g=2)"
        " * einops.reduce(x, 'b c h w -> b 1 1 1', 'mean')",
    ),
    "Pooled": ("nn.AdaptiveAvgPool2d((2, 3))", "self.made(F.max_pool2d(x, 2, ceil_mode=True))"),
}
#: What the networks are made of beside torch's layers.
PARTS = """
Step = collections.namedtuple("Step", ["stride"])


class Block(nn.ModuleDict):
    def __init__(self):
        super().__init__()
        for number in range(2):
            self.add_module("layer%d" % number, nn.Conv2d(4 + 2 * number, 2, 3, padding=1))

    def forward(self, first):
        features = [first]
        for name, layer in self.items():
            features.append(layer(torch.cat(features, 1)))
        return torch.cat(features, 1)


class Chain(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 1), nn.Tanh()

    def forward(self, x):
        for part in self.children():
            x = part(x)
        for name, part in self.named_children():
            if name != "a":
                x = part(x)
        return x


class Halving(nn.Module):
    def __init__(self, step):
        super().__init__()
        self.step, self.made = step, nn.Conv2d(3, 3, 2, stride=2)

    def forward(self, x):
        if self.step.stride == 1:  # the shapes of the other branch do not fit
            return self.made(x) + x
        return self.made(x)


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.made, self.size, self.inplace = nn.Conv2d(3, 4, 3), nn.Parameter(torch.ones(6)), False

    def forward(self, x):
        x = self.made(x)
        return x.mul_(self.size) if self.inplace else x * self.size


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, slope):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return slope * s * (1 + x * (1 - s))


class Zips(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Conv2d(3, 3, 3, padding=1), nn.Conv2d(3, 3, 1)])

    def forward(self, x):
        before = [x, 2 * x]
        for layer, first in zip(self.layers, before, strict=True):
            x = layer(x) + first
        return x
"""
RUN = """
import json, sys
sys.path.insert(0, "port")
import numpy as np, mindspore as ms, networks
x = ms.Tensor(np.random.RandomState(0).randn(2, 3, 8, 8).astype("f4"))
found = {}
def compare(network):
    def loss(x):
        return (network(x) ** 3).sum()
    gradient = ms.value_and_grad(loss, 0)
    @ms.jit
    def step(x):
        return gradient(x)
    pairs = list(zip(gradient(x), step(x)))
    return [float(((a - b).abs() / (1.0 + a.abs())).max()) for a, b in pairs]
for name in sys.argv[1:]:
    found[name] = compare(getattr(networks, name)())
print(json.dumps(found))
"""


def test_parts_of_results_are_taken_by_their_place_where_they_are_known(tmp_path: Path) -> None:
    lines = {
        "a = torch.topk(x, 2); return a.values": "return a[0]",
        "return x.sort(dim=1).indices": ")[1]",
        "a = x.max(dim=1); a = a.values if k else a; return a.values": "return a.values",
        "for a in (x.max(dim=1),):\n        b = a.values\n    return b": "b = a.values",
    }
    text = "import torch\n"
    for number, line in enumerate(lines):
        text += f"\n\ndef f{number}(x: torch.Tensor, k=0):\n    {line}\n"
    (tmp_path / "functions.py").write_text(text)
    convert_path(tmp_path / "functions.py", tmp_path / "port")
    port = (tmp_path / "port" / "functions.py").read_text().split("def f")[1:]
    assert [expected in part for expected, part in zip(lines.values(), port, strict=True)] == [
        True
    ] * len(lines), port


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(
            "kept = []\n        for m in self.layers:\n            kept.append(x)\n"
            "            x = m(x)\n        for old in reversed(kept):\n            x = x + old",
            "kept[::-1]",
            id="a list of the function",
        ),
        pytest.param(
            "kept = [x, x * 2]\n        for a, old in zip(kept, reversed(kept)):\n"
            "            x = x + a * old",
            "zip(kept, kept[::-1])",
            id="within zip",
        ),
        pytest.param(
            "kept = [x, x]\n        for old in reversed(kept):\n            x = x + old\n"
            "            kept.append(x)",
            "reversed(kept)",
            id="a list that the loop changes",
        ),
        pytest.param(
            "kept = more\n        for old in reversed(kept):\n            x = x + old",
            "reversed(kept)",
            id="what nothing shows to be a list",
        ),
        pytest.param(
            "kept = [x]\n        for kept in [(x, x)]:\n            pass\n"
            "        for old in reversed(kept):\n            x = x + old",
            "reversed(kept)",
            id="a name that a loop binds too",
        ),
    ],
)
def test_a_list_is_gone_through_backwards_by_a_slice(
    body: str, expected: str, tmp_path: Path
) -> None:
    text = (
        "import torch\nfrom torch import nn\n\n\nclass Net(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n"
        "        self.layers = nn.ModuleList([nn.Linear(2, 2)])\n\n"
        f"    def forward(self, x, more=()):\n        {body}\n        return x\n"
    )
    (tmp_path / "net.py").write_text(text)
    convert_path(tmp_path / "net.py", tmp_path / "port")
    port = (tmp_path / "port" / "net.py").read_text()
    assert expected in port
    assert ("reversed(" in port) is ("reversed(" in expected)


def test_runtime_functions_compile_with_their_gradients(tmp_path: Path) -> None:
    text = "import collections\nimport einops\nimport torch\n"
    text += "import torch.nn.functional as F\nfrom torch import nn\n"
    text += PARTS
    for name, (made, returned) in NETWORKS.items():
        text += (
            f"\n\nclass {name}(nn.Module):\n    def __init__(self):\n"
            f"        super().__init__()\n        self.made = {made}\n\n"
            f"    def forward(self, x):\n        return {returned}\n"
        )
    (tmp_path / "networks.py").write_text(text)
    report = convert_path(tmp_path / "networks.py", tmp_path / "port")
    assert [f for file in report.files for f in file.findings] == []
    (tmp_path / "run.py").write_text(RUN)
    code = "import runpy; runpy.run_path('run.py', run_name='__main__')"
    done = run_python(code, *NETWORKS, cwd=tmp_path, imported=["mindspore"])
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.strip().splitlines()[-1])
    assert found.keys() == NETWORKS.keys()
    assert {name: errors for name, errors in found.items() if max(errors) >= 1e-5} == {}


def _flipped(x: Any, key: Any) -> Any:
    """One kind of index by its number: the compiler reads this text."""
    if key == 0:
        return at(x, (slice(None), ms.Tensor([2, 0])))
    if key == 1:
        return at(x, (..., 1))
    return at(x, (0, slice(0, 3), ms.Tensor([1, 1])))


@pytest.mark.parametrize("key", [0, 1, 2])
def test_an_index_compiles_with_its_gradient(key: int) -> None:
    x = ms.Tensor(np.random.RandomState(0).randn(2, 3, 4).astype("f4"))

    def total(given: Any) -> Any:
        return (_flipped(given, key) ** 3).sum()

    gradient = ms.value_and_grad(total, 0)
    eager, compiled = gradient(x), ms.jit(gradient)(x)
    assert float((eager[1] - compiled[1]).abs().max()) < 1e-5
    assert float(eager[1].abs().max()) > 0

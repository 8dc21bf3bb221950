"""What is left of 1 behind a tanh: MindSpore's own has no digits of it from about 4.5 on."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert.support import converted, port_of, run_both, run_original, run_port

WAYS = {
    "density": "y = torch.tanh(x)\n    return torch.log(1 - y.pow(2) + 1e-6)",
    "method and product": "y = x.tanh()\n    return (1 - y * y).clamp(min=1e-6).log()",
    "by a name": "s = torch.square(torch.tanh(x))\n    return torch.log(2.0 * (1 - s) + 1e-6)",
    "inverse": "y = F.tanh(x) * 2\n    return raw(y / 2)",
    "method of an object": "return Policy().density(x)",
    "logarithm of the distance": "y = torch.tanh(x)\n    return torch.log(1 + 1e-6 - y)",
}
_MODULE = """
import torch
import torch.nn.functional as F


def raw(action):
    return torch.atanh(torch.clamp(action, -0.99999, 0.99999))


class Policy:
    def __init__(self):
        self.scale = 2.0

    def squash(self, x):
        return torch.tanh(x)

    def density(self, x):
        y = self.squash(x)
        return -torch.log(self.scale * (1 - y.pow(2)) + 1e-6)


def run(x):
    WAY


def told():
    x = torch.linspace(-5.5, 5.5, 41).requires_grad_()
    y = run(x)
    y.sum().backward()
    return [y.tolist(), x.grad.tolist()]
"""
_COMPILED = """
import json
import mindspore as ms
from mindspore import ops
import net
x = ops.linspace(ms.Tensor(-5.5, ms.float32), ms.Tensor(5.5, ms.float32), 41)

def total(x):
    return net.run(x).sum()

graded = ms.jit(ms.value_and_grad(total))
print(json.dumps([part.asnumpy().tolist() for part in graded(x)]))
"""
_RUN = "import json, net; print(json.dumps(net.told()))"


@pytest.mark.parametrize("name", WAYS)
def test_what_is_left_of_one_is_torchs(name: str, tmp_path: Path) -> None:
    port, _ = converted(tmp_path, {"net.py": _MODULE.replace("WAY", WAYS[name])})
    (expected, slopes), (found, own_slopes) = run_both(tmp_path, port, _RUN)
    # One unit in the last place of the tanh is 3e-3 of what is left of 1 at 5.5.
    np.testing.assert_allclose(found, expected, atol=6e-3)
    np.testing.assert_allclose(own_slopes, slopes, atol=2e-2)


@pytest.mark.parametrize("name", ["density", "inverse"])
def test_and_in_a_static_graph(name: str, tmp_path: Path) -> None:
    port, _ = converted(tmp_path, {"net.py": _MODULE.replace("WAY", WAYS[name])})
    (port / "compiled.py").write_text(_COMPILED, encoding="utf-8")
    expected, slopes = json.loads(run_original(tmp_path, _RUN))
    found, own_slopes = json.loads(run_port(port, "import compiled"))
    assert found == pytest.approx(sum(expected), abs=0.1)
    np.testing.assert_allclose(own_slopes, slopes, atol=2e-2)


@pytest.mark.parametrize(
    "code",
    ["return torch.tanh(x) + torch.log(1 - x ** 2)", "return torch.log(torch.exp(torch.tanh(x)))"],
)
def test_an_activation_stays_native(code: str) -> None:
    text, _ = port_of(_MODULE.replace("torch.tanh(x)\n\n", "x\n\n").replace("WAY", code))
    assert "ops.tanh(x)" in text

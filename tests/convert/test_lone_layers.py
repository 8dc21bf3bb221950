"""Layers of the runtime are cells where a port's own classes are, without Module of torch's."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert.support import converted, run_both

from isograd.convert.generated import library
from isograd.convert.lone_layers import module_of

#: Calls of layers, each with the shape of what it is given.
_LAYERS = {
    "ReLU(True)": (2, 3),
    "ReLU6()": (2, 3),
    "GELU('tanh')": (2, 3),
    "ELU(0.5)": (2, 3),
    "CELU(alpha=2.0)": (2, 3),
    "SELU(inplace=True)": (2, 3),
    "LeakyReLU(0.3)": (2, 3),
    "Softplus(2, 5)": (2, 3),
    "Hardtanh(-0.5, 0.5)": (2, 3),
    "Hardshrink(0.1)": (2, 3),
    "Softshrink(0.1)": (2, 3),
    "Threshold(0.1, 20)": (2, 3),
    "GLU(1)": (2, 4),
    "Mish()": (2, 3),
    "Softmax(dim=1)": (2, 3),
    "Softmax()": (2, 1),
    "LogSoftmax(-1)": (2, 3),
    "Softmin(0)": (2, 3),
    "LocalResponseNorm(2)": (1, 4, 3, 3),
    "Identity(4, unused=True)": (2, 3),
    "Flatten(0, 1)": (2, 3, 2),
    "Unflatten(1, (2, 2))": (2, 4),
    "PixelShuffle(2)": (1, 4, 2, 2),
    "ChannelShuffle(2)": (1, 4, 2, 2),
    "Unfold(2, padding=1)": (1, 2, 3, 3),
    "Fold((3, 3), 2)": (1, 8, 4),
    "MaxPool2d(2, ceil_mode=True)": (1, 2, 3, 3),
    "AvgPool2d(3, 2, 1, True, False)": (1, 2, 4, 4),
    "AdaptiveAvgPool2d((None, 2))": (1, 2, 4, 4),
    "AdaptiveMaxPool1d(2)": (1, 2, 4),
    "ZeroPad2d((1, 0, 2, 1))": (1, 2, 3, 3),
    "ConstantPad1d(2, 0.5)": (1, 2, 3),
    "ReflectionPad2d(1)": (1, 2, 3, 3),
    "Upsample(scale_factor=2, mode='bilinear', align_corners=True)": (1, 2, 3, 3),
}


def _loaded(text: str, path: Path) -> Any:
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_layer_that_is_a_cell_computes_and_shows_the_same(tmp_path: Path) -> None:
    import mindspore as ms

    names = {call.partition("(")[0] for call in _LAYERS}
    alone = module_of(names, ())
    assert "class Module" not in alone
    both = [
        _loaded(text, tmp_path / f"{name}.py")
        for name, text in (("alone", alone), ("whole", library().module_of(names)))
    ]
    draw = np.random.default_rng(0)
    for call, shape in _LAYERS.items():
        values = ms.Tensor(draw.normal(size=shape).astype(np.float32))
        found = []
        for module in both:
            layer = eval(call, vars(module))  # the table's
            layer.set_train(False)
            sums = ms.value_and_grad(lambda x, f=layer: (f(x * 1) * f(x * 1)).sum())
            found.append((layer(values * 1).asnumpy(), *(n.asnumpy() for n in sums(values))))
            found[-1] += (repr(layer).replace("\n", ""),)
        for one, other in zip(*found, strict=True):
            assert np.array_equal(one, other), call


_NETWORK = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, act=nn.Identity):
        super().__init__()
        self.body = nn.Sequential(
            nn.ZeroPad2d((1, 0, 1, 0)), nn.Conv2d(2, 4, 2), nn.LeakyReLU(0.2), nn.ELU(0.5)
        )
        self.act = act(4, place=1)
        self.shares = nn.Softmax(dim=1)
        self.drop = nn.Dropout(0.0)

    def forward(self, x):
        x = self.act(self.drop(self.body(x)))
        return self.shares(x.flatten(1))


def run(weight, x):
    net = Net()
    with torch.no_grad():
        net.body[1].weight.copy_(weight)
        net.body[1].bias.zero_()
    modes = [part.training for part in net.modules()]
    net.eval()
    modes += [net.shares.training, net.body[2].training]
    net.train()
    modes += [net.shares.training, net.body[2].training]
    y = net(x)
    (y[:, 0] * y[:, 1]).sum().backward()
    names = [name for name, _ in net.named_parameters()]
    return [modes, names, sorted(net.state_dict()), y.tolist(), net.body[1].weight.grad.tolist()]
"""
_RUN = """
import json
import numpy as np
import net

draw = np.random.default_rng(0)
w, x = (draw.normal(size=size).astype(np.float32) for size in ((4, 2, 2, 2), (2, 2, 3, 3)))
modes, names, keys, y, grad = net.run(TENSOR(w), TENSOR(x))
print(json.dumps([modes, names, keys, np.round(y, 4).tolist(), np.round(grad, 3).tolist()]))
"""


def test_a_network_with_such_layers_is_torchs(tmp_path: Path) -> None:
    port, _ = converted(tmp_path, {"net.py": _NETWORK})
    assert "class Module" not in (port / "torch_semantics.py").read_text()
    expected, found = run_both(tmp_path, port, _RUN)
    assert found == expected


@pytest.mark.parametrize(
    ("code", "has_module"),
    [
        pytest.param("net = nn.Sequential(nn.LeakyReLU(0.2))", False, id="a layer with a setting"),
        pytest.param("net = nn.Sequential(nn.RReLU(0.1))", True, id="a layer with modes"),
        pytest.param(
            "class Own(nn.Softmin):\n    pass\n\n\nnet = nn.Sequential(Own(1))",
            True,
            id="a class of the project's derives from it",
        ),
        pytest.param(
            "net = nn.Sequential(nn.Softmax(1), nn.CTCLoss(), nn.Linear(1, 2))\n"
            "nn.utils.weight_norm(net[2])",
            True,
            id="something else needs it",
        ),
    ],
)
def test_where_module_stays(tmp_path: Path, code: str, *, has_module: bool) -> None:
    port, _ = converted(tmp_path, {"net.py": f"import torch\nfrom torch import nn\n\n{code}\n"})
    text = (port / "torch_semantics.py").read_text()
    assert ("class Module" in text) == has_module

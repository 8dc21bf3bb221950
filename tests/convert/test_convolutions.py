"""What is read of convolutions is torch's: weights of a Conv1d, and settings by their axes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.convert.support import converted, port_of, run_both

from isograd.convert.generated import library

HEAD = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n\n\n"
_WEIGHTS = """
class Net(nn.Module):
    def __init__(self, conv):
        super().__init__()
        self.conv, self.own = conv, nn.Conv1d(4, 4, 3)
        self.own.weight.data.copy_(torch.sin(torch.arange(48.0)).reshape(4, 4, 3))

    def forward(self, x):
        w = self.own.weight
        return x[:, :, : w.dim()] * w[:, :, 0].sum() + w.squeeze(1).sum() + self.taps(self.conv)

    def taps(self, c):
        return c.weight[:, :, 1].mean()

def run():
    conv = nn.Conv1d(4, 6, 3, groups=2)
    nn.init.constant_(conv.weight, 0.5)
    with torch.no_grad():
        conv.weight[:, :, 0] = 0.25
        conv.weight.mul_(torch.ones(6, 2, 3))
    net = Net(conv)
    y = net(torch.sin(torch.arange(40.0)).reshape(1, 4, 10))
    shapes = [list(p.shape) for p in net.parameters()]
    return y.tolist(), shapes, conv(torch.ones(1, 4, 5)).mean().item() - conv.bias.mean().item()
"""
_SETTINGS = """
class Wrap(nn.Module):
    def __init__(self, conv, function):
        super().__init__()
        self.conv, self.function = conv, function

    def forward(self, x):
        c = self.conv
        return self.function(x, c.weight, c.bias, c.stride, c.padding, c.dilation, c.groups)

class Own(nn.Module):
    def __init__(self, pad):
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 3, padding=pad)

    def forward(self, x):
        c = self.conv
        return F.conv2d(x, c.weight, c.bias, c.stride, c.padding, c.dilation, c.groups)

def settings(c):
    padding = c.padding if isinstance(c.padding, str) else list(c.padding)
    return [padding, list(c.kernel_size), list(c.stride), list(c.dilation), c.groups]

def run():
    x = torch.sin(torch.arange(80.0)).reshape(1, 4, 4, 5)
    found = []
    for pad in (1, (1, 2), (1, 1), (0, 1), "same"):
        conv = nn.Conv2d(4, 4, 3, padding=pad, groups=2)
        found.append((Wrap(conv, F.conv2d)(x) - conv(x)).abs().max().item() < 1e-5)
        own = Own(pad)
        found.append((own(x) - own.conv(x)).abs().max().item() < 1e-5)
        found.append(settings(conv))
    line = nn.Conv1d(4, 4, 3, stride=2, padding=2, groups=4)
    found += [settings(line), settings(nn.ConvTranspose2d(4, 4, 2, stride=2))]
    return found
"""
#: A text of torch, and what its port has: MindSpore's own class, or the runtime's.
_OWN, _RUNTIME = "nn.Conv1d(4, 6, 3, pad_mode='pad'", "compat.Conv1d(4, 6, 3"


@pytest.mark.parametrize("code", [_WEIGHTS, _SETTINGS], ids=["weights", "settings"])
def test_what_is_read_of_a_convolution_is_torchs(tmp_path: Path, code: str) -> None:
    port, _ = converted(tmp_path, {"net.py": HEAD + code})
    expected, found = run_both(tmp_path, port, "import json, net\nprint(json.dumps(net.run()))\n")
    assert _rounded(found) == _rounded(expected)


def _rounded(value: object) -> object:
    if isinstance(value, list):
        return [_rounded(part) for part in value]
    return round(value, 4) if isinstance(value, float) else value


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param("nn.init.xavier_normal_(c.weight)", _OWN, id="initial values"),
        pytest.param("c.weight.data.normal_(0, 0.01)", _OWN, id="drawn in place"),
        pytest.param("n = c.weight.shape[0], c.weight.size(1)", _OWN, id="channels"),
        pytest.param("n = c.weight.detach().abs().mean()", _OWN, id="one number of all"),
        pytest.param("d = c.weight.device, c.weight.dtype", _OWN, id="device"),
        pytest.param("n = nn.Linear(2, 3)\nw = n.weight.t()", _OWN, id="of another layer"),
        pytest.param("w = c.weight", _RUNTIME, id="a name"),
        pytest.param("n = c.weight.size()", _RUNTIME, id="all sizes"),
        pytest.param("nn.init.dirac_(c.weight)", _RUNTIME, id="initial values by axes"),
        pytest.param("for p in c.parameters():\n    print(p.shape)", _RUNTIME, id="any shape"),
        pytest.param(
            "for n, p in c.named_parameters():\n    print(p.dim())", _RUNTIME, id="any axes"
        ),
        pytest.param(
            "k = sum(p.numel() for p in c.parameters())\n"
            "k = [p for p in c.parameters() if p.dim() > 1 or len(p.shape) == 1 or p.ndim < 2]",
            _OWN,
            id="weights apart from biases",
        ),
        pytest.param("c.weight.data = torch.ones(6, 4, 3)", _RUNTIME, id="data is set"),
        pytest.param("c.weight = nn.Parameter(torch.ones(6, 4, 3))", _RUNTIME, id="it is set"),
        pytest.param("c.weight.copy_(torch.ones(6, 4, 3))", _RUNTIME, id="it is written"),
        pytest.param(
            "def f(m):\n    return m.weight.permute(2, 0, 1)", _RUNTIME, id="of a layer not known"
        ),
        pytest.param(
            "def f(m):\n    if isinstance(m, nn.Conv2d):\n        return m.weight[0]",
            _OWN,
            id="a question says which layer it is",
        ),
    ],
)
def test_a_conv1d_whose_weight_is_read_by_its_axes_is_the_runtimes(
    lines: str, expected: str
) -> None:
    port, _ = port_of(f"{HEAD}c = nn.Conv1d(4, 6, 3)\n{lines}\n")
    assert expected in port


def test_a_setting_of_what_is_not_known_is_asked_of_it() -> None:
    port, _ = port_of(HEAD + "def f(m):\n    return nn.Conv2d(1, 2, 3), m.padding, m.stride\n")
    assert port.rstrip().endswith('compat.layer_size(m, "padding"), m.stride')


def test_names_of_layers_bring_nothing_of_the_sizes_of_convolutions() -> None:
    names, sizes = (library().module_of({f"layer_{kind}"}) for kind in ("attribute", "size"))
    assert "Transpose" not in names
    assert "native_name" not in sizes

"""A Sequential whose children are set as attributes runs them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tests.convert.support import converted, run_both

NETS = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
        self.head.fc = nn.Linear(4, 2)
        self.head.fc = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), self.head.fc)

    def forward(self, x):
        return self.head(x)


def filled(net):
    for number, parameter in enumerate(net.parameters()):
        values = torch.arange(parameter.numel()).reshape(parameter.shape)
        parameter.data.copy_(0.3 * torch.sin(values + number))
    return net


def made():
    by_name = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
    by_name.depth = 3
    by_name.fc = nn.Linear(4, 2)
    x = torch.arange(6.0).reshape(2, 3)
    names = [name for net in (Net(), by_name) for name, _ in net.named_parameters()]
    outs = [filled(net)(x).tolist() for net in (Net(), by_name)]
    return names, outs, by_name.depth
"""


def test_children_that_are_attributes_run(tmp_path: Path) -> None:
    port, _ = converted(tmp_path, {"nets.py": NETS})
    expected, found = run_both(tmp_path, port, "import json, nets; print(json.dumps(nets.made()))")
    assert (found[0], found[2]) == (expected[0], expected[2])
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-5, atol=1e-6)


REPLACED = """
import torch
from torch import nn


class Double(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return 2 * self.layer(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Identity(), nn.Sequential(nn.Flatten(1), nn.ReLU()))
        self.rows = nn.ModuleList([nn.ReLU()])

    def forward(self, x):
        return self.rows[0](self.body(x))


class Options:
    pass


def by_children(module):
    for name, child in module.named_children():
        if isinstance(child, nn.ReLU):
            setattr(module, name, Double(child))
        else:
            by_children(child)


def by_dictionary(module):
    for name, child in module._modules.items():
        if isinstance(child, nn.ReLU):
            module._modules[name] = Double(child)
        else:
            by_dictionary(child)


def by_path(module, make):
    for path, child in list(module.named_modules()):
        if isinstance(child, nn.ReLU):
            parent = module.get_submodule(path.rpartition(".")[0])
            new = make(child)
            setattr(parent, path.rpartition(".")[2], new)


def more(module):
    module.body.add_module("last", nn.Identity())
    module.body.register_module("end", Double(nn.Identity()))
    return module


def made():
    x, options = torch.tensor([[-1.0, 2.0]]), Options()
    first, second, third = Net(), Net(), Net()
    by_children(first)
    by_dictionary(second)
    by_path(third, Double)
    fourth = Net()
    fourth.body.add_module("last", Double(nn.Identity()))
    for name, value in {"rate": 1, "depth": 2}.items():
        setattr(options, name, value)
    nets = [first, second, third, fourth, more(Net())]
    return [net(x).tolist() for net in nets], options.rate, [len(net.body) for net in nets]
"""


def test_layers_that_take_the_place_of_others_run(tmp_path: Path) -> None:
    port, _ = converted(tmp_path, {"nets.py": REPLACED})
    code = "import json, nets; print(json.dumps(nets.made()))"
    expected, found = run_both(tmp_path, port, code)
    assert found == expected

"""A class's own `parameters` and `named_parameters` are what a network is asked by them."""

from __future__ import annotations

from pathlib import Path

from tests.convert.support import converted, run_both

NETS = """
import torch
from torch import nn


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 2)
        self.second = nn.Linear(2, 2)


class Weights(Base):
    def parameters(self, recurse=True):
        for parameter in super().parameters(recurse):
            if parameter.dim() > 1:
                yield parameter


class Biases(Base):
    def named_parameters(self, *args, **kwargs):
        for name, parameter in super().named_parameters(*args, **kwargs):
            if "bias" in name:
                yield name, parameter


class Last(Base):
    def parameters(self):
        return list(nn.Module.parameters(self))[-1:]


class Twice(Last):
    def parameters(self):
        return super().parameters() * 2


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = Weights()
        self.biases = Biases()
        self.twice = Twice()

    def counts(self):
        of_biases = len(list(self.biases.parameters()))
        return [len(list(self.weights.parameters())), of_biases, len(self.twice.parameters())]


def made():
    net = Net()
    optimizer = torch.optim.SGD(net.weights.parameters(), lr=0.1)
    net.weights.requires_grad_(False)
    names = [name for name, _ in net.biases.named_parameters()]
    learns = [parameter.requires_grad for parameter in net.parameters()]
    return net.counts(), names, learns, len(optimizer.param_groups[0]["params"])
"""


def test_what_a_class_calls_its_parameters_is_asked_by_others(tmp_path: Path) -> None:
    port, _ = converted(tmp_path, {"nets.py": NETS})
    expected, found = run_both(tmp_path, port, "import json, nets; print(json.dumps(nets.made()))")
    assert found == expected


NESTED = """
import torch
from torch import nn


def made(*sizes):
    return nn.ParameterList([nn.Parameter(torch.full((size,), 0.5)) for size in sizes])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lists = nn.ParameterList([made(2, 3), nn.Parameter(torch.ones(2)), made(2)])
        self.lists += [torch.zeros(2)]
        self.named = nn.ParameterDict({"b": torch.ones(1), "a": made(2, 1)})
        self.named["c"] = nn.ParameterDict({"d": torch.ones(1)})

    def forward(self, x):
        x = x * self.lists[0][0] + self.lists[1] + self.lists[-1] * self.named["a"][1]
        return [x] + [[key, value] for key, value in self.named.items() if key == "b"]


def asked():
    net, state = Net(), {name: part * 2 for name, part in Net().state_dict().items()}
    net.load_state_dict(state)
    out, (key, value) = net(torch.ones(2))
    names = [name for name, _ in net.named_parameters()]
    sizes = len(net.lists), len(net.named), list(net.named), [len(one) for one in net.lists]
    last = net.named.pop("a")[1].tolist(), net.named.get("a"), "c" in net.named
    return list(state), names, sizes, out.tolist(), key, value.tolist(), last, len(net.named)
"""


def test_lists_of_parameters_in_each_other_have_torchs_names(tmp_path: Path) -> None:
    port, _ = converted(tmp_path, {"nets.py": NESTED})
    expected, found = run_both(tmp_path, port, "import json, nets; print(json.dumps(nets.asked()))")
    assert found == expected

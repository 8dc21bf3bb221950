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

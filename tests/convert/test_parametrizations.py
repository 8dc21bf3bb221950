"""Weights that are computed from others, as torch.nn.utils.parametrize has them."""

from __future__ import annotations

from pathlib import Path

from tests.convert.support import converted, run_both

_NET = """
import torch
import torch.nn.utils.parametrize as parametrize
from torch import nn
from torch.nn.utils.parametrizations import weight_norm


class Symmetric(nn.Module):
    def forward(self, values):
        return values.triu() + values.triu(1).transpose(-1, -2)

    def right_inverse(self, values):
        return values.triu()


class Twice(nn.Module):
    def forward(self, values):
        return values * 2

    def right_inverse(self, values):
        return values / 2


def made():
    layer = nn.Linear(2, 2)
    nn.init.constant_(layer.weight, 1.0)
    nn.init.ones_(layer.bias)
    return layer


def results():
    layer, x = made(), torch.ones(1, 2)
    parametrize.register_parametrization(layer, "weight", Symmetric())
    layer.weight = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    found = [layer.weight, layer.parametrizations.weight.original * 1, layer(x)]
    parametrize.remove_parametrizations(layer, "weight")
    found += [layer.weight, layer(x)]
    layer = made()
    for name in ("weight", "bias", "weight"):
        parametrize.register_parametrization(layer, name, Twice())
    found += [layer.weight, layer.parametrizations.weight.original * 1, layer(x)]
    held = layer.parametrizations
    sizes = [len(held.weight), len(held), len(held["bias"]), "bias" in held]
    sizes += [isinstance(one, Twice) for one in held.weight]
    parametrize.remove_parametrizations(layer, "weight")
    found += [layer.weight, layer.bias, layer(x)]
    parametrize.remove_parametrizations(layer, "bias")
    sizes += [parametrize.is_parametrized(layer), "weight" in dict(layer.named_parameters())]
    normed = weight_norm(made())
    normed.weight = torch.tensor([[3.0, 4.0], [0.0, 2.0]])
    found += [normed.weight, normed.parametrizations.weight.original0, layer(x)]
    return [one.tolist() for one in found], sizes
"""


def test_they_are_set_read_and_taken_away(tmp_path: Path) -> None:
    port, report = converted(tmp_path, {"net.py": _NET})
    assert not report.findings
    code = "import json, net\nprint(json.dumps(net.results()))"
    expected, found = run_both(tmp_path, port, code)
    assert found == expected

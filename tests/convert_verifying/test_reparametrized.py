"""Weights computed from other parameters, converted and verified against torch's."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest
from tests.convert.support import converted, run_port

from isograd.convert.verifying import Outcome, VerifyOptions, parse_builder, parse_input
from isograd.convert.verifying import verify_builders as verify
from isograd.convert.verifying.places import place_of, place_of_port

pytest.importorskip("torch")
pytest.importorskip("mindspore")

NET = """
import torch
import torch.nn as nn
import torch.nn.utils.parametrize as parametrize
from torch.nn.utils import parametrizations, remove_weight_norm, spectral_norm, weight_norm


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).transpose(-1, -2)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = weight_norm(nn.Conv1d(3, 8, 3, padding=1))
        self.second = spectral_norm(nn.Linear(8, 8))
        self.third = parametrizations.weight_norm(nn.Linear(8, 8), dim=None)
        self.fourth = parametrizations.spectral_norm(nn.Conv1d(8, 4, 1), n_power_iterations=2)
        self.fifth = nn.utils.weight_norm(nn.ConvTranspose1d(4, 4, 2, stride=2), dim=1)
        self.sixth = nn.Linear(4, 4)
        parametrize.register_parametrization(self.sixth, "weight", Symmetric())
        self.last = remove_weight_norm(weight_norm(nn.Linear(4, 2)))

    def forward(self, x):
        x = torch.relu(self.first(x)).transpose(1, 2)
        x = torch.tanh(self.third(torch.relu(self.second(x))))
        x = self.fifth(self.fourth(x.transpose(1, 2)))
        return self.last(self.sixth(x.transpose(1, 2)))


def build():
    return Net()
"""
UNDO = """
import json
import numpy as np
import mindspore as ms
from net import compat
made = []
for do, undo in ((compat.weight_norm, compat.remove_weight_norm),
                 (compat.spectral_norm, compat.remove_spectral_norm)):
    layer = compat.Linear(3, 2)
    before = do(layer).weight.asnumpy()
    after = undo(layer)
    assert type(after) is compat.Linear
    made.append([sorted(p.name for p in after.get_parameters()),
                 float(np.abs(after.weight.asnumpy() - before).max())])
try:
    layer = compat.spectral_norm(compat.Linear(3, 2), n_power_iterations=0)
    layer(ms.Tensor(np.ones((1, 3), "f4")))
except ValueError as error:
    made.append(str(error))
print(json.dumps(made))
"""


def test_a_network_with_every_kind_is_equivalent(tmp_path: Path) -> None:
    folder, report = converted(tmp_path, {"net.py": NET})
    assert report.findings == ()
    original = tmp_path / "original"
    (result,) = verify(
        place_of(original),
        place_of_port(original, folder),
        [parse_builder("net:build")],
        VerifyOptions(inputs=(parse_input("2x3x10"),)),
    )
    assert result.outcome is Outcome.EQUIVALENT, result
    assert all(seed.by_name for seed in result.seeds)


def test_undone_they_are_plain_layers(tmp_path: Path) -> None:
    names = "weight_norm, remove_weight_norm, spectral_norm, remove_spectral_norm"
    text = f"from torch.nn import Linear\nfrom torch.nn.utils import {names}\n"
    text += f"USED = ({names}, Linear)\n"
    folder, report = converted(tmp_path, {"net.py": text})
    assert report.findings == ()
    weight, spectral, said = json.loads(run_port(folder, textwrap.dedent(UNDO)))
    assert weight[0] == spectral[0] == ["bias", "weight"]
    assert weight[1] == spectral[1] == 0
    assert "n_power_iterations is 0" in said

"""Programs that decide by the name of a layer's class: the names are torch's in the port."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert.support import converted, run_both

from isograd.knowledge import load_knowledge
from isograd.runtime.printing import TORCH_NAMES

_NETWORK = """
import torch
from torch import nn


class Dense(nn.Module):
    def forward(self, x):
        return x


def weights_init(m):
    name = m.__class__.__name__
    if name.find("Linear") != -1:
        nn.init.constant_(m.weight, 0.5)
    elif name.startswith("ConvTranspose"):
        nn.init.constant_(m.weight, 0.25)
    elif type(m).__name__ in ("BatchNorm2d", "GroupNorm"):
        nn.init.constant_(m.weight, 2.0)


class Starting:
    @staticmethod
    def init(m):
        if m.__class__.__name__ == "Linear":
            nn.init.constant_(m.bias, 0.75)


def found():
    net = nn.Sequential(
        nn.Linear(2, 2), nn.ConvTranspose2d(1, 1, 2), nn.GroupNorm(1, 2), Dense(),
        nn.ModuleList([nn.Hardswish()]), nn.Embedding(4, 2, padding_idx=0),
    )
    net.apply(weights_init)
    net.apply(Starting.init)
    weights = [net[at].weight.sum().item() for at in range(3)] + [net[0].bias.sum().item()]
    optimizer = torch.optim.AdamW(net.parameters())
    names = [m._get_name() for m in net.modules()]
    return [weights, names, type(optimizer).__name__]
"""


def test_names_of_classes_are_torchs(tmp_path: Path) -> None:
    port, _ = converted(tmp_path, {"net.py": _NETWORK})
    expected, found = run_both(tmp_path, port, "import json, net\nprint(json.dumps(net.found()))")
    assert found == expected


def test_each_layer_of_another_name_is_in_the_table() -> None:
    entries = load_knowledge().entries
    renamed = {
        entry.instance.rpartition(".")[2]: entry.api.rpartition(".")[2]
        for entry in entries
        if entry.api.startswith("torch.nn.") and entry.instance.startswith("nn.")
    }
    several = {"Upsample"}  # three classes of torch's become it
    different = {ours: torchs for ours, torchs in renamed.items() if ours != torchs}
    assert {k: v for k, v in different.items() if k not in several}.items() <= TORCH_NAMES.items()

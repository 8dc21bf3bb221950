"""Attributes of layers by names that only the run shows."""

from __future__ import annotations

from pathlib import Path

from tests.convert.support import converted, port_of, run_both

_ASKED = """
import torch
from torch import nn


def init(module, names):
    for name in names:
        value = getattr(module, name, None)
        if value is not None:
            nn.init.ones_(value)


def made():
    net = nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2), nn.Embedding(2, 2))
    for module in net.modules():
        init(module, ["weight", "bias"])
    norm, linear = nn.BatchNorm1d(3), nn.Linear(2, 3)
    shapes = [list(getattr(norm, name).shape) for name in ("weight", "bias", "running_mean")]
    asked = [hasattr(linear, name) for name in ("weight", "in_features", "gamma")]
    first = [getattr(net[i], name).sum().item() for i in (0, 1) for name in ("weight", "bias")]
    return [p.sum().item() for p in net.parameters()], shapes, asked, first
"""


def test_they_are_found(tmp_path: Path) -> None:
    port, report = converted(tmp_path, {"net.py": _ASKED})
    assert not report.findings
    code = "import json, net\nprint(json.dumps(net.made()))"
    expected, found = run_both(tmp_path, port, code)
    assert found == expected
    assert expected[2] == [True, True, False]


def test_settings_by_computed_names_are_told() -> None:
    code = "from torch import nn\nnorm = nn.BatchNorm2d(3)\n"
    code += (
        "for name, value in (('eps', 0.5), ('momentum', 0.3)):\n    setattr(norm, name, value)\n"
    )
    assert [one.code for one in port_of(code)[1]] == ["layer-setting"]

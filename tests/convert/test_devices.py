"""`device.type` is asked of what holds a device, which a tensor of MindSpore's names by a text."""

from __future__ import annotations

from pathlib import Path

from tests.convert.support import converted, port_of, run_both

_CODE = """
import torch
from torch import nn

x = torch.ones(2)
device = x.device
found = [device.type == "cpu", device.index]


def narrow(t):
    d = t.device
    return 1 if d.type in ("cpu", "mps") else 2


def asked(device):
    return device.type, f"on {device.type}"


def annotated(device: torch.device):
    return [device.type]


class Loss:
    def __init__(self, model, other):
        device = next(model.parameters()).device
        self.device = device
        self.other = other
        self.own = torch.device("cpu")

    def __call__(self):
        return self.device.type == "mps", self.other.type != "cuda", self.own.type


class Net(nn.Module):
    @property
    def device(self):
        return torch.device("cpu")

    def forward(self, x):
        n, device = x.shape[0], x.device
        return x * n if device.type == "cpu" else x


def run():
    made = torch.device("cpu")
    model = nn.Linear(1, 1)
    found.append([narrow(x), asked(made), asked(x.device), annotated(x.device)])
    found.append([Loss(model, x.device)(), Loss(model, made)(), Net().device.type])
    return found + Net()(x).tolist()
"""


def test_a_device_that_is_held_has_a_type(tmp_path: Path) -> None:
    port, _ = converted(tmp_path, {"net.py": _CODE})
    expected, found = run_both(tmp_path, port, "import json, net\nprint(json.dumps(net.run()))\n")
    assert found == expected


def test_what_has_more_than_a_device_is_left() -> None:
    port, _ = port_of("""
    import torch


    def build(cfg, event, x: torch.Tensor):
        own = torch.device("cpu")
        return cfg.type, cfg.name, event.type == "key", own.type, x.type()
    """)
    assert 'return cfg.type, cfg.name, event.type == "key", own.type, ' in port

"""Methods of torch's modules that a class has anew and calls by `super()`."""

from __future__ import annotations

from pathlib import Path

from tests.convert.support import converted, run_both

NETS = """
import torch
from torch import nn

seen = []


class B(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(2, 2)

    def to(self, device):
        seen.append("base")
        return super().to(device)

    def parameters(self, recurse=True):
        seen.append("base parameters")
        return super().parameters()


class G(B):
    def to(self, device):
        seen.append("own")
        return super(G, self).to(device)

    def parameters(self, recurse=True):
        for p in super().parameters():
            if p.ndim > 1:
                yield p


class H(G):
    def cuda(self, device=None):
        return super().to("cpu")

    def float(self):
        out = super().float()
        return out


def made():
    net = H()
    kinds = [type(one).__name__ for one in (net.to("cpu"), net.cuda(), net.float())]
    return kinds, len(list(net.parameters())), seen
"""


def test_methods_of_the_base_are_called_on_the_network(tmp_path: Path) -> None:
    port, report = converted(tmp_path, {"nets.py": NETS})
    assert [one for file in report.files for one in file.findings] == []
    code = "import json, nets; print(json.dumps(nets.made()))"
    expected, found = run_both(tmp_path, port, code)
    assert found == expected

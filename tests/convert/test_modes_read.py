"""The mode of a layer is torch's where a program reads it."""

from __future__ import annotations

from pathlib import Path

from tests.convert.support import converted, port_of, run_both

_NET = """
import copy

from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x):
        return self.layer(x)


layer = nn.LayerNorm(2)
layer.requires_grad_(False)
found = [layer.training, nn.Linear(2, 2).training]
layer.eval()
found.append(layer.training)
stack = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
found += [stack.training, stack[0].training, *[part.training for part in stack]]
net = Net()
found += [net.training, net.layer.training]
copied = nn.Linear(2, 2)
found.append(copy.deepcopy(copied).training)
one = nn.Linear(2, 2)
another = copy.deepcopy(one)
found.append(another.training)
"""


def test_layers_without_modes_start_in_training_where_that_is_read(tmp_path: Path) -> None:
    port, report = converted(tmp_path, {"net.py": _NET})
    assert not report.findings
    code = "import json\nfrom net import found\nprint(json.dumps(found))"
    expected, found = run_both(tmp_path, port, code)
    assert found == expected
    assert expected.count(False) == 1


def test_other_layers_stay_as_they_are() -> None:
    text, _ = port_of("""
        from torch import nn

        layer, other = nn.Linear(2, 2), nn.Linear(2, 2)
        last = nn.Linear(2, 2)
        print(last.training)
        """)
    assert text.count("set_train") == 1

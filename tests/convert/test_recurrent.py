"""`flatten_parameters` of recurrent layers, which MindSpore's lack and do not need."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.convert.support import converted, run_both

_CODE = """
import torch
from torch import nn


class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def flatten_parameters(self):
        self.calls = self.calls + 1

    def forward(self, x):
        return x


class Net(nn.Module):
    def __init__(self, kind):
        super().__init__()
        if kind == "LSTM":
            self.rnn = getattr(nn, kind)(2, 3, 1)
        else:
            self.rnn = nn.RNN(2, 3, 1)
        self.gru = nn.GRU(2, 3)
        self.layers = nn.ModuleList([nn.GRU(2, 3), nn.LSTM(2, 3)])

    def forward(self, x):
        self.gru.flatten_parameters()
        for layer in self.layers:
            layer.flatten_parameters()
        return (self.gru(x)[0] + self.rnn(x)[0]).shape


def flatten(kind):
    net, own = Net(kind), Own()
    net.rnn.flatten_parameters()
    [one.flatten_parameters() for one in (net.gru, own, own)]
    return list(net(torch.zeros(2, 1, 2))), own.calls
"""
_RUN = "import json, net\nprint(json.dumps(net.flatten('{}')))\n"


@pytest.mark.parametrize("kind", ["LSTM", "RNN"])
def test_parameters_are_flattened_by_no_layer_of_mindspores(kind: str, tmp_path: Path) -> None:
    """A method that a class of the project has is called as ever."""
    port, _ = converted(tmp_path, {"net.py": _CODE})
    expected, found = run_both(tmp_path, port, _RUN.format(kind))
    assert found == expected == [[2, 1, 3], 2]

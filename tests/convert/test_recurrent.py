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


_UNBATCHED = """
import torch
from torch import nn


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(10, 3)
        self.rnn = nn.GRU(3, 4, batch_first=True)

    def forward(self, ids):
        return self.rnn(self.embedding(ids))


class Steps(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(3, 4, 2, bidirectional=True)

    def forward(self, x, states=None):
        found, (h, c) = self.rnn(x.squeeze(0), states)
        return found, h, c


def run(ids):
    words, steps = Words(), Steps()
    x = torch.zeros(1, 5, 3)
    states = torch.zeros(4, 4), torch.zeros(4, 4)
    found = [*words(torch.tensor([1, 2, 3])), *words(ids), *steps(x), *steps(x, states)]
    return [list(one.shape) for one in found]
"""
_BATCHED = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(3, 4, batch_first=True)
        self.gru = nn.GRU(4, 4)

    def forward(self, x, image):
        x = torch.cat([x, self.rnn(image.squeeze(2).permute(0, 2, 1))[0]])
        return self.gru(x.transpose(0, 1))


net = Net()
net(torch.zeros(2, 5, 3), torch.zeros(2, 3, 1, 5))
"""


def test_a_sequence_without_a_batch(tmp_path: Path) -> None:
    """Where the file shows one, the layer is the runtime's, which takes both."""
    port, _ = converted(tmp_path, {"net.py": _UNBATCHED})
    code = "import json, net\nprint(json.dumps(net.run(TENSOR([[1, 2]]))))\n"
    expected, found = run_both(tmp_path, port, code)
    assert found == expected


def test_layers_of_batches_stay_mindspores(tmp_path: Path) -> None:
    port, _ = converted(tmp_path, {"net.py": _BATCHED})
    text = (port / "net.py").read_text()
    assert "nn.LSTM(" in text
    assert "nn.GRU(" in text


HANDED_ON = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(3, 4)

    def run(self, x):
        return self.rnn(x)

    def forward(self, x):
        return self.run(x)


def through(layer, x):
    return layer(x)


def told():
    first = Net()(torch.ones(5, 3))
    second, (h, c) = through(nn.LSTM(3, 4), torch.ones(5, 3))
    return [list(one.shape) for one in (*first, second, h, c)]
"""


def test_a_sequence_without_a_batch_that_functions_hand_on(tmp_path: Path) -> None:
    port, report = converted(tmp_path, {"net.py": HANDED_ON})
    assert not report.findings
    code = "import json, net; print(json.dumps(net.told()))"
    expected, found = run_both(tmp_path, port, code)
    assert found == expected

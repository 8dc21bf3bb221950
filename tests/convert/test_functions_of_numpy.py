"""Functions of numpy's that are given a tensor: their result is a tensor in torch."""

from __future__ import annotations

from pathlib import Path

from tests.convert.support import converted, run_both

_CODE = """
import numpy as np
import torch
from torch import nn

x = torch.tensor([0.25, 4.0, 1.0])
n = torch.tensor([2, 1])


def told(value):
    kinds = torch.is_tensor(value), isinstance(value, torch.Tensor), isinstance(value, np.ndarray)
    return [*kinds, str(value.dtype).rpartition(".")[2].lower(), value.tolist()]


def run():
    layer = nn.Linear(1, 1)
    nn.init.ones_(layer.weight)
    root = np.sqrt(x)
    found = [root, np.abs(-x), np.add(x, 1), np.multiply(n, n), np.clip(x, 0, 1), np.argsort(x)]
    found += [np.sqrt(n), np.maximum(x, 1), np.greater(x, 1), np.floor(layer.weight.detach())]
    found += [np.concatenate([x, x]), np.asarray(x), np.sqrt(torch.tensor(4.0)), root * x]
    named = [function(x) for function in (np.sqrt, np.square)]
    return [*map(told, found), *map(told, named), root.sum().item(), root.numpy().tolist()]
"""


def test_the_result_is_a_tensor_as_in_torch(tmp_path: Path) -> None:
    """By its name, by a name of one's own, and as what its methods are asked of."""
    port, _ = converted(tmp_path, {"net.py": _CODE})
    expected, found = run_both(tmp_path, port, "import json, net\nprint(json.dumps(net.run()))")
    assert found == expected

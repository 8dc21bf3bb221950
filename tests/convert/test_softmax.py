"""A port's softmax has right gradients whatever shape a process meets first.

MindSpore 2.10's own has wrong ones on a CPU after a first gradient of an axis of one element:
attention over one position, a map of one pixel.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.convert.support import converted, run_both, run_port

pytest.importorskip("torch")
pytest.importorskip("mindspore")

WAYS = {
    "function": "F.softmax(x, dim=-1)",
    "torch": "torch.softmax(x, -1)",
    "method": "x.softmax(-1)",
    "layer": "self.layer(x)",
    "negated": "F.softmin(-x, -1)",
    "passed": "self.passed(x, dim=-1)",
}
NET = """
import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Softmax(dim=-1)
        self.passed = F.softmax

    def forward(self, x: torch.Tensor):
        return {way}
"""
CHILD = """
import json
import mindspore as ms
import numpy as np
from net import Net
net = Net()
weights = np.cos(np.arange(12, dtype="f4")).reshape(3, 4)
found = []
for width in (1, 4):
    weight = ms.Tensor(weights[:, :width].copy())
    gradient = ms.grad(lambda x: (net(x) * weight).sum())
    found.append(gradient(ms.Tensor(np.sin(weights[:, :width]))).asnumpy().tolist())
print(json.dumps(found))
"""


@pytest.mark.parametrize("way", WAYS)
def test_gradients_after_an_axis_of_one_element(way: str, tmp_path: Path) -> None:
    folder, report = converted(tmp_path, {"net.py": NET.format(way=WAYS[way])})
    assert report.findings == ()
    one, four = json.loads(run_port(folder, CHILD))
    weights = np.cos(np.arange(12, dtype="f4")).reshape(3, 4).astype("f8")
    powers = np.exp(np.sin(weights))
    shares = powers / powers.sum(-1, keepdims=True)
    expected = shares * (weights - (shares * weights).sum(-1, keepdims=True))
    np.testing.assert_array_equal(one, np.zeros((3, 1)))
    np.testing.assert_allclose(four, expected, rtol=1e-5, atol=1e-7)


AXES = """
import torch
import torch.nn as nn
import torch.nn.functional as F

layers = [nn.Softmax(), nn.LogSoftmax(), nn.LogSoftmax(dim=None), nn.Softmin(), F.softmax]


def found(x):
    made = [layer(x) for layer in layers]
    return [y.tolist() for y in (*made, F.softmin(x), F.log_softmax(x))]
"""


@pytest.mark.parametrize("shape", [(3,), (3, 4), (2, 3, 4), (2, 3, 2, 2)])
def test_an_axis_that_is_not_given_is_the_one_that_torch_takes(
    shape: tuple[int, ...], tmp_path: Path
) -> None:
    port, _ = converted(tmp_path, {"net.py": AXES})
    values = np.sin(np.arange(np.prod(shape))).reshape(shape).tolist()
    code = f"import json, net; print(json.dumps(net.found(TENSOR({values}))))"
    for expected, found in zip(*run_both(tmp_path, port, code), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-5)

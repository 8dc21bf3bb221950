"""NaN that the code makes is NaN behind operators of which MindSpore's own lose it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert.support import converted, port_of, run_both, run_port, with_cases

_START = """
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


def values():
    return torch.tensor([[1.0, math.nan, 3.0, -4.0], [3.0, 2.0, 1.0, 0.0]])


def shown(*found):
    return [str(one.tolist()) for one in found]


"""
_BODIES = (
    ("x = values()", "return shown(x.max(), torch.min(x), x.amax(1), x.amin((0, 1), True))"),
    ("x = values()", "return shown(x.argmax(), x.argmin(1), torch.argmax(x, 1, True))"),
    ("x = values()", "return shown(x.clamp(0, 2), x.clip(max=2), torch.clamp_min(x, 0), x.relu())"),
    ("x = values()", "return shown(x.clamp_max(1), F.relu6(x), F.hardtanh(x), F.hardshrink(x))"),
    (
        "x = values()",
        "return shown(F.softshrink(x), F.threshold(x, 0.5, 0), F.softplus(x).isnan())",
    ),
    ("x = values()", "return shown(torch.maximum(x, 1 - x), x.max(x * 0 + 0.5), x.minimum(3 - x))"),
    ("x = values()", "return shown(x.max(1)[0], x.max(1)[1], torch.min(x, dim=0).indices)"),
    ("x = values()", "return shown(x.softmax(1).isnan(), F.softmax(x, -1)[1] > 0.3)"),
    ("x = torch.ones(3).masked_fill_(torch.arange(3) > 1, float('nan'))", "return shown(x.max())"),
    (
        "x = values().requires_grad_()",
        "x.clamp(-1, 2).nan_to_num().sum().backward()",
        "return shown(x.grad)",
    ),
)
_RUN = "import json, net; print(json.dumps([case() for case in net.CASES]))"
_COMPILED = """
import json, mindspore as ms, torch_semantics as compat
from mindspore import ops
x = ms.Tensor([[1.0, float("nan"), 3.0, -4.0], [3.0, 2.0, 1.0, 0.0]])

@ms.jit
def run(x):
    return (compat.with_nans(ops.clamp, x, 0, 2), compat.extreme_with_nans(compat.amax, x, 1),
            compat.extreme_with_nans(compat.max, x), compat.position_with_nans(ops.argmax, x, 1),
            compat.position_with_nans(ops.argmin, x), compat.with_nans(ops.maximum, x, 1 - x))

print(json.dumps([str(one.asnumpy().tolist()) for one in run(x)]))
"""


def test_nan_is_torchs(tmp_path: Path) -> None:
    port, _ = converted(tmp_path, {"net.py": with_cases(_START, _BODIES)})
    expected, found = run_both(tmp_path, port, _RUN)
    assert found == expected


def test_and_in_a_static_graph(tmp_path: Path) -> None:
    port, _ = converted(tmp_path, {"net.py": with_cases(_START, _BODIES)})
    (port / "compiled.py").write_text(_COMPILED, encoding="utf-8")
    assert json.loads(run_port(port, "import compiled")) == [
        "[[1.0, nan, 2.0, 0.0], [2.0, 2.0, 1.0, 0.0]]",
        "[nan, 3.0]",
        "nan",
        "[1, 0]",
        "1",
        "[[1.0, nan, 3.0, 5.0], [3.0, 2.0, 1.0, 1.0]]",
    ]


def test_nan_of_another_file(tmp_path: Path) -> None:
    files = {
        "data.py": "import torch\ndef gap(x):\n    return torch.where(x > 0, x, float('nan'))\n",
        "net.py": "import torch\nfrom data import gap\ndef told():\n"
        "    return str(torch.clamp(gap(torch.tensor([1.0, -1.0])), 0, 1).tolist())\n",
    }
    port, _ = converted(tmp_path, files)
    expected, found = run_both(tmp_path, port, "import json, net; print(json.dumps(net.told()))")
    assert found == expected


@pytest.mark.parametrize(
    "code",
    [
        "return F.max_pool1d(x[None], 2)",
        "return nn.ReLU()(x)",
        "return x.median(1)",
        "return x.cummax(1)",
        "return torch.relu_(x)",
        "return x.norm(math.inf)",
    ],
)
def test_others_are_reported(code: str) -> None:
    _, findings = port_of(_START + f"def f():\n    x = values()\n    {code}\n")
    assert "nan-lost" in [one.code for one in findings]


@pytest.mark.parametrize("code", ["x.nan_to_num().max()", "x.isnan().any()", "x.nanmean().relu()"])
def test_what_holds_none_stays_native(code: str) -> None:
    text, findings = port_of(_START + f"def f():\n    x = values()\n    return {code}\n")
    assert not findings
    assert "_nans" not in text

"""Tensors are of the dtype and the sizes that they are given, in whichever way.

Types of Python's stand for dtypes, layers take one, and old constructors take a shape.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.convert.support import converted, port_of, run_both

#: Of fractions `x` and whole numbers `n`; what is drawn counts by its dtype alone.
TENSORS = """
torch.ones(2, dtype=bool)
torch.zeros((2, 3), dtype=int)
torch.full((2,), 3, dtype=float)
torch.eye(2, dtype=bool)
torch.arange(3, dtype=float)
x + 0 * x.to("cpu", copy=True).fill_(9)
x + 0 * x.to(torch.float32, False, True).fill_(9)
torch.tensor([[1, 2], [3, 4]], dtype=float)
torch.zeros(2, dtype=complex).real
torch.zeros_like(x, dtype=bool)
torch.full_like(x, 2.5, dtype=int)
x.new_ones((2, 2), dtype=bool)
x.to(int)
x.to("cpu", float)
x.to(dtype=bool)
x.sum(dtype=float)
n.cumsum(0, dtype=float)
torch.sum(n > 1, dtype=int)
F.softmax(x, dim=1, dtype=float)
torch.tril(torch.ones((3, 3), dtype=bool))
torch.ones((3, 3), dtype=bool).fill_diagonal_(0)
torch.tensor([torch.finfo(float).max, torch.iinfo(int).max])
torch.rand(3, dtype=float) * 0
torch.rand((2, 3), dtype=torch.cfloat, device=x.device).real * 0
torch.randn(size=(2,), dtype=torch.complex128).imag * 0
torch.rand_like(x, dtype=torch.complex64).abs() * 0
torch.randn(9000, dtype=torch.cfloat).abs().square().mean().round()
torch.Tensor(x.size()).fill_(2)
torch.FloatTensor(x.shape).fill_(2)
torch.LongTensor(x.size()[:1] + (4,)).zero_()
torch.DoubleTensor(torch.Size([2, 2])).fill_(1)
torch.Tensor((2, 3))
torch.Tensor([x.size(0), 3])
x.new(x.size()).zero_()
n.new(2, x.shape[1]).fill_(3)
n.new([1, 2])
x.data.new(*x.shape[:1], 4).fill_(x[0, 0].item())
torch.tensor([isinstance(x.shape, torch.Size), isinstance(3, torch.Size)])
torch.as_tensor(np.ones(3, dtype=int), dtype=float)
nn.Linear(3, 2, dtype=torch.float64).weight * 0
nn.Linear(3, 2, bias=False, dtype=float)(x.double()) * 0
nn.Bilinear(3, 3, 2, dtype=torch.float64)(x.double(), x.double()) * 0
nn.Conv1d(2, 4, 1, dtype=torch.float16).bias * 0
nn.ConvTranspose2d(2, 4, 1, dtype=torch.float64).weight * 0
nn.Embedding(5, 3, dtype=torch.float16)(n) * 0
nn.EmbeddingBag(5, 3, dtype=torch.float64)(n) * 0
nn.LayerNorm(3, dtype=torch.float64)(x.double())
nn.RMSNorm(3, dtype=torch.float64)(x.double())
nn.GroupNorm(1, 2, dtype=torch.float64).weight
nn.BatchNorm1d(3, dtype=torch.float64).running_var
nn.InstanceNorm1d(3, affine=True, dtype=torch.float64).bias
nn.PReLU(dtype=torch.float64).weight
nn.LSTM(3, 2, dtype=torch.float64)(x.double())[0] * 0
nn.GRUCell(3, 2, dtype=torch.float64)(x.double()) * 0
nn.RNN(3, 2, dtype=torch.float64).weight_hh_l0 * 0
nn.MultiheadAttention(3, 1, dtype=torch.float64).out_proj.weight * 0
nn.TransformerEncoderLayer(3, 1, 4, dtype=torch.float64)(x.double()) * 0
nn.Transformer(3, 1, 1, 1, 4, dtype=torch.float64).decoder.norm.weight
nn.Transformer.generate_square_subsequent_mask(2, dtype=torch.float64)
nn.Linear(3, 2, **{"device": None, "dtype": torch.float64}).bias * 0
(x < 0).type(torch.Tensor)
(x < 0).type(dtype=torch.Tensor)
(x < 0).type("torch.Tensor")
x.double().type(KIND)
x.type(torch.ShortTensor)
x.type(dtype="torch.LongTensor")
F.relu6(x.double())
F.relu6(n + 4)
nn.ReLU6()(n - 3)
F.prelu(x.double()[:, :, None], torch.tensor([0.2, 0.5, 1.0]).double())
nn.PReLU(3).double()(x.double())
F.hardshrink(x.double(), 1.25)
nn.Hardshrink()(x.double())
F.softshrink(x.double())
nn.Softshrink(1.5)(x.double())
nn.BCELoss()(torch.sigmoid(x.double()), (x > 0).double())
F.soft_margin_loss(x, n - 2)
F.soft_margin_loss(x, x.sign().double())
nn.SoftMarginLoss(reduction="none")(x.double(), x.sign())
F.l1_loss(x, x.double() / 3)
F.log_softmax(x.double(), 1)
F.margin_ranking_loss(x, -x, n.sign() * 2 - 1)
nn.MarginRankingLoss(0.5)(x, -x, n - 2)
""".split("\n")[1:-1]

FUNCTIONS = """import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

KIND = torch.cuda.FloatTensor if torch.cuda.is_available() else torch.Tensor


""" + "\n\n".join(
    f"def f{number}(x: Tensor, n: Tensor):\n    return {code}\n"
    for number, code in enumerate(TENSORS)
)
CODE = """
import json
import numpy as np
import net
x, n = np.array([[-1.5, 2.0, 0.0], [3.5, -2.25, 1.0]], "float32"), np.array([[1, 0, 3], [2, 4, 1]])
found = [getattr(net, f"f{number}")(TENSOR(x), TENSOR(n)) for number in range(COUNT)]
print(json.dumps([[str(part.dtype).lower().rpartition(".")[2], part.tolist()] for part in found]))
""".replace("COUNT", str(len(TENSORS)))


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[object], list[object]]:
    """The dtype and the values of each tensor in torch and in the port."""
    folder = tmp_path_factory.mktemp("dtypes")
    port, report = converted(folder, {"net.py": FUNCTIONS})
    assert not report.findings
    return run_both(folder, port, CODE)


@pytest.mark.parametrize("number", range(len(TENSORS)), ids=TENSORS)
def test_a_tensor_is_of_the_dtype_that_is_given(
    number: int, answers: tuple[list[tuple[str, object]], list[tuple[str, object]]]
) -> None:
    (kind, values), (expected_kind, expected) = answers[1][number], answers[0][number]
    assert kind == expected_kind
    np.testing.assert_allclose(
        np.asarray(values, float), np.asarray(expected, float), rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize(
    "line",
    [
        "np.zeros(3, dtype=int)",
        "array.astype(float)",
        "array.sum(dtype=float)",
        "field(default=0, dtype=int)",
        "isinstance(x, float)",
        "float(x.sum())",
        "torch.zeros(3, dtype=own(int))",
    ],
)
def test_other_types_of_python_stay(line: str) -> None:
    port, _ = port_of(f"""
    import numpy as np
    import torch
    from elsewhere import field, own


    def f(x: torch.Tensor, array):
        return {line}
    """)
    assert "ms.int64" not in port
    assert "ms.float64" not in port


def test_a_name_of_the_projects_own_is_no_type_of_pythons() -> None:
    port, _ = port_of("""
    import torch


    def f(float):
        return torch.zeros(3, dtype=float)
    """)
    assert "dtype=float)" in port


JOINED = """
import torch
from torch import nn


class Padded(nn.Module):
    def forward(self, labels, pad):
        if pad:
            more = -torch.ones((labels.shape[0], 1), device=labels.device)
            labels = torch.cat([labels, more], dim=1)
        return labels


def joined(x):
    wide = x.double()
    return torch.cat((x, wide)), torch.stack([wide, x]), torch.hstack([torch.zeros(2, 1), x])


def found_of():
    whole = torch.tensor([[1, 0], [-1, 1]])
    parts = [Padded()(whole, True), *joined(whole.float()), *joined(whole)]
    return [[part.tolist(), part.dtype == torch.float64] for part in parts]
"""


def test_what_a_caller_passes_stands_beside_another_dtype(tmp_path: Path) -> None:
    port, _ = converted(tmp_path, {"net.py": JOINED})
    expected, found = run_both(
        tmp_path, port, "import json, net\nprint(json.dumps(net.found_of()))"
    )
    assert found == expected


def test_what_was_computed_stands_beside_fractions_as_it_is() -> None:
    port, _ = port_of("""
    import torch


    def f(x, y):
        x = torch.relu(x)
        return torch.cat([x, torch.zeros(2, 2)], 1) + torch.cat([x, y])
    """)
    assert "of_one_dtype" not in port


TEXTS = """
import numpy as np
import torch

SIZES = {"torch.float64": 8, "torch.bool": 1}


def size_of(x):
    kind = x.dtype
    return SIZES[str(kind)]


def found_of():
    x = torch.ones(2, dtype=torch.float64)
    array = getattr(np, str(x.dtype).split(".")[-1])([1, 2])
    return [size_of(x), size_of(x > 0), repr(torch.bfloat16), str(array.dtype), str(x.dtype)]
"""


def test_the_text_of_a_dtype_is_torchs(tmp_path: Path) -> None:
    port, _ = converted(tmp_path, {"net.py": TEXTS})
    expected, found = run_both(
        tmp_path, port, "import json, net\nprint(json.dumps(net.found_of()))"
    )
    assert found == expected


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("'cpu', copy=True", []),
        ("torch.float32, False, True", []),
        ("'cpu', copy=False", ["in-place-view"]),
    ],
)
def test_a_copy_shares_no_memory(given: str, told: list[str]) -> None:
    _, findings = port_of(f"""
    import torch


    def f(x: torch.Tensor):
        y = x.view(-1).to({given})
        y += 1
        return x, y
    """)
    assert [finding.code for finding in findings] == told

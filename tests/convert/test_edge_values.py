"""Values, dtypes and shapes at the edges of what single functions take: one, none, negative."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert.support import converted, run_both, with_cases

_HEAD = """
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

p, t = torch.tensor([[0.3]]), torch.tensor([[1.0]])
ends, ones = torch.tensor([0.0, 0.5, 1.0]), torch.tensor([1.0, 1.0, 0.0])
matrix, whole = torch.tensor([[1.0, 2.0], [3.0, 5.0]]), torch.tensor([[0, 0, 5, 6], [2, -2, 4, 1]])
square = torch.tensor([[1.0, 2.0, 4.0], [3.0, 0.0, 5.0], [2.0, 2.0, 9.0]])
byte = torch.tensor([1], dtype=torch.uint8)
numbers = torch.tensor([[1 + 2j, -1j], [3 + 1j, 2 + 2j]], dtype=torch.complex64)
left = torch.tensor([1e10, 3.0]).exp().sum()


def scaled(x):
    scale = torch.tensor(2.5, dtype=torch.float64)
    low = x.half()
    return low + x.float().mean(), low - x.mean(), x + scale, scale - x, scale + scale, low * scale


def parts(z):
    other = z
    z.imag = torch.ones(2, 2)
    z.real = 3.0
    return other.imag, other.real


def kept(x):
    return x[x > 100]


def ctc(**settings):
    scores = torch.arange(60.0).reshape(5, 3, 4).sin().requires_grad_()
    labels = torch.tensor([[3, 1, 2], [1, 1, 2], [1, 2, 3]])
    steps, sizes = torch.tensor([5, 2, 0]), torch.tensor([2, 3, 1])
    logs = scores.log_softmax(2)
    loss = F.ctc_loss(logs, labels, steps, sizes, **settings)
    other = nn.CTCLoss(**settings)(logs, labels, steps, sizes)
    loss.sum().backward()
    return loss, other, (scores.grad[:, [0, 2]] * 1e3).round().abs()


def ctc_of_leaves(steps, **settings):
    logs = torch.arange(60.0).reshape(5, 3, 4).sin()
    logs.requires_grad_()
    labels, sizes = torch.tensor([[3, 1, 2], [1, 1, 2], [1, 2, 3]]), torch.tensor([2, 3, 0])
    F.ctc_loss(logs, labels, torch.tensor(steps), sizes, **settings).backward()
    return (logs.grad * 1e3).round() + 0.0
"""
_EXPRESSIONS = """
nn.BCELoss()(p, t), F.binary_cross_entropy(p, t), F.binary_cross_entropy(p, t, reduction="sum")
F.binary_cross_entropy(ends, ones, reduction="none"), nn.BCELoss(reduction="none")(ends, ones)
torch.zeros(3, 2).index_fill(0, torch.tensor([-1]), 2.0)
torch.zeros(3).index_fill_(-1, torch.tensor([-2, 0]), 2.0)
ends + torch.tensor(0.5, dtype=torch.float64), whole.int() - torch.tensor(1), scaled(ends)
ends - torch.from_numpy(np.asarray(0.5)), whole.int() + torch.tensor(0.5), byte + torch.tensor(1)
torch.zeros(0, 5).std(0), torch.zeros(0, 5).var(1), torch.ones(1).var(), torch.ones(2, 0).std()
kept(torch.tensor([1.0, 2.0])).float().sum(), kept(ends).double().sum(), kept(ends).bool().sum()
kept(ends).bool().any(), kept(ends).all(), torch.any(kept(ends) > 0), kept(ends).prod()
torch.linalg.matrix_norm(matrix, -2), torch.linalg.norm(matrix, -2), torch.linalg.cond(matrix, -2)
[torch.linalg.matrix_norm(matrix, p) for p in (2, 1, -1, "fro", "nuc", np.inf, -np.inf)]
whole.median(), torch.median(whole), whole.int().median(), whole.float().median()
torch.nextafter(matrix, matrix.t()) - matrix, torch.nextafter(ends[2], matrix[0, 1]) - 1
torch.corrcoef(torch.tensor([[5, 1, 6], [5, 6, 4]], dtype=torch.uint8))
torch.take_along_dim(whole, torch.tensor(3)), torch.take_along_dim(whole, torch.tensor([[0, 7]]))
[str(torch.result_type(byte, one)).split(".")[-1].lower() for one in (whole[0, 0], ends[0], whole)]
torch.linalg.vander(torch.tensor([2, 3], dtype=torch.int16)), torch.linalg.vander(ends)
nn.InstanceNorm1d(3)(square), nn.InstanceNorm1d(3, affine=True)(square[:, :2])
nn.InstanceNorm2d(3)(square[:, None]), nn.InstanceNorm3d(3)(square[:, None, None])
nn.InstanceNorm1d(3)(square[None]), nn.InstanceNorm2d(3)(square[None, :, None])
nn.MultiLabelMarginLoss()(torch.tensor([0.1, 0.2, 0.4, 0.8]), torch.tensor([3, 3, 0, 1]))
parts(numbers.clone()), parts(numbers.to(torch.complex128))
torch.fmod(whole * 10**10 + 1, 7), (-whole).fmod(3), whole.fmod(2.5), torch.fmod(whole.int(), 3)
torch.special.xlog1py(torch.zeros(2), torch.tensor([float("inf"), float("nan")]))
torch.norm(matrix, p="nuc"), torch.finfo(torch.float32).resolution, torch.finfo().resolution
torch.finfo(torch.bfloat16).resolution, torch.result_type(ends, 1j) == torch.complex64
whole[0].masked_scatter(whole > 1, torch.arange(8)), torch.diag(numbers), torch.diag(numbers[0])
nn.AdaptiveMaxPool3d((2, None, None))(torch.arange(48.0).reshape(1, 1, 4, 3, 4))
nn.BatchNorm1d(3).double().eval()(square.double()), nn.BatchNorm1d(3).double()(square.double())
ctc(zero_infinity=True), ctc(reduction="none", zero_infinity=True)
ctc(reduction="sum"), ctc(reduction="none"), ctc()
ctc_of_leaves([5, 5, 3]), ctc_of_leaves([5, 2, 3], zero_infinity=True, reduction="sum")
numbers.var(), numbers.std(0), torch.std(numbers, 1), torch.var(numbers, correction=0)
""".strip().splitlines()
_CALL = """
import json, math
import net
def plain(v):
    if isinstance(v, (tuple, list)):
        return [plain(one) for one in v]
    if isinstance(v, float):
        return "nan" if v != v else f"{v:.4g}"
    if isinstance(v, complex):
        return [plain(v.real), plain(v.imag)]
    if hasattr(v, "tolist"):
        return [plain(v.tolist()), str(v.dtype).split(".")[-1].lower()]
    return v
found = []
for case in net.CASES:
    try:
        found.append(plain(case()))
    except Exception as error:
        found.append(f"{type(error).__name__}: {error}")
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[object], list[object]]:
    """What both frameworks say of each expression."""
    folder = tmp_path_factory.mktemp("edges")
    code = with_cases(_HEAD, [[f"return {one}"] for one in _EXPRESSIONS])
    port, _ = converted(folder, {"net.py": code})
    return run_both(folder, port, _CALL)


@pytest.mark.parametrize("number", range(len(_EXPRESSIONS)), ids=_EXPRESSIONS)
def test_the_port_says_what_torch_does(
    answers: tuple[list[object], list[object]], number: int
) -> None:
    expected, found = (side[number] for side in answers)
    assert found == expected


def test_the_slope_of_the_binary_cross_entropy_is_torchs(tmp_path: Path) -> None:
    code = """
        import torch
        import torch.nn.functional as F

        def slope(p, t):
            p.requires_grad_()
            F.binary_cross_entropy(p, t).backward()
            return [f"{one:.4g}" for one in p.grad.tolist()]
    """
    port, _ = converted(tmp_path, {"net.py": code})
    run = "import json, net\nprint(json.dumps(net.slope(TENSOR([0.3, 0.9]), TENSOR([1.0, 0.0]))))"
    expected, found = run_both(tmp_path, port, run)
    assert found == expected

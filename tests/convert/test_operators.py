"""Operators, sums of nothing, whole numbers and numpy's give in a port what they give in torch.

MindSpore has other operators or none, leaves such sums undefined, raises of whole numbers, and
leaves `np.sqrt(2) * x` to numpy.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.convert.support import converted, port_of, run_both

#: The dtype and the values of each expression.
Answers = list[tuple[str, list[float]]]

#: Of whole numbers `n` and `k`, fractions `x`, a mask `b`, and `held`, whose kind nothing shows.
EXPRESSIONS = """
~n
~n + 1
-(~n)
~(n & k)
~b
~(n > 1)
~((n > 1) & b)
~held
~held[0]
x[~b]
n >> 1
n << k
1 << k
(n >> 1) + (n << 1) * 2
n >> k >> 1
1 & n
1 | n & k
3 ^ (n ^ k)
2 - (1 & n)
True & b
n & 1
n // 2 % 3
-n // k
n % -3
x // 0.5
x[n > 100].sum()
x[n > 1].sum()
n[n > 100].sum() + 1
torch.sum(x[n > 100])
torch.sum(x[n > 1] * 2) + torch.sum(input=x[n > 100])
x.masked_select(n > 100).sum()
x[n > 100].sum(0, keepdim=True)
x[n[:, 0] > 100].sum(dim=1)
x[n > 1].sum(dtype=torch.float64)
x * torch.log(torch.tensor(10000))
torch.exp(torch.arange(4)) + torch.arange(4).sin()
torch.sigmoid(-torch.arange(6).view(2, 3)[0])
torch.exp(torch.arange(4).float()).log2()
torch.cos((n > 1).long() * 2)
torch.cat([x, torch.tensor([[1, 2, 3]])])
torch.stack([b[0], n.argmax(1).repeat(2)[:3], torch.arange(3) / 2])
torch.cat([x, x > 0], 1)
torch.cat([torch.zeros(1, 3, dtype=torch.long), n.cumsum(0)])
x[..., x > 0] + x[..., ~(n > 1)].sum()
torch.stack([x, x * 2])[0, :, [0, 2]]
torch.stack([x, x * 2])[-1, ..., n[0].argsort()]
torch.stack([x, x * 2])[k.argmax() % 2, 1:, [0, 1, 2, 2]]
x[None][0, :, n[1] > 0]
x[None, None][0, 0, :, [0, 1]] + x[None, None][:, 0, :, [0, 1]]
x[0, None, [1, 2]]
x[None, 0, :, None][:, [0, 0]]
held[None][0, :, [2, 1]]
held[None, None][:, [0], :, 1][0]
[held[None][0, :, i] for i in range(3)][2]
torch.stack([x, x * 2])[..., n > 1] + x[..., 0, None]
np.sqrt(2) * x + HALF - np.log(3) / x
-np.log(10000) / 3 * torch.arange(4)
(np.float32(0.5) * n).exp() + np.prod(x.shape)
np.float64(1) > x
np.max([2, 1]) == n
np.float32(2) != x
np.array([[1.0, 2.0, 3.0]], dtype=np.float32) / torch.abs(x + 10)
Scaled(2)(x)
torch.full((2,), np.log(2)) + torch.tensor(np.float32(0.5))
torch.tensor([np.log(2), 1.0])
torch.tensor([[np.float32(2)], [1.0]])
x.clamp(0, x.max() / 2) + torch.clip(x, max=x[0, 1], min=-1)
n.clamp(k[0, 0] - 1, 4) + n.clip(-2, torch.tensor(3)).clamp_(-1, n[0, 1].long())
torch.cat((torch.empty(0), x, torch.tensor([]).to(x.device)), dim=1)
torch.cat([torch.tensor([]), n.argmax(1)]) + torch.cat([torch.zeros((0,)), torch.empty(0)]).sum()
torch.cat([[torch.empty(0)][0], x], 1) + torch.cat([x, *[torch.Tensor()]], 1)
(lambda held: torch.cat(held, 1))([torch.tensor([]), x])
torch.arange(end=3, dtype=x.dtype) + torch.arange(start=1, end=4)
F.smooth_l1_loss(x, x * 2, size_average=False) + F.mse_loss(x, x * 0, reduce=False)
F.cross_entropy(x, torch.tensor([0, 2]), None, False) + F.l1_loss(x, x * 3, True, True, "sum")
F.nll_loss(x, torch.tensor([0, 2]), reduce=True, size_average=False)
torch.atan2(n, n + 1) + k.atan2(k * 0)
torch.log(repeat(torch.arange(1, 4), "a -> b a", b=2)) + rearrange(n > 1, "a b -> a b").exp()
x[np.array([1, 0])[:1]] + x[0, np.argsort([3, 1, 2])[::-1].copy()]
sum(x[i] * j for j, i in enumerate(np.array([0, 1]))) + [x[i] for i in np.arange(2)][0]
turned(n)[0, :, [2, 0]]
x[:, n[0].numpy() > 1] + x[n.numpy().sum(1).argsort()][:, :1]
(torch.log(2.0 ** torch.arange(8.0) / 4) / np.log(2.0)).long() + (k[0, 0] * 4).log2().floor()
(torch.floor(torch.log2(2.0 ** torch.arange(-9.0, 9))) + torch.log(torch.arange(18) + 1)).int()
(10.0 ** torch.arange(5)).log10().to(torch.int64) - torch.ceil(torch.log(x.abs() + 8) / HALF).sum()
x[1:].shape.numel() * (x * 2).size().numel() * x.shape[1:].numel() + x
""".split("\n")[1:-1]

HEAD = """import numpy as np
import torch
import torch.nn.functional as F
from einops import rearrange, repeat
from torch import Tensor as T

HALF = np.log(2 * np.pi) / 2


def turned(n):
    n = n[None].numpy()
    n = n[:, ::-1].copy()
    n = torch.from_numpy(n)
    return n[0, :, n[0, 0].argsort()][None]


class Scaled(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = 1 / np.sqrt(width)

    def forward(self, x):
        return (self.scale * x).relu()


"""
FUNCTIONS = HEAD + "\n\n".join(
    f"def f{number}(n: T, k: T, x: T, b: T, held):\n    b = b > 0\n    return {code}\n"
    for number, code in enumerate(EXPRESSIONS)
)
CODE = """
import json
import numpy as np
import net
n, k = np.array([[-5, 4, 9], [0, 7, -2]]), np.array([[2, 3, 1], [1, 2, 5]])
x = np.array([[-1.5, 2.0, 0.0], [3.5, -2.25, 1.0]], "float32")
found = [
    getattr(net, f"f{number}")(*(TENSOR(part) for part in (n, k, x, n % 2, n)))
    for number in range(COUNT)
]
print(json.dumps([[str(part.dtype).lower().rpartition(".")[2], part.tolist()] for part in found]))
""".replace("COUNT", str(len(EXPRESSIONS)))


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> tuple[Answers, Answers]:
    """What each expression is in torch and in the port."""
    folder = tmp_path_factory.mktemp("operators")
    port, report = converted(folder, {"net.py": FUNCTIONS})
    assert not report.findings
    return run_both(folder, port, CODE)


@pytest.mark.parametrize("number", range(len(EXPRESSIONS)), ids=EXPRESSIONS)
def test_an_operator(number: int, answers: tuple[Answers, Answers]) -> None:
    (kind, values), (expected_kind, expected) = answers[1][number], answers[0][number]
    assert kind == expected_kind
    np.testing.assert_allclose(values, expected, rtol=1e-6)


@pytest.mark.parametrize("code", ["n >> 1", "~n", "1 & n", "~np.isnan(x)"])
def test_what_is_no_tensor_stays(code: str) -> None:
    port, findings = port_of(f"""
    import torch
    import numpy as np


    def f(n: int, x: np.ndarray):
        torch.ones(2)
        return {code}
    """)
    assert f"    return {code}\n" in port
    assert not findings


def test_a_number_beside_one_position_stays() -> None:
    port, findings = port_of("""
    import torch


    def f(x: torch.Tensor, y):
        for i in range(3):
            y = y + x[0, :, i] + x[0, 1:, -1] + x[i, :, 2] + y[0, i, 1]
        x[0, :, [1, 2]] = 0
        order = torch.tensor([0, 1])
        x[order, :, order] = y
        return y + x[:, None, 1]
    """)
    assert "y = y + x[0, :, i] + x[0, 1:, -1] + x[i, :, 2] + y[0, i, 1]\n" in port
    assert "return y + x[:, None, 1]\n" in port
    assert not findings


def test_values_that_are_written_by_a_number_beside_positions_are_told() -> None:
    _, findings = port_of("""
    import torch


    def f(x: torch.Tensor, y: torch.Tensor):
        x[0, :, [1, 2]] = y
        return x
    """)
    assert [finding.code for finding in findings] == ["index-order"]


def test_other_sums_stay_mindspores() -> None:
    port, _ = port_of("""
    import torch


    def f(x: torch.Tensor):
        return x.sum(1), x[x > 0].sum(), x.sum(), torch.sum(x)
    """)
    assert "return ops.sum(x, dim=1), compat.total(x[x > 0]), ops.sum(x), ops.sum(x)\n" in port


def test_logarithms_that_nothing_cuts_stay_mindspores() -> None:
    port, _ = port_of("""
    import torch


    def f(x: torch.Tensor):
        y = torch.log(x)
        return y.floor(), torch.floor(x + y).log()
    """)
    assert "y = ops.log(x)\n" in port
    assert "ops.log(ops.floor(x + y))" in port

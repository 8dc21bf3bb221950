"""Tensors of one number where an integer is expected: torch takes them, MindSpore's mostly not."""

from __future__ import annotations

from pathlib import Path

from tests.convert.support import converted, run_both, with_cases

_START = """
import torch
from torch import nn
from torch.nn import functional as F

X = (torch.arange(12.0).reshape(4, 3) * 7 % 5)
N = torch.tensor(2)
LENGTHS = torch.tensor([1, 3])


class Net(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.register_buffer("k", torch.tensor(k))
        self.fc = nn.Linear(3, self.k)

    def forward(self, x, lengths, dims=(0, 1), dim=None):
        parts = [x[i].narrow(0, 0, n).sum() for i, n in enumerate(lengths)]
        rest = x.sum(dims) if dim is None else x.sum(dim)
        return parts, rest, x.chunk(self.k, 0), self.fc(x).shape, torch.tril(x, self.k)


def taken(x, n):
    return x.narrow(0, n, 1), [1] * n, x.split(n)

"""
_CASES = (
    ("return torch.randn(N, 3).shape, torch.rand(N).shape, torch.rand((1, N)).shape",),
    ("return torch.randint(0, N + 1, (N, 3)).shape, torch.randint(N, size=(N,)).shape",),
    ("return torch.full((N,), 1.0), torch.full((N, N), 7), X.new_full((N, 1), 3.0)",),
    ("return X.narrow(0, N, 2), X.narrow(0, 1, N), torch.narrow(X, 0, LENGTHS[0], length=N)",),
    ("return X.chunk(N), torch.chunk(X, N, dim=0), X.split(N), X.split([N, 4 - N])",),
    ("n = LENGTHS.max()", "return torch.split(X, n), [X.split(s)[0] for s in LENGTHS]"),
    ("return X.tensor_split(LENGTHS), X.tensor_split((LENGTHS[0], N)), X[:, :2].hsplit(N)",),
    ("return [0] * N, N * [0], 'ab' * N, (1, 2) * (N + 1), [[0] * N] * 2",),
    ("return torch.triu(X, N), X.tril(diagonal=-N), torch.roll(X, N, 0), X.diagonal(N)",),
    ("d = N - 1", "return F.softmax(X, d) > 0.5, X.amax(d), X.transpose(0, d), X.movedim(0, d)"),
    ("d = torch.tensor(1)", "return X.max(dim=d)[0], X.min(dim=d, keepdim=True)[1], X.max(N)"),
    ("return torch.FloatTensor(N, 3).shape, torch.Size([N, 2]), X.new(3, N).shape",),
    ("return nn.Linear(N, 3).weight.shape, nn.Conv2d(4, 4, 1, groups=N).weight.shape",),
    ("return nn.Softmax(N - 1)(X) > 0.5, nn.MaxPool1d(N)(X[None]), F.avg_pool1d(X[None], N)",),
    ("return torch.linspace(0, N, 5), torch.linspace(N, torch.tensor(2.5), N + 1)",),
    ("return taken(X, N), taken(X, 2), torch.linalg.matrix_power(X[:3], N)",),
    ("return Net(2)(X, LENGTHS), Net(2)(X, [1, 2], dim=1), Net(2)(X, LENGTHS, (1,))[1]",),
)
_RUN = """
import json, net

def plain(value):
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return value.tolist() if hasattr(value, "tolist") else value

print(json.dumps([plain(case()) for case in net.CASES]))
"""


def test_a_tensor_of_one_number_is_an_integer(tmp_path: Path) -> None:
    """As an argument, within one, as a layer's size, as how often a list is repeated."""
    port, _ = converted(tmp_path, {"net.py": with_cases(_START, _CASES)})
    expected, found = run_both(tmp_path, port, _RUN)
    for case, wanted, one in zip(_CASES, expected, found, strict=True):
        assert one == wanted, case


def test_numbers_of_pythons_stay_as_they_are(tmp_path: Path) -> None:
    """What a network is given need not be a tensor, though it is mostly one."""
    code = """
    import torch
    from torch import nn

    class Net(nn.Module):
        def forward(self, x, start, dims):
            rows = x.shape[0] // 2
            return x.narrow(0, start, rows), x.sum(dims), [0] * rows, torch.randn(rows, 2)
    """
    port, _ = converted(tmp_path, {"net.py": code})
    assert "int(" not in (port / "net.py").read_text()

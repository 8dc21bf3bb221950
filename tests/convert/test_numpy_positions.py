"""Arrays of numpy's that a module holds, as positions in tensors: read, written, and compiled."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.convert.support import converted, run_original, run_port

_CODE = """
import numpy as np
import torch
from torch import nn


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.idx = np.array([0, 2])
        self.r, self.c = np.tril_indices(3, k=-1)
        self.rc = np.tril_indices(3, k=-1)
        self.table = np.arange(12.0).reshape(3, 4)
        self.part = self.idx[1:]
        self.w = nn.Parameter(torch.ones(3))


class Net(Base):
    def forward(self, x):
        local = np.array([1, 2])
        lower = x.new_zeros(3, 3)
        lower[self.rc[0], self.rc[1]] = self.w * 2
        upper = torch.zeros(3, 3)
        upper[self.c, self.r] = self.w
        upper[self.idx, self.idx] += 1
        upper[local, self.idx] *= 3
        y = x[:, self.idx].sum() + x[:, self.part].sum() + self.picked(x)
        return lower.sum() + upper.sum() + y + float(self.table[self.idx].sum())

    def picked(self, x):
        return torch.stack([x[:, i].sum() for i in self.idx]).sum()


"""
_TORCH = "import net, torch\nprint(net.Net()(torch.arange(6.0).reshape(2, 3)).item())\n"
_EAGER = """
import net, mindspore as ms, numpy as np
print(net.Net()(ms.Tensor(np.arange(6).reshape(2, 3).astype("f4"))).item())
"""
_COMPILED = _EAGER.replace("net.Net()(", "ms.jit(net.Net().construct)(")


@pytest.mark.parametrize("code", [_EAGER, _COMPILED], ids=["eager", "compiled"])
def test_arrays_that_a_module_holds_are_positions(tmp_path: Path, code: str) -> None:
    port, _ = converted(tmp_path, {"net.py": _CODE})
    assert run_port(port, code) == run_original(tmp_path, _TORCH)


_FOLDS = """
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, Subset, SubsetRandomSampler


class Rows(Dataset):
    def __init__(self):
        self.x = torch.arange(12.0).reshape(6, 2)
        self.by = {0: np.where(np.arange(6) % 2 == 0)[0]}

    def __len__(self):
        return 6

    def __getitem__(self, i):
        j = self.by[0][0]
        return self.x[i] + self.x[j]


def pick(t, i):
    t[i] = t[i] * 2
    return t[i]


rows = Rows()
order = np.random.RandomState(0).permutation(6)
print(pick(rows.x, order[0]).tolist())
for fold in np.array_split(order, 3):
    for batch in DataLoader(Subset(rows, fold), batch_size=2):
        print(batch.sum().item())
    print(sorted(float(b.sum()) for b in DataLoader(rows, sampler=SubsetRandomSampler(fold))))
    print(pick(torch.nn.Parameter(rows.x).detach(), fold).sum().item())
"""


def test_positions_of_numpy_reach_tensors_through_anything(tmp_path: Path) -> None:
    """A parameter, a value of a dictionary, a part of a dataset, and a sampler."""
    port, _ = converted(tmp_path, {"net.py": _FOLDS})
    assert run_port(port, "import net") == run_original(tmp_path, "import net")

"""A change in place reaches in the port what it reaches in torch, or the line is told.

Every statement below runs in both frameworks; what it leaves in its argument and its result are
compared.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.convert.support import converted, port_of, run_both, run_original, run_port

from isograd.convert import ConvertReport, Level
from isograd.runtime import data_of, elements

#: Statements about a tensor `x` of shape (3, 4), whose port does the same.
FAITHFUL = """
x[torch.nonzero(x.sum(1) > 1e9).squeeze(1)] = 0
rows = torch.where(x.sum(1) > 1e9)[0]; x[rows] = 0
rows = (x[:, 0] > -1e9).nonzero(as_tuple=True)[0]; x[rows[:2]] = 5
rows = torch.where(x.sum(1) > 1e9)[0]; x[rows] = x[rows] * 2
a, b = torch.where(x > 1e9); x[a, b] = 0
order = np.array([2, 0]); x[order] = 0
a, b = torch.tensor([0]), torch.tensor([1]); a = b.view(-1); b = a.view(-1); x[a] = 0
x[:, np.argsort([3, 1, 2, 0])] = x * 1
x[range(2), range(2)] = 7
n = np.zeros(3); n[np.where(n > 1)[0]] = 2; x[0] = float(n.sum())
y = x[0]; y += 1
y = x[0]; y.add_(1)
y = x[:, 0]; y.mul_(2)
y = x[0:2]; y[1] = 9
for row in x: row.add_(1)
for key, one in {i: x for i in range(2)}.items(): one.add_(key)
for one in {"a": x}.values(): one.mul_(2)
for row in x: row += 1
for i in range(3): x[i] += 1
x[0].fill_(1)
x[0][1] += 4
x[[0, 2]][0] = 7
x[x > 0][0] = 7; x[[2, 0], :][0] += 3
i = torch.tensor([2, 0]); x[i][0] = 7; x[1][i][0] = 5; x[i][0].add_(1)
x[0, 1:].zero_()
x[:, 1::2].zero_()
x[:, ::2].mul_(2).add_(1)
x[1, ::2].copy_(x[0, ::2]); torch.neg_(x[:, 1::2])
x[:, ::3].fill_(1.0); x[:, ::2].clamp_(min=0).sum()
( x.add_(1) )
( x[0].add_(1) )
( x[:, ::2].add_(x[0, 1]).neg_() )
y = x * 1; (y.sub_(2) ); x[0] = y[1]
x[0].copy_(x[1])
x[:, 0].copy_(x[:, 1])
v = x[:, 1]; v.copy_(x[:, 2])
x.copy_(x[0] * 1)
x.data[0] = 1
x.data += 1
x.data.mul_(2)
x.data.mul_(2).add_(1)
x.data.copy_(x.data * 2)
x.data.copy_(x[0] * 1)
x[0].mul_(2).add_(1)
h = Holder(x); h.mean.mul_(2).add_(5, alpha=3)
h = Holder(x); h.mean.data.mul_(2).sub_(1)
d = vars(Holder(x)); k = next(iter(d)); d[k].copy_(x * 2)
state = {}; m = state.setdefault("m", x); m.mul_(2).add_(1)
state = {"m": x}; m = state.get("m"); m.lerp_(x * 2, 0.5)
h = Holder(x); m = h.asked(); m.add_(1)
h = Holder(x); m = h.alone; m.add_(1)
h = Holder(x); m = getattr(h, "mean"); m += x
h = Holder(x); m = h.pair()[0]; m.mul_(3)
h = Holder(x); m, size = h.pair(); m.mul_(3)
m = next(iter([x])); m.add_(1)
m = max([x, x * 0 - 9], key=lambda t: t.sum().item()); m.add_(1)
m = [t for t in [x, x * 2] if t.sum() < 10][0]; m.add_(1)
first, *_ = list([x, x * 2]); first.add_(1)
dict(x=x)["x"].add_(3)
x.copy_(torch.ones(4)); x[0] = 7; x[:, 1].copy_(torch.tensor([4.0, 5.0, 6.0]))
x[...] = torch.tensor(3.0); x[1] = 2; x[...] = x.mean(0); x[0, 0] = 9
v = torch.ones(1, 4); x[...] = v - 3; x[1] = 4
v = torch.ones(1, 4); x.copy_(v); x[0] = 7; x[...] = v; x[1, 1] = 5; x[2] = v.sum()
parts = [x]; parts[0].copy_(torch.ones(4)); x[1] = 3
x.__iadd__(1); x[0].__imul__(3); v = x.__isub__(2); v += 1
operator.iadd(x, 1); operator.imul(x[0], 3); v = operator.isub(x, x[1] * 1); v += 1
i = x.long(); operator.ior(i, 8); i.__ilshift__(1); operator.ifloordiv(i, 3); x[0] = i[1]
{"k": x}["k"].add_(1); {k: x for k in "ab"}["b"].mul_(2)
k = Kept(x); k["x"].add_(1)
x.T.add_(1); x.mT.mul_(2)
held = {i: x for i in range(1)}; [p.add_(1) for p in held.values()]
held = {"k": (x, x * 2)}; a, b = held["k"]; a.add_(1)
held = [x, x * 2]; some = held[:1]; some[0].add_(1)
parts = list(x for _ in range(1)); i = len(parts) - 1; parts[i].add_(1)
i = int(x.shape[0]) - 1; y = [x][0]; y[i].add_(1)
v = x; v += 1
i = torch.tensor([1, 2]); v = i.long(); v += 1; x[0, :2] = i
i = torch.tensor([1, 2]); v = i.to(dtype=torch.int64); v[0] = 7; x[0, :2] = i
i = torch.tensor([1, 2]).int(); v = i.int(); v.mul_(3); x[0, :2] = i
b = x > 0; v = b.bool(); v.logical_not_(); x[b] = 3
d = x.double(); v = d.double(); v.mul_(3); x[0] = d[1]
v = x; v.add_(1)
n = x[1:].numpy(); n[0] = 9
x.view(-1).numpy()[5] = 3; x[:, 1:].numpy()[0] = 4; x.detach()[1:].cpu().numpy()[1, 1] = 6
n = x.t().numpy(); n[1] += 2; x.T.numpy()[0] = 1.5
i = torch.tensor([1, 2]); add_to_whole(i); add_to_whole(x); x[0, :2] = i
a = b = x; a += 1
v = x; v *= torch.add(x, 1)
v = x; v -= (x * 2) - (x * 3)
w = x.data; w.fill_(2)
w = x.data; w[0] = 5; w += 1; w[1:, 2] *= 3
w, n = x.data, 2; w.mul_(n).add_(1)
parts = [x.data]; parts[0].mul_(2); parts[0][1] = 3
held = {"x": x.data}; held["x"].add_(1); held["x"][0, 1] -= 2
for d in [x.data]: d.add_(1)
[d.add_(1) for d in (p.data for p in [x])]
x.data[0] -= 3; x.data[:, 1], x.data[0] = 4, 5
torch.nn.init.ones_(x.data)
torch.nn.init.constant_(x.data[:1], 0.5)
torch.nn.init.constant_(x[0, 1:], 0.5)
torch.nn.init.constant_(x.view(-1), 0.5)
w = x.data; torch.nn.init.zeros_(w[0]); torch.nn.init.ones_(w.view(-1))
x.data *= torch.add(x, 1)
x.data -= (x * 2) - (x * 3)
parts = [x]; parts[0] *= torch.add(x, 1)
a, x = x, x; a += 1
a = b = x * 2; a += 1; x = a + b
a = b = x * 2; b.mul_(3); x = a + b
a = x * 2; b = a + 0; a += 1; x = a + b
q = x.float(); q += 1
q = x.to(torch.float32); q.add_(1)
q = x.contiguous(); q += 1
q = x.clone(); q += 1
parts = [x[0], x[1]]; parts[0].add_(1)
parts = [x]; parts[0] += 1
named = {"a": x}; named["a"].mul_(3)
pair = (x, 1); pair[0].add_(1)
parts = [x] * 3; parts[0].add_(1)
parts = [x] * 3; parts[1] += 2
q = x * 1; parts = [q] * 2; parts[0].mul_(2); x = parts[1] + q
torch.add(x, 1, out=x)
torch.add(x[1], 1, out=x[0])
y = torch.add(x[1], 1, out=x[0]); x = x + y
h = Holder(x); torch.add(x, 1, out=h.mean)
y = torch.add(x, 1, out=torch.empty_like(x)); x = y * 2
y = torch.arange(0, 4, out=torch.LongTensor(4)); x = x + y
y = torch.gt(x, 1, out=torch.empty(3, 4)); x = y / 2
y = torch.add(x, x, alpha=2, out=torch.zeros(3, 4, dtype=torch.float64)); x = y
torch.add(x, 1, out=x).mul_(2)
z = torch.empty(3, 4); torch.add(x, 1, out=z).mul_(2); x = z + 1
z = torch.empty(3, 4); y = torch.mul(x, 2, out=z).add_(1).mul_(3); x = y + z
v = x; torch.mul(x, 2, out=v)
z = torch.empty(3, 4); v = z; torch.mul(x, 2, out=z); x = v + z
z = torch.empty(3, 4); torch.mul(x, 2, out=z); x = z + 1
z = torch.empty(3, 4); x = torch.mul(x, 2, out=z) + z
add_to_argument(x)
fill_argument(x[0])
scale_all([x])
F.relu(x, inplace=True)
F.relu(x[:, 1], inplace=True)
nn.ReLU(inplace=True)(x)
nn.ReLU(True)(x)
F.relu_(x)
y = torch.relu_(x * 2); x = x + y
y = F.leaky_relu_(x, 0.1) + x; x = x * y
torch.abs_(x)
F.elu_(x[0])
y = F.relu_(x[0]); x = x + y
y = F.relu(x[0:2], inplace=True) * 2; x[0:2] += y
y = F.relu_(x[[0, 1]]); x = x + y.sum()
F.relu(x, True)
F.leaky_relu(x, 0.1, True)
y = nn.Hardtanh(-1, 2, True)(x); x = x + y
x.sub_(1).mul_(2)
y = x.add_(1); y += 3
x[[0, 1]] = 2
x[x > 0] += 1
x.masked_fill_(x > 0, 0)
x = x.view(4, 3) + 0; x += 1
x = x * 2; x += 1
row = x[0]; part = row[1:]; part += 1
row = x[0] + 0; x += 1; x = x + row
kept = x; y = x[:, :2]; y *= 2; x = kept + x
x = x * 2; y = x.t() + 0; x += 1; x = x + y.sum()
parts = {"a": x}; k = "a"; parts[k].mul_(2).add_(1)
h = Holder(x); getattr(h, "mean").mul_(2).add_(1)
parts = {"a": x}; parts.get("a").add_(1)
hs = [Holder(x)]; i = int(x.shape[0]) - 3; hs[i].mean.mul_(2).add_(1)
hs = [Holder(x)]; hs[int(torch.argmax(x[0])) - 3].mean.data.mul_(2).add_(1)
x.requires_grad_(False).add_(1)
x.index_put_((torch.tensor([0]), torch.tensor([1])), torch.tensor(7.0))
x.index_put_((x > 0,), torch.tensor(7.0))
a, b, c = x; a.add_(1)
a, *rest = x; a.add_(1)
x[None].add_(1)
x.addcmul_(x, x, value=0.5).addcdiv_(x, x + 10)
x.mul_(2).add_(x).sub_(x.mean())
y = x; x.mul_(2).add_(x); x = x + y
h = Holder(x); h.mean.mul_(2).add_(h.mean)
x.data.mul_(2).add_(x)
x[0].mul_(2).add_(x[0])
w = x[0].mul_(2); x = x + w
w = x[:, 1:].mul_(2).add_(1); x = x.sum() + w
x = x + x[1].add_(1)
w = x[..., 1].add_(3); x = x + w.sum()
i = 1; w = x[i : i + 1, -1].add_(3).mul_(2); x = x + w.sum()
w = x[torch.tensor([0, 1])].mul_(2); x = x + w.sum()
i = x > 0; w = x[i].mul_(2); x = x + w.sum()
i = torch.tensor([0, 1]); x[i].mul_(2)
i = torch.tensor(1); x[i].mul_(2).add_(1)
i = int(x.shape[0]) - 1; x[i].copy_(x[0])
x[0].copy_(x[1]).add_(1)
y = x.copy_(x * 2).add_(1); x = x + y
y = x[[0, 1]]; y[0] = 5; x = x + y.sum()
y = x[x > 0]; y[0] = 5; x = x + y.sum()
i = torch.tensor([0, 1]); y = x[i]; y *= 2; x = x + y.sum()
i = torch.tensor([0, 1]); y = x[:, i]; y[0] = 5; x = x + y.sum()
i = x > 0; y = x[i]; y[y > 3] = 0; x = x + y.sum()
y = x[torch.tensor([0, 1])][0]; y[0] = 5; x = x + y.sum()
y = x[torch.tensor([0, 1])]; z = y[0]; z[0] = 3; x = x + y.sum()
for r in x[torch.tensor([0, 1])]: r.add_(1)
y, z = selected(x); y[0] = 5; z[0] = 6; x = x + y.sum() + z.sum()
y = drawn(x); y[0] = 5; x = x + y.sum()
order = np.array([0, 2]); y = x[order]; y[0] = 5; x = x + y.sum()
h = Holder(x); h.mean = x[torch.tensor([0, 1])]; h.mean[0] = 5; x = x.sum() + h.mean
i = 1; y = x[i]; y[0] = 5
y = torch.zeros(3, 4); y.copy_(x); y[0] = 5; x = x + y.sum()
y = torch.zeros(3, 4); y[...] = x; x[0] = 5; x = x + y.sum()
y = torch.zeros(3, 4); n = 3; y[...] = n; y[0] = 5; x = x + y.sum()
parts = [torch.zeros(3, 4)]; parts[0].copy_(x); parts[0][0] = 5; x = x + parts[0]
y = x.t().contiguous(); y[0] = 5; x = x + y.sum()
y = x.view(-1).contiguous(); y[0] = 5; x = x + y.sum()
y = x.t().contiguous(); y += 5; x = x + y.sum()
y = x; x = x.relu_(); x = x + y
y = x; x = x.add_(1).mul_(2); x = x + y
y = x; x = F.relu(x, inplace=True); x = x + y
y = x * 2; z = y; y = torch.relu_(y); x = x + y + z
y = x * 2; z = y; w = (y := y.mul_(2)); x = x + y + z + w
x[torch.tensor([0, 1]), 1:].mul_(2)
i = x[0] > -4; x[:, i].zero_()
i = torch.tensor([0, 1]); x[i].copy_(x[1:])
x[1:].data.zero_()
x[1].data.copy_(x[0])
x.data[1].copy_(x[0])
parts = {"a": x}; k = "a"; parts[k].data.mul_(2).add_(1)
d = {"a": torch.zeros(3, 4)}; d["a"].copy_(x); d["a"][0] = 5; x = x + d["a"]
p = nn.Parameter(x * 1); p[1:].data.zero_(); x = p.detach() + 0
p = nn.Parameter(x * 1); p.data[1].copy_(x[0]); p[0].data.fill_(2); x = p.detach() + 0
h = Holder(x); h.mean[1:].data.zero_(); h.mean.data[0].copy_(x[1])
h = Holder({"slow": x}); slow = h.mean["slow"]; slow += (x.data - 3) * 2
h = Holder([{"slow": x}]); state = h.mean[0]; slow = state["slow"]; slow -= slow / 2
y = x * 2; h = Holder({"sum": x}); total = h.mean["sum"]; total += y
y = x * 2; h = Holder({"sum": x, "n": 2}); n = h.mean["n"]; n += int(y[0, 0]); x = x + n
y = x * 2; k = "sum"; h = Holder({"sum": x, "n": 2}); total = h.mean[k]; total *= y
new = x.data.float(); new.mul_(2).add_(1); x.data.copy_(new)
order = np.array([2, 0, 1]); batch = order[:1]; x[batch] += 2
order = np.array([2, 0, 1]); x[:, order[1:] + 1] *= 2; x[order > 1] = 0
order = x[:, 0].numpy().argsort(); x[order[:2]] = x[order[1:]] * 2
for row in np.arange(2): x[row, 1] -= 3
for _, (row, column) in enumerate(zip(np.arange(2), np.array([3, 1]))): x[row, column] = 9
a, b = box(x.size()); x[a:b, b:] = x.flip(0)[a:b, b:]; x[a] *= 2
parts = [np.where(x[0] < n)[0] for n in (-2, 0)]; x[1, parts[0]] = 7
x[1] = x[0].reshape(1, -1) * 2
y = x[0].view((1, 4)); z = -y + 1; x[2] = w = z.abs(); x = x + w
x[:, 1] = x[0, :1].unsqueeze(0); x[0, 2:] = x[1, :2][None, None].clone()
x[...] = x[0][None] * 2
x.diagonal().copy_(x[0, :3])
x.view(-1)[0] = 5
x.t()[0] = 1
x.narrow(0, 0, 1).fill_(3)
x.T[0] = 1
x.view(-1).mul_(2)
x.diagonal().fill_(0)
torch.narrow(x, 0, 1, 1).add_(3)
the_same_torch.narrow(x, 0, 1, 1).add_(3)
w = x * 2; w.view(-1)[::5] = 1; w.view(-1)[1::5] -= x[0, :3]; x = w
w = x * 2; w.view(x.size(0), -1).t()[1, 1:].mul_(3); x = w
w = x > 0; w.diagonal()[1:] = True; x = x * w
w = x * 2; v = w; w.view(2, 6)[:, [0, 3]] = x[:2, :2]; x = v + x
w = x.long(); w.view(-1)[torch.tensor([1, 7])] = 9; x = x + w
x[1:].t()[0] = x[0, :2]
x.transpose(0, 1).unsqueeze(0)[0, 1] += x[0, 1] * 2
n = np.zeros((3, 4)); n.T[0] = 3; x = x + torch.from_numpy(n)
y = nn.Identity()(x); y += 1
m = nn.Identity(); y = m(x); y.add_(1)
m = nn.ReLU(); y = m(x); y.add_(1); x = x + y
""".strip().splitlines()

#: Changes of views that no write of MindSpore's carries to the tensor behind them.
LOST = """
x.reshape(-1)[2] += 1
x.t().reshape(-1)[1] = 5; x = x + x.t().sum(1)
x.view(torch.int32)[0] = 1
x.detach().add_(2)
a, b = x.chunk(3)[:2]; a += 2
a, b, c = x.chunk(3); a.mul_(2)
z = x.view(4, 3); z += 1
z = x.view(4, 3); z.mul_(2)
z = x.view(4, 3); z[0] = 2
w = x.permute(1, 0); w += 1
u = x.detach(); u += 2
(x if x.sum() > 0 else x * 1).add_(1)
new = x.data.float(); new.mul_(2); y = x * 1; x.data.copy_(new); x = x + y
a, b, c, d = x.T; a.mul_(2)
a, b, c = x[:, :2].t()[0]; y = x.t(); a, b, c, d = y; b -= 2; x = x + a.sum()
torch.nn.init.ones_(x.t())
torch.nn.init.ones_(x.view(-1)[:3])
v = narrow(x, 0, 1, 1); v.add_(3)
v = torch.narrow(input=x, dim=0, start=1, length=1); v += 1
x = x * 1; row = x[0]; x += 1; x = x + row
x = x * 1; y = x[:, :2]; parts = [x]; parts[0] -= 1; x = x + y.sum()
x = x * 1; y = x[:, :2]; other = x; other += 1; x = x + y.sum()
x = x * 1; flat = x.view(-1); x.mul_(2); x = x + flat[0]
parts = [x]; next(iter(parts)).add_(1)
parts = [x]; parts.pop().add_(1)
x.mul_(2)[0].add_(1)
n = x.numpy(); x += 1; x[0] = float(n.sum())
n = x.detach().cpu().numpy(); x.mul_(2); x[0] = float(n.sum())
a = np.zeros(4, "f4"); t = torch.from_numpy(a); t.add_(1); x[0] = float(a.sum())
(y := x).add_(1); x = y * 2
y = x[None]; y.add_(1)
y = torch.as_tensor(x); y += 1
y = torch.atleast_2d(x); y += 1
y = nn.Flatten(0)(x); y += 1
m = nn.Flatten(0); y = m(x); y.add_(1)
""".strip().splitlines()

_HEAD = """
import operator
import numpy as np
import torch
from torch import nn
import torch as the_same_torch
from torch import narrow
import torch.nn.functional as F


def add_to_argument(v):
    v += 1.5


def fill_argument(v):
    v.fill_(2)


def scale_all(tensors):
    for tensor in tensors:
        tensor.mul_(2)


def selected(v):
    keep = v > 0
    keep = keep[:]
    keep = keep[torch.arange(len(keep))]
    return v[keep], v[torch.tensor([0, 1])]


def add_to_whole(v):
    w = v.long()
    w += 1
    return v


def drawn(v):
    order = np.random.RandomState(0).permutation(len(v))
    return v[order]


def box(size):
    middle = size[0] // 2
    return np.clip(middle - 1, 0, size[0]), np.clip(middle + 1, 0, size[1])


class Holder:
    def __init__(self, x):
        self.mean = x

    @property
    def alone(self):
        return self.mean

    def asked(self):
        return self.mean

    def pair(self):
        mean = self.mean
        return mean, len(mean)


class Kept:
    def __init__(self, x):
        self.x = x

    def __getitem__(self, key):
        return getattr(self, key)


def run(x: torch.Tensor):
"""
_RUN = """
import importlib, json
import numpy as np
found = []
for number in range(COUNT):
    x = TENSOR(np.arange(-5, 7, dtype="f4").reshape(3, 4).copy())
    try:
        result = importlib.import_module(f"nets.case_{number}").run(x)
        found.append([result.tolist(), x.tolist()])
    except Exception as error:
        found.append(f"{type(error).__name__}: {str(error)[:200]}")
print(json.dumps(found))
"""


def _lines(statement: str) -> Iterator[str]:
    parts = [statement] if statement.startswith("for ") else statement.split("; ")
    yield from (f"    {part}" for part in parts)


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[object], ...]:
    """What torch says of each statement, what the port says, and the lines that were told."""
    return both(tmp_path_factory.mktemp("in_place"), FAITHFUL + LOST)


def both(folder: Path, statements: list[str]) -> tuple[list[object], ...]:
    """Run statements in both frameworks; and which of them were told."""
    files = {"nets/__init__.py": ""}
    for number, statement in enumerate(statements):
        body = "\n".join([*_lines(statement), "    return x"])
        files[f"nets/case_{number}.py"] = f"{_HEAD}{body}\n"
    port, report = converted(folder, files)
    code = _RUN.replace("COUNT", str(len(statements)))
    return *run_both(folder, port, code), _told(report, statements)


def _told(report: ConvertReport, statements: list[str]) -> list[object]:
    first = _HEAD.count("\n")
    told = {
        finding.file
        for finding in report.findings
        if finding.line > first and finding.level is Level.FINISH
    }
    return [f"nets/case_{number}.py" in told for number in range(len(statements))]


@pytest.mark.parametrize("number", range(len(FAITHFUL)), ids=FAITHFUL)
def test_a_change_reaches_what_it_reaches_in_torch(
    number: int, answers: tuple[list[object], ...]
) -> None:
    expected, found, told = (answer[number] for answer in answers)
    assert not told
    assert not isinstance(found, str), found
    for one, other in zip(found, expected, strict=True):  # type: ignore[call-overload]  # lists
        np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize("number", range(len(LOST)), ids=LOST)
def test_a_change_that_would_be_lost_is_told(
    number: int, answers: tuple[list[object], ...]
) -> None:
    assert answers[2][len(FAITHFUL) + number]


def test_a_field_called_data_is_not_a_tensors() -> None:
    body = """
    class Scores(torch.utils.data.Dataset):
        def __init__(self, size):
            self.data = [0.0] * size

        def put(self, place, score):
            self.data[place] = score
            self.data[0] += score


    def fill(batch, value):
        batch.data[0] = value
    """
    port, findings = port_of("    import torch\n\n" + body)
    assert not findings
    for line in ("self.data[place] = score", "self.data[0] += score"):
        assert f"    {line}\n" in port
    assert "    compat.elements(batch)[0] = value\n" in port  # which asks what a batch is


def test_what_is_no_tensor_keeps_its_own_data() -> None:
    class Batch:
        def __init__(self) -> None:
            self.data = [1, 2]

    batch = Batch()
    elements(batch)[0] = 5
    elements(batch)[1] += 1
    assert batch.data == [5, 3]
    assert data_of(batch) is batch.data


def test_a_parameter_that_was_changed_in_place_can_be_loaded_and_trained(tmp_path: Path) -> None:
    """`p[...] = …` would leave a Parameter that no operator can assign to."""
    port, report = converted(
        tmp_path,
        {
            "nets/__init__.py": "",
            "nets/init.py": """
            import torch
            from torch import Tensor, nn


            def double(tensor: Tensor) -> Tensor:
                with torch.no_grad():
                    tensor.mul_(2)
                    held = tensor
                    held += 1
                    held.copy_(held - 0.5)
                return tensor


            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.weight = nn.Parameter(torch.ones(3))
                    double(self.weight)
                    weight = self.weight
                    with torch.no_grad():
                        weight.add_(1)
                        for parameter in self.parameters():
                            parameter.mul_(3)
                            other = parameter
                            other.sub_(1)
            """,
        },
    )
    assert not [f for f in report.findings if f.level is Level.FINISH]
    code = """
    import mindspore as ms
    from mindspore import ops
    from nets.init import Net
    (weight,) = Net().get_parameters()
    print(weight.asnumpy().tolist())
    ops.assign(weight, ms.Tensor([1.0, 2.0, 3.0]))
    print(weight.asnumpy().tolist())
    """
    assert run_port(port, code).splitlines() == ["[9.5, 9.5, 9.5]", "[1.0, 2.0, 3.0]"]


def test_a_change_of_what_a_network_is_called_with_is_told() -> None:
    port, findings = port_of("""
    from collections import OrderedDict
    from torch import nn


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(3, 3))
            self.second = nn.Sequential(
                OrderedDict([("act", nn.ReLU(inplace=True)), ("fc", nn.Linear(3, 3))])
            )
            self.third = nn.Sequential(nn.Linear(3, 3), nn.ReLU(inplace=True))

        def forward(self, x):
            x.clamp_(min=0)
            y = self.first(x)
            y += x
            return y + self.second(x) + self.third(x)
    """)
    assert [(f.line, f.code, f.level) for f in findings] == [
        (9, "in-place-input", Level.LOOK),
        (11, "in-place-input", Level.LOOK),
        (16, "in-place-input", Level.LOOK),
    ]
    assert "y += x" in port


RESIDUAL = """
import torch
from torch import nn


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = nn.Sequential(nn.ReLU(True), nn.AvgPool1d(1))
        self.leaky = nn.Sequential(nn.LeakyReLU(0.1, inplace=True), nn.AvgPool1d(1))

    def forward(self, x):
        y = x * 2
        z = y + self.block(y)
        return z + self.block(z) + y

    def told(self, x):
        y = torch.tanh(x) * self.block(x)
        y = self.leaky(x) + x
        return y + self.leaky(y)
"""


def both_forwards(folder: Path, port: Path, network: str) -> tuple[object, object]:
    """What a network of nets/net.py makes of the numbers from -6 to 5, and what its port makes."""
    code = f"""
    import json
    import numpy as np
    from nets.net import {network}
    x = TENSOR(np.arange(-6, 6, dtype="f4").reshape(1, 3, 4))
    print(json.dumps({network}()(x).tolist()))
    """
    return run_both(folder, port, code)


def test_a_sequential_that_changes_its_input_does_so_before_the_statement(tmp_path: Path) -> None:
    port, report = converted(tmp_path, {"nets/__init__.py": "", "nets/net.py": RESIDUAL})
    expected, found = both_forwards(tmp_path, port, "Residual")
    assert found == expected
    told = [f.line for f in report.findings if f.level is Level.FINISH]
    first = RESIDUAL.splitlines().index("    def told(self, x):") + 1
    assert told == [first + 1, first + 2, first + 3]


IN_EXPRESSIONS = """
import torch
from torch import nn


class Expressions(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = nn.Sequential(nn.ReLU(True), nn.AvgPool1d(1))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        a = x * 2
        b = 2 * (a + self.block(a))
        c = torch.cat([b - 3, x]) - 1
        d = torch.stack([c, self.block(c)])
        e = x * 3
        e = self.block(e) + e
        f = x * 4
        f = self.relu(f) + f
        g = x * 5
        g = g.relu_() + g
        h, k, m = x * 1, x * 1, x * 1
        total = x * 0
        for _ in range(3):
            total = total + h
            total = total + h.add_(1)
            total = total + k.mul_(2)
            total = total + m
            total = total + self.relu(m)
        n = x * 6
        n += self.block(n)
        return torch.cat([part.reshape(1, -1) for part in (a, b, c, d, e, f, g, total, n)], dim=1)

    def told(self, x, xs, flag):
        y = x * 2 + self.block(x)
        y = y + (self.block(x) if flag else x) + x
        z = flag and self.block(y)
        z = [self.block(y) for _ in xs]
        later = lambda: self.block(y)
        return later() + y
"""


def test_a_layer_in_an_expression_changes_what_is_read_after_it(tmp_path: Path) -> None:
    port, report = converted(tmp_path, {"nets/__init__.py": "", "nets/net.py": IN_EXPRESSIONS})
    expected, found = both_forwards(tmp_path, port, "Expressions")
    assert found == expected
    told = [f.line for f in report.findings if f.level is Level.FINISH]
    first = IN_EXPRESSIONS.splitlines().index("    def told(self, x, xs, flag):") + 1
    assert told == [first + 1, first + 2, first + 3, first + 4, first + 5]


PASSING = """
import torch
import torch.nn.functional as F
from torch import nn


class DropPath(nn.Module):
    def forward(self, x, scale=2.0):
        if not self.training:
            return x
        return x * torch.rand(1) * scale


class Passing(nn.Module):
    def __init__(self, stride=1, p=0.0):
        super().__init__()
        self.same = nn.Identity()
        self.drop = nn.Dropout(0.5)
        self.short = nn.Sequential()
        if stride != 1:
            self.short = nn.Sequential(nn.AvgPool1d(1), nn.Tanh())
        self.path = nn.Dropout2d(p) if p > 0 else nn.Identity()
        self.norm = nn.Sequential(nn.AvgPool1d(1))
        self.relu = nn.ReLU(inplace=True)
        self.flatten = nn.Flatten()
        self.drop_path = DropPath()
        self.act = nn.ReLU(inplace=True) if p < 1 else nn.Sigmoid()
        self.eval()

    def forward(self, x):
        a = x * 2
        b = self.same(a)
        b += 1
        c = x * 3
        d = self.drop(c)
        d.mul_(2)
        e = x * 4
        f = self.short(e)
        e = self.relu(e)  # of f too
        g = x * 5
        h = self.path(g)
        h[:, 0] = 7
        k = x * 6
        m = F.dropout(k, 0.5, self.training)
        m -= 1
        n = x * 7
        o = self.norm(n)
        o += 1
        p = x * 8
        p = self.same(p)
        p += 1
        q = x * 9
        r = self.same(input=q)
        r += 1
        s = x * 10
        t = self.drop_path(s)
        t += 1
        u = x * 11
        v = u
        u = self.act(u)  # of v too
        w = x * 12
        y, z = w, self.relu(w)  # of y too
        aa = x * 13
        ab = aa
        aa = self.same(aa)
        aa += 1  # of ab too
        ac = x * 14
        self.held = ac
        self.held += 1  # of ac too
        self.count = 1
        self.count += 1
        every = (a, b, c, d, e, f, g, h, k, m, n, o, p, q, r, s, t, u, v, w, y, z, aa, ab, ac)
        return torch.cat([part.reshape(1, -1) for part in every], dim=1)

    def told(self, x):
        y = x * 2
        z = self.flatten(y)
        z += 1
        return y, z
"""


def test_a_layer_that_returns_its_input_gives_it_another_name(tmp_path: Path) -> None:
    port, report = converted(tmp_path, {"nets/__init__.py": "", "nets/net.py": PASSING})
    expected, found = both_forwards(tmp_path, port, "Passing")
    assert found == expected
    told = [f.line for f in report.findings if f.level is Level.FINISH]
    first = PASSING.splitlines().index("    def told(self, x):") + 1
    assert told == [first + 3]
    text = (port / "nets/net.py").read_text()
    assert "o += 1" in text
    assert "self.count += 1" in text
    assert "p += 1" in text


UNKNOWN = """
import torch
from torch import nn


def double(x):
    return x * 2


class Unknown(nn.Module):
    def __init__(self, name="double"):
        super().__init__()
        self.block = globals()[name]
        self.steps = [3, 4, 5]

    def forward(self, x):
        a = self.block(x)
        b = a[:]
        b += 1
        c = self.block(x)
        d = c[:, 0]
        d *= self.block(x)[:, 1]
        e = self.block(x)
        f = e[0]
        f -= 1
        g = self.block(x)
        h = g
        h += 1
        k = self.block(x)
        m = k[..., 1:]
        m -= k[..., :1]
        steps = self.steps[1:]
        rest = steps
        rest += [6]
        last = steps[0]
        last += 1
        total = None
        seen = []
        for block in (self.block, self.block):
            y = block(x)
            if total is None:
                total = y
            else:
                total += y  # seen[0] too
            seen.append(y)
        every = (a, b, c, d, e, f, g, h, k, m, total, *seen, torch.tensor([*steps, last]).float())
        return torch.cat([part.reshape(1, -1) for part in every], dim=1)
"""


def test_what_a_module_returned_is_changed_for_all_its_names(tmp_path: Path) -> None:
    port, report = converted(tmp_path, {"nets/__init__.py": "", "nets/net.py": UNKNOWN})
    expected, found = both_forwards(tmp_path, port, "Unknown")
    assert found == expected
    assert not [f for f in report.findings if f.level is Level.FINISH]
    assert "rest += [6]" in (port / "nets/net.py").read_text()


KEEPING = """
import torch
from torch import nn


class Keeping(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.AvgPool1d(1), nn.ReLU(inplace=True), nn.AvgPool1d(1), nn.LeakyReLU(0.1, True)
        )

    def forward(self, x):
        kept = []
        for layer in self.layers:
            x = layer(x)
            kept.append(x)
        return torch.cat([part.reshape(1, -1) for part in kept], dim=1)


class Features(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = layers
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        kept = {}
        for name, layer in self.layers.named_children():
            x = layer(x)
            if name == "2":
                kept[name] = x
        return kept


def watch(network, kept):
    network.register_forward_hook(lambda module, inputs, output: kept.append(output))
"""


def test_outputs_that_a_loop_over_layers_keeps_are_changed_by_the_layers_behind(
    tmp_path: Path,
) -> None:
    port, report = converted(tmp_path, {"nets/__init__.py": "", "nets/net.py": KEEPING})
    expected, found = both_forwards(tmp_path, port, "Keeping")
    assert found == expected
    lines = KEEPING.splitlines()
    loop = lines.index("        for name, layer in self.layers.named_children():") + 1
    told = [(f.line, f.code, f.level) for f in report.findings if f.code == "in-place-kept"]
    assert told == [(loop, "in-place-kept", Level.LOOK), (len(lines), "in-place-kept", Level.LOOK)]


VIEWED = """
from collections import namedtuple
import torch
from torch import nn

Out = namedtuple("Out", "values others")


class Viewed(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        h = self.layer(x)
        out = Out(h, h * 2)
        out.values.add_(1)
        out.others.mul_(2)
        self.held = h
        self.held.sub_(1)
        return (h + out.others).sum()


def gradient():
    network = Viewed()
    with torch.no_grad():
        network.layer.weight.copy_(torch.eye(4))
    x = torch.arange(12.0).reshape(1, 3, 4).requires_grad_(True)
    network(x).backward()
    return x.grad.sum().item()
"""


def test_a_change_of_a_view_keeps_its_gradient(tmp_path: Path) -> None:
    port, _ = converted(tmp_path, {"nets/__init__.py": "", "nets/net.py": VIEWED})
    code = "from nets.net import gradient\nprint(gradient())"
    assert float(run_original(tmp_path, code)) == 60.0
    assert float(run_port(port, code)) == 60.0


LEAVES = """
import torch

bound = torch.zeros(2, 3, requires_grad=True)


class Held:
    def __init__(self):
        self.values = torch.zeros(2, 3, requires_grad=True)
        self.optimizer = torch.optim.Adam([self.values], lr=0.5)

    @torch.no_grad()
    def change(self):
        self.values.clamp_(0, 0.25)
        self.values -= 0.1
        self.values[0] += 1
        self.values[1, 2] = 3


def train(values, optimizer, change):
    losses = []
    for _ in range(3):
        loss = ((values - 1) ** 2).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        change()
        losses.append(loss.item())
    return losses + values.detach().flatten().tolist()


def of_function():
    values = torch.ones(2, 3).clone()
    values.requires_grad_(True)
    optimizer = torch.optim.SGD([values], lr=0.1, momentum=0.9)

    def change():
        return None

    losses = []
    for _ in range(3):
        losses += train(values, optimizer, change)
        with torch.no_grad():
            values.clamp_(0, 0.7)
            values *= 2
            values[0].mul_(0.5)
            values[1:] -= 1
    return losses


def of_module():
    losses = []
    optimizer = torch.optim.SGD([bound], lr=0.1)
    for _ in range(3):
        losses += train(bound, optimizer, lambda: None)
    return losses


def of_object():
    held = Held()
    return train(held.values, held.optimizer, held.change)


with torch.no_grad():
    bound.add_(2)
    bound[0] = 4
"""


def test_a_change_of_what_an_optimizer_holds_keeps_it(tmp_path: Path) -> None:
    """`x.clamp_(0, 1)` of a leaf, as in PyTorch's tutorial on the transfer of style."""
    port, report = converted(tmp_path, {"nets/__init__.py": "", "nets/leaves.py": LEAVES})
    assert not [f for f in report.findings if f.level is Level.FINISH]
    code = """
    from nets import leaves
    print(leaves.of_function() + leaves.of_module() + leaves.of_object())
    """
    original, ported = run_original(tmp_path, code), run_port(port, code)
    assert len(ast.literal_eval(original)) > 40
    assert ast.literal_eval(ported) == pytest.approx(ast.literal_eval(original), rel=1e-5)


@pytest.mark.parametrize("write", ["x += 1", "x.add_(1)", "x.copy_(other)"])
@pytest.mark.parametrize(("view", "is_reported"), [("x[1:, ::2]", True), ("x[1:]", False)])
def test_a_change_without_gradients_that_a_copied_view_does_not_see_is_reported(
    write: str, view: str, is_reported: bool
) -> None:
    """`x[1:, ::2]` is copied in the port; other views lie in the memory that is written to."""
    code = f"""
        import torch

        x = torch.ones(3, 4)
        other = torch.zeros(3, 4)
        y = {view}
        with torch.no_grad():
            {write}
        print(y)
    """
    _, findings = port_of(code)
    assert ("in-place-view" in {one.code for one in findings}) == is_reported


def test_a_cast_that_is_written_to_is_bound_where_it_is_compiled() -> None:
    code = """
        import torch
        from torch import nn

        class Net(nn.Module):
            def forward(self, x):
                y = x.long()
                y += 1
                z = x.half()
                z.mul_(2)
                return y + z
    """
    port, findings = port_of(code)
    assert not findings
    assert "y = compat.overwrite(y, y + 1)" in port
    assert "z = compat.overwrite(z, z * 2)" in port


@pytest.mark.parametrize(
    ("body", "is_told"),
    [
        pytest.param(
            "if flat:\n    z = y.view(-1)\nelse:\n    y.mul_(2)\n    z = y.view(-1)\nreturn z",
            False,
            id="a view in the other branch",
        ),
        pytest.param(
            "if flat:\n    z = y.view(-1)\n    y = z\nelse:\n    y.mul_(2)\nreturn y",
            False,
            id="a view under its own name in the other branch",
        ),
        pytest.param(
            "if flat:\n    z = y.view(-1)\n    y.mul_(2)\nelse:\n    z = y\nreturn z",
            True,
            id="a view in the same branch",
        ),
        pytest.param(
            "for flat in (True, False):\n    if flat:\n        z = y.view(-1)\n    else:\n"
            "        y.mul_(2)\nreturn z",
            True,
            id="a view in the other branch of an earlier round",
        ),
    ],
)
def test_a_view_that_is_made_in_another_branch_is_not_reached(body: str, is_told: bool) -> None:
    lines = body.replace("\n", "\n    ")
    _, findings = port_of(
        f"import torch\n\n\ndef f(x: torch.Tensor, flat):\n    y = x * 2\n    {lines}\n"
    )
    assert [one.code for one in findings] == ["in-place-view"] * is_told


DICTIONARIES = """
import operator
import torch
from collections import OrderedDict
from torch import nn
from types import SimpleNamespace


def told():
    net, found = nn.Linear(2, 2), []
    for p in net.parameters():
        p.data.fill_(1.0)
    shadow = {n: p.detach().clone() for n, p in net.named_parameters()}
    for n, s in shadow.items():
        s.mul_(0.5).add_(dict(net.named_parameters())[n].data, alpha=2.0)
    for s, p in zip(shadow.values(), net.parameters()):
        s.lerp_(p.data, 0.5)
    fisher = {n: torch.zeros_like(p) for n, p in net.named_parameters()}
    for (n, f), p in zip(fisher.items(), net.parameters()):
        f += p.data ** 2
    kept = OrderedDict(net.named_parameters())
    with torch.no_grad():
        kept["bias"].mul_(2).add_(3, alpha=2)
    held = SimpleNamespace(t=torch.ones(2), u=[torch.ones(2)])
    held.u[0].add_(1)
    vars(held)["t"].mul_(3)
    tensors = [*shadow.values(), *fisher.values(), net.bias.data, held.t, held.u[0]]
    return [tensor.tolist() for tensor in tensors]
"""


def test_tensors_of_dictionaries_and_namespaces_are_changed(tmp_path: Path) -> None:
    """An average of weights, Fisher's information, parameters by name."""
    port, report = converted(tmp_path, {"run.py": DICTIONARIES})
    assert not report.needs_action
    of_torch, of_port = run_both(tmp_path, port, "import json, run; print(json.dumps(run.told()))")
    assert of_port == of_torch

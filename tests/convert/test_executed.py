"""Ports that run: the same numbers as torch, forward and gradient, from the same weights."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.convert.support import converted, run_original, run_port
from tests.warm_python import run_python

pytest.importorskip("torch")
pytest.importorskip("mindspore")

_HEAD = "import math\nimport torch\nfrom torch import nn, Tensor\nimport torch.nn.functional as F\n"
_TORCH = """
import json, sys, numpy, torch

def run(net, train, folder):
    torch.manual_seed(0)
    model = net.Net().train(train)
    for name, value in [*model.named_parameters(), *model.named_buffers()]:
        if value.is_floating_point():
            value.data += torch.linspace(-0.1, 0.1, value.numel()).reshape(value.shape) + 0.05
    state = model.state_dict()
    numpy.savez(WEIGHTS, **{name: value.detach().numpy() for name, value in state.items()})
    x = torch.tensor(numpy.load(INPUT), requires_grad=True)
    y = model(x)
    y.square().sum().backward()
    gradients = {name: value.grad.tolist() for name, value in model.named_parameters()}
    return [y.tolist(), x.grad.tolist(), gradients]
"""
_MINDSPORE = """
import json, sys, numpy, mindspore as ms
other = {"gamma": "weight", "beta": "bias", "embedding_table": "weight", "w": "weight",
         "moving_mean": "running_mean", "moving_variance": "running_var"}

def run(net, train, folder):
    model = net.Net()
    model.set_train(train)
    values = numpy.load(WEIGHTS)
    own = dict(model.parameters_and_names())
    names = {}
    for name, parameter in own.items():
        head, _, last = name.rpartition(".")
        found = name if name in values else f"{head}.{other.get(last, last)}".lstrip(".")
        names[name] = found
        parameter.set_data(ms.Tensor(values[found].reshape(parameter.shape)))
    for path, cell in model.cells_and_names():
        for name, buffer in cell._buffers.items():
            if buffer is not None:
                cell._buffers[name] = ms.Tensor(values[f"{path}.{name}".lstrip(".")])
    x = ms.Tensor(numpy.load(INPUT))
    weights = model.trainable_params()
    def loss(x):
        y = model(x)
        return (y * y).sum(), y
    (_, y), (given, learnt) = ms.value_and_grad(loss, 0, weights, has_aux=True)(x) if weights else (
        loss(x), (ms.grad(lambda x: loss(x)[0])(x), []))
    paths = {id(parameter): names[name] for name, parameter in own.items()}
    gradients = {paths[id(p)]: g.asnumpy().tolist() for p, g in zip(weights, learnt)}
    return [y.asnumpy().tolist(), given.asnumpy().tolist(), gradients]
"""
#: Runs every network in one process, which takes as long to start as all of them to run.
_ALL = """
import importlib, traceback
for name in NAMES:
    folder = f"{FOLDER}/{name}"
    sys.path.insert(0, folder)
    for module in ("net", "torch_semantics"):
        sys.modules.pop(module, None)
    for train in (True, False):
        try:
            result = run(importlib.import_module("net"), train, folder)
        except Exception:
            result = traceback.format_exc(limit=-6)
        print(json.dumps([name, train, result]), flush=True)
"""


NETWORKS = {
    "settings that are set after the layers are made": """
def widen(module):
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.eps = 0.5

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.conv.stride = (2, 2)
        self.norm = nn.BatchNorm2d(4)
        self.pool = nn.MaxPool2d(2)
        setattr(self.pool, "stride", 1)
        widen(self)

    def forward(self, x):
        return self.pool(self.norm(self.conv(x)))
""",
    "settings that MindSpore's own layers are told": """
def soften(module: nn.Module, eps):
    for part in module.modules():
        if isinstance(part, (nn.BatchNorm2d, nn.LayerNorm)):
            setattr(part, "eps", eps)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.Dropout(0.5))
        start = 3
        for part in self.body:
            if isinstance(part, nn.Conv2d):
                part.padding = start // 2 + 1
                part.dilation = (2, 1)
            elif isinstance(part, nn.Dropout):
                part.p = 0.0
        self.norm = nn.LayerNorm(8)
        self.groups = nn.GroupNorm(1, 4)
        self.groups.eps = 0.25
        self.conv = nn.Conv2d(4, 4, 1)
        self.conv.stride = 2
        self.body[1].momentum = 0.5
        soften(self, 0.5)

    def forward(self, x):
        y = self.body(x)
        mean = self.body[1].running_mean.detach().clone()
        y = self.norm(self.conv(self.groups(y))[..., :4].flatten(2)[..., :8])
        return y + mean.view(1, 4, 1)
""",
    "layers that answer to both names": """
class Own(nn.BatchNorm2d):
    def forward(self, x):
        return super().forward(x) * self.weight[None, :, None, None]

class Pair(nn.Sequential):
    def __init__(self, c: int, device=None, dtype=None):
        dd = {'device': device, 'dtype': dtype}
        super().__init__()
        self.add_module('c', nn.Conv2d(3, c, 1, groups=3, bias=False, **dd))
        self.add_module('bn', nn.BatchNorm2d(c, **dd))
        nn.init.constant_(self.bn.weight, 0.5)

    def scale(self):
        c, bn = self._modules.values()
        return bn.weight.sum() * c.groups + c.weight.sum()

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList([Own(3), nn.BatchNorm2d(3)])
        self.pair = Pair(3)

    def forward(self, x):
        y = x = self.pair(x) * self.pair.scale()
        for norm in self.norms:
            if isinstance(norm, nn.BatchNorm2d):
                y = y + norm(x) * norm.weight.sum() + norm.running_mean.sum()
        n = x.shape[2]
        y = F.pad(y, (0, n % 3, 1, 1))
        return y + torch.arange(y.shape[3]) * torch.arange(1, 3, 2).sum()
""",
    "norms of several axes, written out and by name": """
class Net(nn.Module):
    def __init__(self, shape=(3, 6, 6)):
        super().__init__()
        self.first = nn.LayerNorm((6, 6), eps=1e-3)
        self.second = nn.LayerNorm(shape)

    def forward(self, x):
        return self.second(torch.tanh(self.first(x)))
""",
    "relu in place, its value dropped": """
class Net(nn.Module):
    def forward(self, x):
        x = x * 2
        F.relu(x, inplace=True)
        return x
""",
    "containers that begin empty": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList()
        for _ in range(2):
            self.layers.append(nn.Conv2d(3, 3, 1))
        self.heads = nn.ModuleDict()
        self.heads["a"] = nn.Conv2d(3, 3, 1)
        self.shortcut = nn.Sequential()

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x)
        return self.heads["a"](x) + self.shortcut(x)
""",
    "an empty shortcut alone": """
class Net(nn.Module):
    def __init__(self, narrows=False):
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 1)
        self.shortcut = nn.Sequential()
        if narrows:
            self.shortcut = nn.Sequential(nn.Conv2d(3, 3, 1))

    def forward(self, x):
        return self.conv(x) + self.shortcut(x)
""",
    "lists from generators and tuples": """
class Net(nn.Module):
    def __init__(self, more=(nn.Tanh(),)):
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv2d(3, 3, 1) for _ in range(2))
        self.more = nn.ModuleList(more)

    def forward(self, x):
        for layer in [*self.layers, *self.more]:
            x = layer(x)
        return x
""",
    "children by their names": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential()
        self.features.add_module("conv", nn.Conv2d(3, 4, 1))
        self.features.add_module("pool", nn.MaxPool2d(2))
        self.parts = nn.ModuleList([nn.ModuleDict({"a": nn.Conv2d(4, 3, 1)})])
        self.parts.extend(nn.ModuleDict({"a": nn.Conv2d(3, 3, 1)}) for _ in range(2))

    def forward(self, x):
        x = self.features(x)
        for part in self.parts:
            x = part["a"](x)
        return x
""",
    "layers by the names of their arguments": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(6, 6)])
        self.act = nn.ReLU()
        self.loss = nn.SmoothL1Loss(reduction="none")
        layer = nn.TransformerEncoderLayer(6, 2, 8, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=1)

    def forward(self, x):
        for layer in self.layers:
            x = layer(input=x)
        mask = torch.triu(torch.full((6, 6), float("-inf")), diagonal=1)
        y = self.encoder(x[:, 0], mask=mask) + self.encoder(src=x[:, 1])
        return self.act(input=y) + self.loss(target=y.detach() * 0.5, input=y)
""",
    "the names of parameters": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 6)
        self.norm = nn.LayerNorm(6)

    def forward(self, x):
        kept = [n for n, _ in self.named_parameters() if n.endswith(("norm.weight", ".bias"))]
        return self.norm(self.fc(x)) * len(kept)
""",
    "a private base of norms": """
from torch.nn.modules.batchnorm import _BatchNorm

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm2d(3)

    def forward(self, x):
        return self.norm(x) * (2 if isinstance(self.norm, _BatchNorm) else 1)
""",
    "sparse matrices": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(6, 4))

    def forward(self, x):
        places = torch.tensor([[0, 1, 5, 1], [2, 0, 5, 0]])
        links = torch.sparse_coo_tensor(places, torch.ones(4), (6, 6)).coalesce()
        return torch.spmm(links, x[0, 0]) @ self.weight + torch.sparse.mm(links, self.weight)
""",
    "bags from offsets": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.bags = nn.EmbeddingBag(9, 6, mode="sum", padding_idx=3)

    def forward(self, x):
        words, offsets = torch.tensor([1, 2, 4, 3, 8, 8]), torch.tensor([0, 2, 2, 3, 5, 5])
        return x + self.bags(words, offsets) + self.bags(words.reshape(1, 6))
""",
    "positions from numpy": """
import numpy as np

class Net(nn.Module):
    def forward(self, x):
        order = np.argsort(np.array([3, 1, 2]))
        rows, columns = np.array([0, 1]), np.array([1, 2])
        count = np.prod((1, 2))
        y = x[:, order].sum() + x[rows, columns].sum() + x[:, :count].mean()
        for k in np.array([2, 0]):
            y = y + x[:, k].sum() * 2
        return x[:, order[:2]] + y + x[range(2), range(2)].mean()
""",
    "layers derived from torch's private bases": """
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.modules.loss import _Loss

class Dice(_Loss):
    def __init__(self, smooth=1.0, reduction="mean"):
        super().__init__(reduction=reduction)
        self.smooth = smooth

    def forward(self, x):
        p = torch.sigmoid(x)
        loss = 1 - (2 * p.sum(1) + self.smooth) / (p.sum(1) + self.smooth + 9)
        return loss.mean() if self.reduction == "mean" else loss.sum()

class Frozen(_BatchNorm):
    def forward(self, x):
        mean, var = self.running_mean, self.running_var
        return F.batch_norm(x, mean, var, self.weight, self.bias, False, 0.0, self.eps) * 2

class Scaled(_DropoutNd):
    def forward(self, x):
        return x * (1 + self.p)

class Weighted(nn.modules.loss._WeightedLoss):
    def forward(self, x):
        return (x * self.weight).sum()

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.scaled, self.dice = Frozen(3), Scaled(0.25), Dice(reduction="sum")
        self.weighted = Weighted(torch.tensor([1.0, 2.0, 3.0]).reshape(3, 1, 1))

    def forward(self, x):
        x = self.scaled(self.norm(x))
        return self.dice(x.flatten(1)) + x + self.weighted(x)
""",
    "a network that asks whether its input needs a gradient": """
class Net(nn.Module):
    def forward(self, x):
        needs, y = x.requires_grad, x * 3
        rounded = torch.round(y)
        if needs and y.requires_grad and not rounded.detach().requires_grad:
            rounded = y + (rounded - y).detach()
        return rounded
""",
    "parts of weights that functions write": """
def fill(part, value):
    nn.init.constant_(part, value)
    return part


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rows = nn.Embedding(6, 6)
        start = {"ones": nn.init.ones_, "zeros": nn.init.zeros_}
        start["ones"](self.rows.weight)
        start["zeros"](self.rows.weight[1])
        fill(self.rows.weight[2:4][1], 3)
        fill(self.rows.weight.detach()[torch.tensor([4])], 9)

    def forward(self, x):
        return x * self.rows.weight.sum(1).detach() + self.rows.weight.sum()
""",
    "buffers that are assigned": """
class Net(nn.Module):
    def __init__(self, dtype=None):
        super().__init__()
        self.steps = nn.Buffer(
            torch.ones(6).cumsum(0),  # kept
        )
        self.scale = torch.nn.parameter.Buffer(torch.tensor(2.0, dtype=dtype), persistent=True)
        self.layer = nn.Linear(6, 6)
        self.steps = self.steps * 2

    def forward(self, x):
        names = [name for name, _ in self.named_buffers()] + list(self.state_dict())
        return self.layer(x) * self.scale + self.steps * len(names)
""",
    "weights of losses are buffers, and stand for all elements": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 6)
        self.entropy = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 0.5]))
        self.binary = nn.BCELoss(torch.arange(1.0, 7.0), reduction="sum")
        self.logits = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(2.0))
        self.margin = nn.MultiMarginLoss(weight=torch.ones(6))

    def forward(self, x):
        y = self.layer(x)
        target = (x > 0).float()
        losses = self.binary(y.sigmoid(), target) + self.logits(y, target)
        losses = losses + F.binary_cross_entropy(y.sigmoid(), target, weight=torch.tensor([[3.0]]))
        losses = losses + self.entropy(y, torch.ones(2, 6, 6, dtype=torch.long))
        names = [name for name, _ in self.named_buffers()] + list(self.state_dict())
        return y * len(names) + losses
""",
    "numbers of numpy's beside tensors": """
import numpy as np


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.scale = nn.Linear(6, 6), 1 / np.sqrt(6)

    def forward(self, x):
        return np.sqrt(2) * self.layer(self.scale * x) + np.cos(1.0) * x
""",
    "casts to whole numbers and booleans have no gradient": """
class Net(nn.Module):
    def forward(self, x):
        x = x * 3
        whole, kind = x.long(), torch.int32
        part = x - whole.float()
        y = part * 2 + x.to(torch.int64) * 0.5 + x.type(torch.IntTensor) + x.to(kind) * 2
        y = y + x.bool().to(x) + x.int().type_as(x) + (x > 0).long() * x
        corner = torch.floor(x).long()
        filled = torch.zeros_like(x)
        filled += x
        y = y + filled.long().float()
        y = y + x.type_as(torch.tensor(1)) * 2 + x.type_as(y)
        return y + x.to("cpu", torch.bool).float() + (x - corner) ** 2
""",
    "lists of modules that hold None": """
class Net(nn.Module):
    def __init__(self, extra=None, width=None):
        super().__init__()
        make = lambda i: nn.Linear(6, 6) if i else None
        self.layers = nn.ModuleList([])
        for i in range(2):
            last = nn.Linear(6, 6) if i else None
            self.layers.append(nn.ModuleList([nn.Linear(6, 6), last]))
        self.made = nn.ModuleList([make(i) for i in range(2)])
        self.given = nn.ModuleList([extra])
        self.named = nn.ModuleDict({"a": nn.Linear(6, 6), "b": extra})

    def forward(self, x):
        for first, last in self.layers:
            x = first(x)
            if last is not None:
                x = last(x)
        for layer in [*self.made, *self.given, *self.named.values()]:
            x = x if layer is None else layer(x)
        return x
""",
    "layers in place, their input read again": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.ReLU(inplace=True)

    def forward(self, x):
        x = x * 2
        y = self.act(x)
        z = x + 1
        self.act(z)
        w = F.leaky_relu(z - 2, 0.1, inplace=True)
        return x + y + z + w
""",
    "cross entropies of several sizes, of targets made of the input": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.criterion = nn.BCEWithLogitsLoss()

    def forward(self, x):
        first = F.binary_cross_entropy_with_logits(x[:1], torch.ones_like(x[:1]))
        second = F.binary_cross_entropy_with_logits(x, torch.zeros_like(x))
        return torch.stack([first, second, self.criterion(x[:, :2], (x[:, :2] > 0).float())])
""",
    "a bias that is partly zeroed": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.ones(6))

    def forward(self, x):
        bias = self.bias.clone()
        bias[2:4].zero_()
        return x + bias
""",
    "the greatest and its place": """
class Net(nn.Module):
    def forward(self, x):
        best = x.max(dim=1, keepdim=True)
        values, places = torch.topk(x.flatten(1), 2)
        return best.values * best.indices + best[0] + values.sum() + places.float().mean()
""",
    "layers passed around": """
from functools import partial

class LayerNorm2d(nn.LayerNorm):
    def forward(self, x: Tensor) -> Tensor:
        x = x.permute(0, 2, 3, 1)
        x = F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)
        return x.permute(0, 3, 1, 2)

class Block(nn.Sequential):
    def __init__(self, width, norm, act=nn.ReLU):
        convolution = nn.Conv2d(3, width, 3, padding=1, bias=False)
        super().__init__(convolution, norm(width), act(inplace=True))
        self.out_channels = width

class Net(nn.Module):
    def __init__(self, norm=partial(LayerNorm2d, eps=1e-3)):
        super().__init__()
        self.block = Block(4, norm)
        self.head = nn.ModuleList([nn.Conv2d(self.block[0].out_channels, 3, 1) for _ in range(2)])
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out")
                if m.bias is not None:
                    nn.init.zeros_(m.bias)

    def forward(self, x):
        x = self.block(x)
        return sum(head(x) for head in self.head)
""",
    "statistics of a batch": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm2d(3, momentum=0.2)
        self.register_buffer("scale", torch.full((1, 3, 1, 1), 2.0))

    def forward(self, x):
        return self.bn(x) * self.scale + self.bn.running_mean.sum()
""",
    "steps along two axes": """
class Net(nn.Module):
    def forward(self, x):
        return torch.cat([x[:, :, 0::2, 0::2], x[..., 1::2, 1::2]], dim=1)
""",
    "steps along an inner axis": """
class Net(nn.Module):
    def forward(self, x):
        y = x * 1
        y[:, 1, ::2] = x[:, 0, 1::2] * 2
        y[..., ::3, 1:] *= 3
        return y[:, ::2, None].sum() + y[None, :, 1:, ::2].square().mean() + x[..., ::2, :]
""",
    "helpers that know nothing of what they are given": """
import numpy as np

def turned(t):
    return t.flip(0) if t.device.type == "cpu" else t

class Net(nn.Module):
    def forward(self, x):
        return turned(x) * np.pi
""",
    "numbers as they are written": """
class Net(nn.Module):
    def forward(self, x):
        counts = torch.tensor([0, 0])
        seen = counts
        counts[0] = 3
        counts += 1
        share = torch.tensor([1, 2], dtype=torch.double).sum() / torch.tensor(7)
        kept = torch.tensor([[True], [False]]).float().mean()
        y = x * seen.sum() / torch.tensor(4) + x * torch.tensor(-1.5) * share.float() + kept
        return y if counts.dtype is torch.int64 else x
""",
    "tensors of tensors have no gradient": """
class Net(nn.Module):
    def forward(self, x):
        y = torch.tensor([v.item() for v in x[0, 0, 0]]) + torch.tensor([v for v in x[0, 0, 1]])
        return x * y * torch.tensor(x.sum()) + torch.as_tensor(x)
""",
    "whole numbers of the file": """
steps = torch.arange(6)
low, high = torch.tensor([1, 2]), 3

class Net(nn.Module):
    def forward(self, x):
        return x * torch.exp(-steps / 10) + torch.log(steps + 1) + torch.sin(low).sum() * high
""",
    "decompositions": """
class Net(nn.Module):
    def forward(self, x):
        a = x[0, 0] @ x[0, 0].T + 3 * torch.eye(6)
        values, vectors = torch.linalg.eigh(a)
        q, r = torch.linalg.qr(x[0, 1])
        half = torch.linalg.cholesky(a)
        return half + q @ r.sin() + vectors @ torch.diag(values.sqrt()) @ vectors.T
""",
    "a function that is set up apart": """
class LinearFunction(torch.autograd.Function):
    @staticmethod
    def forward(input, weight, bias):
        output = input.mm(weight.t())
        if bias is not None:
            output += bias.unsqueeze(0).expand_as(output)
        return output
    @staticmethod
    def setup_context(ctx, inputs, output):
        input, weight, bias = inputs
        ctx.save_for_backward(input, weight, bias)
    @staticmethod
    def backward(ctx, grad_output):
        input, weight, bias = ctx.saved_tensors
        grad_input = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_input = grad_output.mm(weight)
        if ctx.needs_input_grad[1]:
            grad_weight = grad_output.t().mm(input)
        if bias is not None and ctx.needs_input_grad[2]:
            grad_bias = grad_output.sum(0)
        return grad_input, grad_weight, grad_bias
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(4, 6))
        self.bias = nn.Parameter(torch.empty(4))
        nn.init.uniform_(self.weight, -0.1, 0.1)
        nn.init.uniform_(self.bias, -0.1, 0.1)
    def forward(self, x):
        y = LinearFunction.apply(x[0, 0], self.weight, self.bias)
        return y + LinearFunction.apply(x[0, 1], self.weight, None)
""",
    "a gradient of its own": """
class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * ctx.factor * 3 + 0 * x, None

class Net(nn.Module):
    def forward(self, x):
        return Twice.apply(x, 2.0)
""",
    "attention": """
class Net(nn.Module):
    def __init__(self, dim=6, heads=2):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.drop = nn.Dropout(0.0)

    def forward(self, x):
        x = x.flatten(1, 2)
        b, n, c = x.shape
        qkv = self.qkv(x).reshape(b, n, 3, self.heads, c // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        mask = torch.ones(n, n, dtype=torch.bool, device=x.device).tril(diagonal=0)
        a = (q @ k.transpose(-2, -1)) * (c // self.heads) ** -0.5
        a = self.drop(a.masked_fill(~mask, float("-inf")).softmax(dim=-1))
        f = F.scaled_dot_product_attention(
            q, k, v,
            attn_mask=mask,
            dropout_p=self.drop.p if self.training else 0.,
        )
        return (a @ v + f).transpose(1, 2).reshape(b, n, c)
""",
    "a mixin with forward": """
class Doubled:
    def forward(self, x):
        return self.inner(x) * 2

class Net(Doubled, nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(6, 2)
""",
    "a method kept as an attribute": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = F.gelu
        self.acts = {"silu": F.silu, "tanh": torch.tanh}

    def forward(self, x):
        return self.acts["silu"](self.act(x)) + self.acts["tanh"](x)
""",
    "a weight that is computed from another": """
class Scaled:
    def __call__(self, module, inputs):
        module.weight = module.weight_orig * 2

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 4)
        weight = self.layer._parameters["weight"]
        del self.layer._parameters["weight"]
        self.layer.register_parameter("weight_orig", nn.Parameter(weight.data))
        self.layer.register_forward_pre_hook(Scaled())

    def forward(self, x):
        assert sorted(self.layer._parameters) == ["bias", "weight_orig"]
        return self.layer(x)
""",
    "names that no Parameter may have": """
Tensor = torch.cuda.FloatTensor if torch.cuda.is_available() else torch.Tensor

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential()
        self.main.add_module("initial:linear {0}-{1}".format(6, 4), nn.Linear(6, 4))
        self.main.add_module("pyramid:norm", nn.LayerNorm(4))

    def forward(self, x):
        return self.main(x) + Tensor(2, 3, 6, 4).fill_(1)
""",
    "values in place under no_grad": """
def start_(tensor, low, high):
    with torch.no_grad():
        tensor.fill_(low)
        tensor.mul_(2).add_(high)
        return tensor

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.zeros(6))
        start_(self.w, 1.0, 3.0)
        self.b = nn.Parameter(torch.empty(6))
        self.reset()

    @torch.no_grad()
    def reset(self):
        self.b.data.fill_(0.5)
        bound = 1 / math.sqrt(self.w.shape[0])
        self.b.clamp_(-bound, bound)

    def forward(self, x):
        return x * self.w + self.b
""",
}


def _agree(one: object, other: object) -> None:
    if isinstance(one, dict) and isinstance(other, dict):
        assert one.keys() == other.keys()
        for name in one:
            _agree(one[name], other[name])
        return
    a, b = np.array(one), np.array(other)
    assert a.shape == b.shape
    np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)


Results = dict[tuple[str, bool], Any]


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Results, Results]:
    """The report of each network's conversion, and what torch and MindSpore compute of it."""
    root = tmp_path_factory.mktemp("networks")
    names = {f"net_{number}": name for number, name in enumerate(NETWORKS)}
    ports, originals, reports = root / "ports", root / "originals", {}
    for module, name in names.items():
        port, reports[name] = converted(root / module, {"net.py": _HEAD + NETWORKS[name]})
        shutil.copytree(port, ports / module)
        shutil.copytree(root / module / "original", originals / module)
    np.save(root / "x.npy", np.random.default_rng(0).normal(size=(2, 3, 6, 6)).astype("f4"))
    found = [
        _results(root, folder, framework, code, names)
        for folder, framework, code in (
            (originals, "torch", _TORCH),
            (ports, "mindspore", _MINDSPORE),
        )
    ]
    return reports, found[0], found[1]


def _results(root: Path, folder: Path, framework: str, code: str, names: dict[str, str]) -> Results:
    whole = f"FOLDER = {str(folder)!r}\nINPUT = {str(root / 'x.npy')!r}\nNAMES = {list(names)}\n"
    whole += code.replace("WEIGHTS", "WEIGHTS.format(folder.rpartition('/')[2], train)") + _ALL
    whole = f"WEIGHTS = {str(root / '{}_{}.npz')!r}\n" + whole
    done = run_python(whole, cwd=folder, imported=[framework])
    assert done.returncode == 0, done.stderr[-3000:]
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('["net_')]
    return {(names[module], train): result for module, train, result in rows}


@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize("name", NETWORKS)
def test_a_port_computes_what_torch_computes(
    name: str, train: bool, executed: tuple[dict[str, Any], Results, Results]
) -> None:
    reports, expected, found = executed
    report = reports[name]
    assert not report.needs_action, [finding.message for finding in report.findings]
    assert isinstance(expected[name, train], list), expected[name, train]
    assert isinstance(found[name, train], list), found[name, train]
    for one, other in zip(found[name, train], expected[name, train], strict=True):
        _agree(one, other)


LEAVES = """
import torch

W, b = torch.ones(3, requires_grad=True), torch.zeros(1, requires_grad=True)
params = [torch.ones(2, requires_grad=True), torch.ones(1, requires_grad=True)]
more = [torch.full((2,), float(i), requires_grad=True) for i in range(2)]
held = {"a": torch.ones(1, requires_grad=True)}


def make():
    return torch.ones(2, requires_grad=True)


def gradient(w):
    (w * 5).sum().backward()
    return w.grad


q = make()
loss = ((W * 2).sum() + b).sum() + (held["a"] * 4).sum() + (q * 6).sum()
loss = loss + sum((p ** 2).sum() for p in params) + sum((p * 3).sum() for p in more)
loss.backward()
print([p.grad.tolist() for p in [W, b, q, held["a"], *params, *more]])
print(gradient(torch.ones(3, requires_grad=True)).tolist())
"""


def test_leaves_that_are_held_returned_or_passed_on_have_gradients(tmp_path: Path) -> None:
    port, report = converted(tmp_path, {"net.py": LEAVES})
    assert {finding.code for finding in report.findings} <= {"eager-training"}
    assert run_port(port, "import net") == run_original(tmp_path, "import net")

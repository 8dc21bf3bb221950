"""Trainings in which nothing is wrong: no finding may claim more than 5 % of the step."""

from __future__ import annotations

_HEAD = """\
import torch
from torch import nn
torch.manual_seed(0)
torch.set_num_threads(1)
net = {network}
optimizer = torch.optim.{optimizer}
data = torch.utils.data.TensorDataset(torch.randn(64, {shape}), torch.randint(0, 4, (64,)))
loader = torch.utils.data.DataLoader(data, {batch}, shuffle=True)
loss_of = nn.CrossEntropyLoss()
number = 0
while number < 24:
    for x, y in loader:
        optimizer.zero_grad()
        loss_of(net(x), y).backward()
        optimizer.step()
        number += 1
"""
_MLP = "nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 4))"
_DEEP = (
    "nn.Sequential(*[nn.Sequential(nn.Linear(512, 512), nn.GELU()) for _ in range(8)], "
    "nn.Linear(512, 4))"
)
_CONV = (
    "nn.Sequential(nn.Conv2d(3, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3, 2), nn.BatchNorm2d(64), "
    "nn.ReLU(), nn.Flatten(), nn.LazyLinear(4))"
)
_POOLED = (
    "nn.Sequential(nn.Conv2d(3, 48, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), "
    "nn.Conv2d(48, 96, 3), nn.ReLU(), nn.AvgPool2d(4), nn.Flatten(), nn.LazyLinear(4))"
)
_NORM = "nn.Sequential(nn.Linear(512, 1024), nn.LayerNorm(1024), nn.Tanh(), nn.Linear(1024, 4))"
_ATTENTION = (
    "nn.Sequential(nn.TransformerEncoderLayer(256, 4, 512, batch_first=True), nn.Flatten(), "
    "nn.LazyLinear(4))"
)
_SGD, _MOMENTUM = "SGD(net.parameters(), 0.01)", "SGD(net.parameters(), 0.01, momentum=0.9)"
_ADAM = "Adam(net.parameters(), 1e-3)"
_LAZY = "\nnet(torch.randn(2, {shape}))"

_RUNS = (
    ("MLP, SGD", _MLP, _SGD, "512", 64),
    ("MLP, momentum", _MLP, _MOMENTUM, "512", 64),
    ("deep MLP", _DEEP, _SGD, "512", 64),
    ("deep MLP, small batches", _DEEP, _SGD, "512", 32),
    ("MLP with norm", _NORM, _SGD, "512", 64),
    ("convolutions", _CONV, _SGD, "3, 40, 40", 16),
    ("convolutions, momentum", _CONV, _MOMENTUM, "3, 40, 40", 32),
    ("convolutions, Adam", _CONV, _ADAM, "3, 32, 32", 32),
    ("pooling", _POOLED, _SGD, "3, 48, 48", 16),
    ("pooling, Adam", _POOLED, _ADAM, "3, 48, 48", 32),
    ("transformer", _ATTENTION, _SGD, "32, 256", 16),
    ("transformer, long", _ATTENTION, _SGD, "96, 256", 8),
    ("large images", _POOLED, _SGD, "3, 96, 96", 8),
    ("wide convolutions", _CONV, _SGD, "3, 64, 64", 16),
    ("transformer, momentum", _ATTENTION, _MOMENTUM, "64, 256", 16),
)


def healthy() -> tuple[tuple[str, str], ...]:
    """Names and scripts."""
    found = []
    for name, network, optimizer, shape, batch in _RUNS:
        text = _HEAD.format(network=network, optimizer=optimizer, shape=shape, batch=batch)
        if "Lazy" in network:
            text = text.replace("\noptimizer =", _LAZY.format(shape=shape) + "\noptimizer =")
        found.append((name, text))
    return tuple(found)

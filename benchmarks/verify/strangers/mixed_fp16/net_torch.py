"""An MLP with a half-precision trunk and a float32 head."""

import torch
from torch import nn
from torch.nn import functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(20, 32)
        self.norm = nn.LayerNorm(32)
        self.a = nn.Linear(32, 64).half()
        self.b = nn.Linear(64, 32).half()
        self.head = nn.Linear(32, 5)

    def forward(self, x):
        x = self.norm(self.inp(x))
        h = F.relu(self.a(x.half()))
        x = x + self.b(h).float()
        return self.head(x)


def build():
    return Net()


def loss(y, t):
    return F.cross_entropy(y, t)


def optimizer(model):
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

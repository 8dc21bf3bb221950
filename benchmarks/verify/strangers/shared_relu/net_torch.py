"""A VGG with one ReLU and one pool used everywhere, a tied autoencoder and a shared block."""

import torch
from torch import nn
from torch.nn import functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(2, 2, ceil_mode=False)
        self.c1 = nn.Conv2d(1, 6, 3, padding=1)
        self.c2 = nn.Conv2d(6, 6, 3, padding=1)
        self.c3 = nn.Conv2d(6, 6, 3, padding=1)
        self.refine = nn.Sequential(nn.Linear(54, 54), nn.ReLU(), nn.LayerNorm(54))
        self.enc = nn.Linear(54, 10, bias=False)
        self.bias = nn.Parameter(torch.zeros(54))

    def forward(self, x):
        x = self.pool(self.relu(self.c1(x)))
        x = self.pool(self.relu(self.c2(x)))
        x = self.relu(self.c3(x)).flatten(1)
        for _ in range(3):
            x = x + self.refine(x)
        z = self.relu(self.enc(x))
        return F.linear(z, self.enc.weight.t(), self.bias), z


def build():
    return Net()


def loss(out, target):
    y, z = out
    return F.l1_loss(y, target) + 0.01 * z.abs().mean()


def optimizer(model):
    return torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-3)

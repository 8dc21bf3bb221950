"""A little WaveNet: causal dilated convolutions with gates and skip connections."""

import torch
from torch import nn
from torch.nn import functional as F


class CausalConv1d(nn.Conv1d):
    def __init__(self, i, o, k, dilation=1):
        super().__init__(i, o, k, dilation=dilation)
        self.left = (k - 1) * dilation

    def forward(self, x):
        return super().forward(F.pad(x, (self.left, 0)))


class Block(nn.Module):
    def __init__(self, c, s, dilation):
        super().__init__()
        self.filter = CausalConv1d(c, c, 2, dilation)
        self.gate = CausalConv1d(c, c, 2, dilation)
        self.res = nn.Conv1d(c, c, 1)
        self.skip = nn.Conv1d(c, s, 1)

    def forward(self, x):
        z = torch.tanh(self.filter(x)) * torch.sigmoid(self.gate(x))
        return x + self.res(z), self.skip(z)


class WaveNet(nn.Module):
    def __init__(self, bins=16, c=12, s=20):
        super().__init__()
        self.embed = nn.Embedding(bins, c)
        self.blocks = nn.ModuleList(Block(c, s, 2**i) for i in range(4))
        self.out1 = nn.Conv1d(s, s, 1)
        self.out2 = nn.Conv1d(s, bins, 1)

    def forward(self, x):
        x = self.embed(x).transpose(1, 2)
        total = 0
        for block in self.blocks:
            x, skip = block(x)
            total = total + skip
        return self.out2(F.relu(self.out1(F.relu(total))))


def build():
    return WaveNet()


def loss(logits, target):
    return F.cross_entropy(logits, target)


def optimizer(model):
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    return opt, torch.optim.lr_scheduler.StepLR(opt, 2, gamma=0.5)

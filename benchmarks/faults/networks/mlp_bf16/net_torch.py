"""The perceptron of ../mlp with activations rounded to bfloat16 after every layer."""

import torch
from torch import nn
from torch.nn import functional as F


def rounded(x):
    """Round to what bfloat16 holds, forwards and backwards."""
    return x.bfloat16().float()


class Linear(nn.Linear):
    """A linear layer with a bfloat16 result."""

    def forward(self, x):
        return rounded(super().forward(x))


class LayerNorm(nn.LayerNorm):
    """A normalisation with a bfloat16 result."""

    def forward(self, x):
        return rounded(super().forward(x))


class GELU(nn.GELU):
    """A GELU with a bfloat16 result."""

    def forward(self, x):
        return rounded(super().forward(x))


class LeakyReLU(nn.LeakyReLU):
    """A leaky ReLU with a bfloat16 result."""

    def forward(self, x):
        return rounded(super().forward(x))


class Block(nn.Module):
    """Normalise, widen, GELU, narrow, add."""

    def __init__(self, width, hidden):
        super().__init__()
        self.norm = LayerNorm(width)
        self.fc1 = Linear(width, hidden)
        self.act = GELU()
        self.fc2 = Linear(hidden, width)

    def forward(self, x):
        return rounded(x + self.fc2(self.act(self.fc1(self.norm(x)))))


class Gate(nn.Module):
    """A gated linear unit: the first half of the features passes through the second."""

    def __init__(self, width, out):
        super().__init__()
        self.proj = Linear(width, 2 * out)

    def forward(self, x):
        value, gate = self.proj(x).chunk(2, dim=-1)
        return rounded(value * rounded(torch.sigmoid(gate)))


class Surrogate(nn.Module):
    """Predict six quantities from five groups of eleven measurements."""

    def __init__(self, features=11, groups=5, width=20, hidden=44, out=6):
        super().__init__()
        self.embed = Linear(features, width)
        self.embed_act = LeakyReLU(0.1)
        self.blocks = nn.Sequential(Block(width, hidden), Block(width, hidden))
        self.norm = LayerNorm(width)
        self.gate = Gate(width, 14)
        self.dropout = nn.Dropout(0.1)
        self.head = Linear(28, out)

    def forward(self, x):
        x = self.embed_act(self.embed(x))
        x = self.gate(self.norm(self.blocks(x)))
        centre = rounded(x.mean(dim=1))
        spread = rounded((x - centre.unsqueeze(1)).abs().mean(dim=1))
        joined = torch.stack([centre, spread], dim=1).flatten(1)
        return self.head(self.dropout(joined))


def build():
    """Build the network with PyTorch's default initialisation."""
    return Surrogate()


def loss(output, target):
    """Return the mean squared error."""
    return F.mse_loss(output, target)


def optimizer(model):
    """Return AdamW, which decays no bias and no normalisation."""
    no_decay = ("bias", "norm.weight")
    named = list(model.named_parameters())
    groups = [
        {"params": [p for n, p in named if not n.endswith(no_decay)], "weight_decay": 0.05},
        {"params": [p for n, p in named if n.endswith(no_decay)], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=2e-3, betas=(0.9, 0.99), eps=1e-7)

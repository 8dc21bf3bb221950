"""A language model whose output layer is its table of embeddings (tied weights)."""

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Model(nn.Module):
    def __init__(self, words=23, width=16, layers=2):
        super().__init__()
        self.table = nn.Embedding(words, width)
        self.mix = nn.Conv1d(width, width, 3)
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens):
        x = self.table(tokens)
        x = x + self.mix(F.pad(x.transpose(1, 2), (2, 0))).transpose(1, 2)
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.table.weight)


def build():
    return Model()


def loss(logits, target):
    return F.cross_entropy(logits.flatten(0, 1), target.flatten())


def optimizer(model):
    return torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)

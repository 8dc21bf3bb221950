"""A GRU that reads a long sequence in chunks and carries its state from one to the next."""

import torch
from torch import nn
from torch.nn import functional as F


class Reader(nn.Module):
    def __init__(self, features=5, hidden=10, chunk=4):
        super().__init__()
        self.chunk = chunk
        self.gru = nn.GRU(features, hidden, batch_first=True)
        self.score = nn.Linear(hidden, 1)
        self.out = nn.Linear(hidden, 3)

    def forward(self, x):
        state, read = None, []
        for start in range(0, x.shape[1], self.chunk):
            y, state = self.gru(x[:, start : start + self.chunk], state)
            read.append(y)
        y = torch.cat(read, 1)
        weight = torch.softmax(self.score(torch.tanh(y)), 1)
        return self.out((weight * y).sum(1) + state[-1])


def build():
    return Reader()


def loss(output, target):
    return F.mse_loss(output, target)


def optimizer(model):
    return torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)

"""One optimizer of two networks, which a step reaches by a method."""

import torch
from torch import nn


class Pair:
    def __init__(self):
        self.a, self.b = nn.Sequential(nn.Linear(3, 4)), nn.Sequential(nn.Linear(4, 2))
        for net in (self.a, self.b):
            for p in net.parameters():
                p.data.fill_(0.1)
        self.optimizer = torch.optim.SGD([*self.a.parameters(), *self.b.parameters()], lr=0.1)

    def loss(self, x):
        return (self.b(self.a(x)) ** 2).mean()

    def step(self, x):
        self.optimizer.zero_grad()
        loss = self.loss(x)
        loss.backward()
        self.optimizer.step()
        return loss.item()


pair = Pair()
for k in range(3):
    print(pair.step(torch.ones(2, 3) * (k + 1)))

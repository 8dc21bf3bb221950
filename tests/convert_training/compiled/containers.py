"""Parameters in lists and dictionaries, whose elements learn in a compiled step."""

import torch
from torch import nn


class Listed(nn.Module):
    def __init__(self):
        super().__init__()
        self.rows = nn.ParameterList([nn.Parameter(torch.ones(2)), torch.ones(2)])
        for _ in range(2):
            self.rows.append(nn.Parameter(torch.ones(2)))

    def forward(self, x):
        for i, (one, other) in enumerate(zip(self.rows, self.rows[1:])):
            x = x * one * other * (i + 1)
        for i in range(len(self.rows)):
            x = x * self.rows[i]
        return x * torch.cat([row[:1] for row in self.rows[:2]]) * self.rows[-1]


class Named(nn.Module):
    def __init__(self):
        super().__init__()
        self.rows = nn.ParameterDict({"a": nn.Parameter(torch.ones(2))})
        self.rows["b"] = nn.Parameter(torch.ones(2))

    def forward(self, x):
        for name, row in self.rows.items():
            x = x * row * len(name)
        for name in ("a", "c"):
            if name in self.rows:
                x = x * self.rows[name]
        for name in self.rows:
            x = x + self.rows[name]
        return x


x = torch.cos(torch.arange(4.0)).view(2, 2)
for net in (Listed(), Named()):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.001)
    for _ in range(3):
        loss = net(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
    print(sum(p.abs().sum().item() for p in net.parameters()))

"""A network that returns a dictionary made by keywords."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def forward(self, x, y):
        logits = self.fc(x)
        loss = nn.functional.cross_entropy(logits, y)
        return dict(loss=loss, logits=logits)


net = Net()
for p in net.parameters():
    p.data.fill_(0.1)
opt = torch.optim.SGD(net.parameters(), lr=0.5)
for k in range(4):
    out = net(torch.ones(4, 3) * (k + 1), torch.zeros(4).long())
    loss = out["loss"]
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())

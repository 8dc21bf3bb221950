"""Rules with each of their settings, in one step that is compiled for each."""

import torch
from torch import nn


def step(model, optimizer, x, y):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


def rules(p):
    yield torch.optim.RMSprop(p, lr=0.01)
    yield torch.optim.RMSprop(p, 0.01, 0.9, 1e-3, weight_decay=0.1, momentum=0.8, centered=True)
    yield torch.optim.RMSprop(p, lr=0.02, centered=True, maximize=True)
    yield torch.optim.Adagrad(p, lr=0.05)
    yield torch.optim.Adagrad(p, 0.1, lr_decay=0.1, weight_decay=0.2, initial_accumulator_value=0.5)
    yield torch.optim.Adadelta(p, lr=0.5)
    yield torch.optim.Adadelta(p, 0.9, rho=0.8, eps=1e-4, weight_decay=0.1, maximize=True)
    yield torch.optim.Adamax(p)
    yield torch.optim.Adamax(p, lr=0.05, betas=(0.8, 0.95), weight_decay=0.1)


model = nn.Linear(4, 3)
for optimizer in rules(list(model.parameters())):
    for number, p in enumerate(model.parameters()):
        p.data.copy_(torch.cos(torch.arange(p.numel()).reshape(p.shape).float() + number) * 0.5)
    for k in range(5):
        x = torch.sin(torch.arange(32).reshape(8, 4).float() + k)
        print(step(model, optimizer, x, (torch.arange(8) + k) % 3).item())
    optimizer.param_groups[0]["lr"] = 0.001
    print(step(model, optimizer, x, torch.arange(8) % 3).item())
    for name, value in sorted(optimizer.state_dict()["state"][0].items()):
        print(float(value.sum()) if name != "step" else float(value))

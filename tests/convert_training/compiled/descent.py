"""Gradient descent without an optimizer, in three spellings; a rate that changes in each round."""

import torch
from torch import nn


def network():
    model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3))
    for number, p in enumerate(model.parameters()):
        values = torch.arange(p.numel()).reshape(p.shape).float()
        p.data.copy_(torch.cos(values * 0.7 + number) * 0.5)
    return model


loader = [
    (torch.sin(torch.arange(32).reshape(8, 4).float() + k), (torch.arange(8) + k) % 3)
    for k in range(4)
]
criterion = nn.CrossEntropyLoss()
rate = 0.5


def clipped(model):
    for x, y in loader:
        model.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-rate)
        print(loss.item())


def unrecorded(model, start):
    for number, (x, y) in enumerate(loader):
        lr = start / (1 + number)
        model.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= lr * p.grad
                p.grad.zero_()
        print(loss.item())


def guarded(model):
    for x, y in loader:
        model.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        for p in model.parameters():
            if p.grad is not None:
                p.data.sub_(0.3 * p.grad.data)
        print(loss.item())


for epoch in range(3):
    model = network()
    clipped(model)
    rate /= 2
    unrecorded(model, 0.4)
    guarded(model)

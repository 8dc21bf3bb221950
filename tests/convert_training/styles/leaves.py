"""Gradients of inputs, and a regression from nothing but tensors."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

rng = np.random.RandomState(0)
model = nn.Linear(4, 3)
with torch.no_grad():
    for p in model.parameters():
        p.copy_(torch.from_numpy(rng.standard_normal(tuple(p.shape)).astype(np.float32)))


def fgsm(model, data, target, epsilon):
    data.requires_grad = True
    loss = F.cross_entropy(model(data), target)
    model.zero_grad()
    loss.backward()
    data_grad = data.grad.data
    return torch.clamp(data + epsilon * data_grad.sign(), -1, 1), loss


data = torch.from_numpy(rng.uniform(-1, 1, (5, 4)).astype(np.float32))
changed, loss = fgsm(model, data, torch.tensor([0, 1, 2, 1, 0]), 0.1)
print(loss.item())
print(changed.sum().item())

w = torch.zeros(3, requires_grad=True)
b = torch.zeros(1, requires_grad=True)
x = torch.from_numpy(rng.standard_normal((8, 3)).astype(np.float32))
y = x @ torch.tensor([1.0, -2.0, 0.5]) + 0.3
for _ in range(5):
    error = ((x @ w + b - y) ** 2).mean()
    error.backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
        b -= 0.1 * b.grad
        w.grad.zero_()
        b.grad = None
    print(error.item())
print(w.detach().numpy().sum())

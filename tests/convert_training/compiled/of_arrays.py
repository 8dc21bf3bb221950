"""Loops whose batches are arrays of numpy's and lists, made tensors where they are used."""

import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(0)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
for i, p in enumerate(net.parameters()):
    p.data = 0.3 * torch.sin(torch.arange(p.numel()).reshape(p.shape) + i)
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for step in range(4):
    x = rng.normal(size=(16, 4)).astype(np.float32)
    optimizer.zero_grad()
    loss = (net(torch.from_numpy(x)) ** 2).mean()
    loss.backward()
    optimizer.step()
    print(loss.item())
for step in range(4):
    x = rng.normal(size=(16, 4)).astype(np.float32)
    y = [float(v) for v in x[:, 0]]
    optimizer.zero_grad()
    inputs = torch.from_numpy(x)
    targets = torch.tensor(y).unsqueeze(1)
    loss = nn.functional.mse_loss(net(inputs), targets)
    loss.backward()
    optimizer.step()
    print(loss.item())
X = rng.normal(size=(64, 4))
for step in range(4):
    i = rng.integers(0, 64, 8)
    optimizer.zero_grad()
    loss = (
        net(torch.FloatTensor(X[i])).pow(2).mean()
        + net(torch.as_tensor(X[i * 0], dtype=torch.float32)).mean()
    )
    loss.backward()
    optimizer.step()
    print(loss.item())
for k in range(4):
    loss = net(torch.tensor(X[k * 8 : k * 8 + 8]).float()).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
data = torch.from_numpy(rng.normal(size=(32, 4)).astype(np.float32))
weights = rng.uniform(size=8).astype(np.float32)
for step in range(8):
    w = weights[step]
    loss = net(data).pow(2).mean() * w
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
for step in range(4):
    x = rng.normal(size=(16, 4)).astype(np.float32)
    mask = np.abs(x[:, :1])
    pred = net(torch.from_numpy(x))
    loss = (pred * torch.from_numpy(mask)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
for step in range(4):
    x = rng.normal(size=(16, 4))
    x = torch.from_numpy(x.astype(np.float32))
    t = torch.Tensor(np.ones((16, 1)) * step)
    loss = nn.MSELoss()(net(x), t)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())

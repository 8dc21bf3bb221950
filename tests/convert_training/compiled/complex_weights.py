"""Weights that are complex: a layer in the frequency domain, by five optimizers."""

import torch
from torch import nn


class Spectral(nn.Module):
    def __init__(self):
        super().__init__()
        row = torch.arange(12.0).view(3, 4)
        self.weight = nn.Parameter(torch.complex(torch.sin(row), torch.cos(row)))
        self.bias = nn.Parameter(torch.zeros(3, 1))

    def ramp(self, count, device):
        return torch.linspace(0, 1, count).to(device)

    def forward(self, x):
        x = x + self.ramp(x.shape[1], x.device)
        waves = torch.fft.rfft(x) * self.weight
        return torch.fft.irfft(waves, n=6) + self.bias


def train(net, optimizer, xs):
    for x in xs:
        optimizer.zero_grad()
        loss = (net(x) - 1).pow(2).mean()
        loss.backward()
        optimizer.step()
        print(loss.item())


def train_in_pairs(net, optimizer, xs):
    for i, x in enumerate(xs):
        loss = (net(x) - 1).pow(2).mean() / 2
        loss.backward()
        if i % 2 == 1:
            optimizer.step()
            optimizer.zero_grad()
        print(loss.item())


xs = [torch.cos(torch.arange(18.0).view(3, 6) * k) for k in range(1, 5)]
net = Spectral()
train(net, torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9), xs)
net = Spectral()
adam = torch.optim.AdamW(net.parameters(), lr=0.1, weight_decay=0.1)
train(net, adam, xs)
print(adam.state_dict()["state"][0]["exp_avg"].abs().sum().item())
net = Spectral()
train(net, torch.optim.Adam(net.parameters(), lr=0.1, amsgrad=True), xs)
net = Spectral()
train(net, torch.optim.RMSprop(net.parameters(), lr=0.1), xs)
net = Spectral()
train_in_pairs(net, torch.optim.Adagrad(net.parameters(), lr=0.1), xs)

"""Gradients of their own: by an input, by the output, by a number, of two outputs."""

import torch
from torch import nn


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, slope):
        x = ctx.saved_tensors[0]
        s = torch.sigmoid(x)
        return 1.5 * slope * (s * (1 + x * (1 - s)))


class Reversed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x.view_as(x)

    @staticmethod
    def backward(ctx, slope):
        return -ctx.factor * slope, None


class Root(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = (x * x + 1).sqrt()
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, slope):
        x, y = ctx.saved_tensors
        return 2 * slope * x / y


class Both(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        ctx.shape = a.shape
        return a * b, a - b

    @staticmethod
    def backward(ctx, product, difference):
        a, b = ctx.saved_tensors
        return (product * b + difference).reshape(ctx.shape), None


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 5), nn.Linear(4, 5)
        self.last = nn.Linear(5, 3)

    def forward(self, x):
        root = Root.apply
        a = Swish.apply(self.first(x))
        b = Reversed.apply(self.second(x), 0.5)
        product, difference = Both.apply(a, root(b))
        return self.last(product + difference)


def main():
    model = Net()
    for number, p in enumerate(model.parameters()):
        values = torch.arange(p.numel()).reshape(p.shape).float()
        p.data.copy_(torch.cos(values * 0.7 + number) * 0.5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for k in range(6):
        x, y = torch.sin(torch.arange(32).reshape(8, 4).float() + k), (torch.arange(8) + k) % 3
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        print(loss.item())


main()

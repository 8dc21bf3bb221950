"""Functions with gradients of their own: a reversed gradient, a sign, a polynomial by hand."""

import torch
import torch.nn.functional as F
from torch import nn


class Rev(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, alpha):
        ctx.alpha = alpha
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.neg() * ctx.alpha, None


class STE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input):
        return torch.sign(input)

    @staticmethod
    def backward(ctx, grad_output):
        return F.hardtanh(grad_output)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(6, 8), nn.Tanh())
        self.a = nn.Linear(8, 3)
        self.d = nn.Linear(8, 2)

    def forward(self, x, alpha):
        h = self.f(x)
        return self.a(h + 0.1 * STE.apply(h)), self.d(Rev.apply(h, alpha))


net = Net()
with torch.no_grad():
    for i, p in enumerate(net.parameters()):
        p.copy_((torch.arange(p.numel(), dtype=torch.float32) * 0.7 + i).sin().view_as(p) * 0.3)
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
x = (torch.arange(60.0) * 0.37).cos().view(10, 6)
y, d = torch.arange(10) % 3, torch.arange(10) % 2
for step in range(12):
    net.train()
    a, b = net(x, step / 12)
    loss = F.cross_entropy(a, y) + F.cross_entropy(b, d)
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
    if step % 3 == 2:
        net.eval()
        with torch.no_grad():
            a, b = net(x, 0.0)
        print(loss.item())
        print((a.argmax(1) == y).float().mean().item())


class LegendrePolynomial3(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return 0.5 * (5 * input**3 - 3 * input)

    @staticmethod
    def backward(ctx, grad_output):
        (input,) = ctx.saved_tensors
        return grad_output * 1.5 * (5 * input**2 - 1)


lr = 5e-6
t_all = torch.linspace(-3.0, 3.0, 200)
wanted = torch.sin(t_all)
a = torch.full((), 0.1, requires_grad=True)
b = torch.full((), 0.2, requires_grad=True)
c = torch.full((), 0.3, requires_grad=True)
for t in range(30):
    P3 = LegendrePolynomial3.apply
    y_pred = a + b * P3(c * t_all)
    loss = (y_pred - wanted).pow(2).sum()
    if t % 10 == 9:
        print(loss.item())
    loss.backward()
    with torch.no_grad():
        a -= lr * a.grad
        b -= lr * b.grad
        c -= lr * c.grad
        a.grad = None
        b.grad = None
        c.grad = None
for number in (a, b, c):
    print(number.item())

"""Gradients and an optimizer's state by hand: scaled, cut, masked, summed up, written to."""

import torch
import torch.nn as nn
import torch.nn.functional as F


def numbers(*shape, seed=0):
    count = 1
    for size in shape:
        count *= size
    return (torch.arange(count, dtype=torch.float32) * 0.7137 + seed * 0.331).sin().reshape(shape)


x, y = numbers(6, 4), numbers(6, 2, seed=1)


def made():
    net = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2))
    for k, p in enumerate(net.parameters()):
        p.data.copy_(numbers(*p.shape, seed=k) * 0.4)
    return net


def graded():
    net = made()
    F.mse_loss(net(x), y).backward()
    return net


def total(net):
    return sum(
        (p.grad * numbers(*p.shape, seed=3)).sum().item()
        for p in net.parameters()
        if p.grad is not None
    )


def a():
    net = graded()
    for p in net.parameters():
        p.grad.data.mul_(0.5)
        p.grad.add_(p.data, alpha=0.1)
    return net


def b():
    net = graded()
    for p in net.parameters():
        g = p.grad
        g.mul_(2)
        g += 0.1 * p.detach()
    return net


def c():
    net = graded()
    for p in net.parameters():
        g = p.grad.data
        g.add_(p.data, alpha=0.01)
        g[0] = 0
    return net


def d():
    net = graded()
    net[0].weight.grad[0] = 0
    net[0].weight.grad[1:, 2] *= 3
    net[2].bias.grad.zero_()
    net[0].bias.grad = None
    return net


def e():
    net = graded()
    grads = [p.grad for p in net.parameters()]
    for g in grads:
        g.clamp_(-0.05, 0.05)
    return net


def f():
    net = graded()
    grads = [p.grad.detach() for p in net.parameters() if p.grad is not None]
    norm = torch.norm(torch.stack([torch.norm(g, 2.0) for g in grads]), 2.0)
    coef = torch.clamp(0.05 / (norm + 1e-6), max=1.0)
    for g in grads:
        g.mul_(coef)
    return net


def g():
    net = graded()
    saved = {n: p.grad.clone() for n, p in net.named_parameters()}
    net.zero_grad()
    F.l1_loss(net(x), y).backward()
    for n, p in net.named_parameters():
        p.grad.add_(saved[n])
        p.grad /= 2
    return net


def h():
    net = made()
    mask = numbers(5, 4, seed=8) > 0
    net[0].weight.register_hook(lambda grad: grad * mask)
    net[2].weight.register_hook(lambda grad: grad.clamp(-0.01, 0.01))
    F.mse_loss(net(x), y).backward()
    return net


def i():
    net = graded()
    flat = torch.cat([p.grad.view(-1) for p in net.parameters()])
    flat = flat / flat.norm()
    at = 0
    for p in net.parameters():
        n = p.numel()
        p.grad.copy_(flat[at : at + n].view_as(p))
        at += n
    return net


def j():
    net = graded()
    for p in net.parameters():
        if p.grad.dim() > 1:
            p.grad.sub_(p.grad.mean(dim=tuple(range(1, p.grad.dim())), keepdim=True))
    return net


def k():
    net = made()
    losses = [F.mse_loss(net(x), y), F.l1_loss(net(x), y)]
    per_task = []
    for loss in losses:
        net.zero_grad()
        loss.backward(retain_graph=False)
        per_task.append(torch.cat([p.grad.flatten() for p in net.parameters()]))
    ga, gb = per_task
    dot = torch.dot(ga, gb)
    if dot < 100:
        ga = ga - dot / gb.norm() ** 2 * gb * 0.1
    index = 0
    for p in net.parameters():
        p.grad.data = ga[index : index + p.numel()].reshape(p.shape)
        index += p.numel()
    return net


def m():
    net = made()
    accumulated = None
    for part in range(3):
        net.zero_grad(set_to_none=True)
        F.mse_loss(net(x[part * 2 : part * 2 + 2]), y[part * 2 : part * 2 + 2]).backward()
        grads = [p.grad for p in net.parameters()]
        if accumulated is None:
            accumulated = [g.clone() for g in grads]
        else:
            for a_, g_ in zip(accumulated, grads):
                a_ += g_
    for p, a_ in zip(net.parameters(), accumulated):
        p.grad = a_ / 3
    return net


class Own(torch.optim.Optimizer):
    def __init__(self, params, lr=0.1, momentum=0.9, weight_decay=0.01):
        super().__init__(params, dict(lr=lr, momentum=momentum, weight_decay=weight_decay))

    def step(self, closure=None):
        loss = None
        if closure is not None:
            loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                d_p = p.grad.data
                if group["weight_decay"] != 0:
                    d_p.add_(p.data, alpha=group["weight_decay"])
                state = self.state[p]
                if "buf" not in state:
                    buf = state["buf"] = torch.zeros_like(p.data)
                    buf.mul_(group["momentum"]).add_(d_p)
                else:
                    buf = state["buf"]
                    buf.mul_(group["momentum"]).add_(d_p, alpha=1 - 0.1)
                p.data.add_(buf, alpha=-group["lr"])
        return loss


class Sam(torch.optim.Optimizer):
    def __init__(self, params, base, rho=0.05, **kw):
        super().__init__(params, dict(rho=rho, **kw))
        self.base_optimizer = base(self.param_groups, **kw)
        self.param_groups = self.base_optimizer.param_groups

    @torch.no_grad()
    def first_step(self, zero_grad=False):
        norm = torch.norm(
            torch.stack(
                [
                    p.grad.norm(p=2)
                    for group in self.param_groups
                    for p in group["params"]
                    if p.grad is not None
                ]
            ),
            p=2,
        )
        for group in self.param_groups:
            scale = group["rho"] / (norm + 1e-12)
            for p in group["params"]:
                if p.grad is None:
                    continue
                self.state[p]["old_p"] = p.data.clone()
                e_w = p.grad * scale.to(p)
                p.add_(e_w)
        if zero_grad:
            self.zero_grad()

    @torch.no_grad()
    def second_step(self, zero_grad=False):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.data = self.state[p]["old_p"]
        self.base_optimizer.step()
        if zero_grad:
            self.zero_grad()


for make in (a, b, c, d, e, f, g, h, i, j, k, m):
    print(total(make()))
net = made()
optimizer = Own(net.parameters())
for _ in range(3):
    optimizer.zero_grad()
    loss = F.mse_loss(net(x), y)
    loss.backward()
    optimizer.step()
    print(loss.item())
net = made()
optimizer = Sam(net.parameters(), torch.optim.SGD, rho=0.1, lr=0.1, momentum=0.9)
for _ in range(3):
    loss = F.mse_loss(net(x), y)
    loss.backward()
    optimizer.first_step(zero_grad=True)
    F.mse_loss(net(x), y).backward()
    optimizer.second_step(zero_grad=True)
    print(loss.item())


def closure():
    optimizer.zero_grad()
    loss = F.mse_loss(net(x), y)
    loss.backward()
    return loss


optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(2):
    print(optimizer.step(closure).item())
for group in optimizer.param_groups:
    group["lr"] *= 0.1
    for p in group["params"]:
        p.grad = torch.ones_like(p)
optimizer.step()
print(sum(p.sum().item() for p in net.parameters()))


def o():
    net = graded()
    for p in net.parameters():
        p.grad.detach().mul_(0.3)
    return net


class Clipped(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(numbers(2, 4))
        self.scale = nn.Parameter(torch.ones(2))

    def forward(self, x):
        w = self.weight.data
        w.clamp_(-0.5, 0.5)
        return F.linear(x, w) * self.scale


def r():
    net = Clipped()
    out = net(x)
    F.mse_loss(out, y).backward()
    print(int(net.weight.grad is None))
    print(net.weight.sum().item())
    return net


for make in (o, r):
    print(total(make()))

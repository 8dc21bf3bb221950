"""Starting values: what is written to `.data`, to its elements, names and views."""

import torch
import torch.nn as nn


def numbers(*shape, seed=0):
    count = 1
    for size in shape:
        count *= size
    return (torch.arange(count, dtype=torch.float32) * 0.7137 + seed * 0.331).sin().reshape(shape)


def start_a(n):
    n.weight.data[:] = 0.3
    n.weight.data[0] = 0.2
    n.weight.data[0, 1] += 1
    n.bias.data[1:] = 0.1
    n.bias.data[0] = 0


def start_b(n):
    w = n.weight.data
    w.fill_(0.5)
    w[0] = 0.1
    w += 0.01
    b = n.bias.data
    b[0], b[1] = 0.2, 0.3


def start_c(n):
    w, b = n.weight.data, n.bias.data
    w.copy_(numbers(*w.shape))
    nn.init.constant_(b, 0.1)


def start_d(n):
    w = n.weight.data
    nn.init.constant_(w.view([w.shape[0], -1]), 0.25)
    torch.nn.init.zeros_(n.bias.data)


def start_e(n):
    held = [p.data for p in n.parameters()]
    for k, d in enumerate(held):
        d.fill_(0.1 * (k + 1))
    for d in held:
        d.mul_(0.5)
        d[0] = 0.7


def start_f(n):
    with torch.no_grad():
        n.weight[:] = 0.3
        n.weight[1] *= 2
        n.bias.copy_(torch.ones(2))


def start_g(n):
    held = {k: v.data for k, v in n.named_parameters()}
    held["weight"].fill_(0.4)
    held["bias"][0] = 1
    held["bias"][1] = 2


def start_h(n):
    for p in n.parameters():
        d = p.data
        d.zero_()
        d.add_(0.2)


def start_i(n):
    for m in [n]:
        if isinstance(m, nn.Linear):
            w = m.weight.data
            w.uniform_(0.3, 0.3)
            nn.init.zeros_(m.bias.data)
            m.bias.data[0] += 0.5


def start_j(n):
    nn.init.constant_(n.weight[:1], 0.6)
    nn.init.constant_(n.weight.data[1:], -0.2)
    [d.fill_(0.1) for d in (p.data for p in [n.bias])]


x, y = numbers(5, 4), numbers(5, 2, seed=1)
for start in (
    start_a,
    start_b,
    start_c,
    start_d,
    start_e,
    start_f,
    start_g,
    start_h,
    start_i,
    start_j,
):
    net = nn.Linear(4, 2)
    start(net)
    print(net.weight.detach().sum().item())
    print((net.bias * torch.tensor([1.0, 2.0])).sum().item())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for _ in range(3):
        optimizer.zero_grad()
        loss = ((net(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
    print(loss.item())
    start(net)
    optimizer.zero_grad()
    loss = ((net(x) - y) ** 2).mean()
    loss.backward()
    optimizer.step()
    print(((net(x) - y) ** 2).mean().item())
    net.load_state_dict({"weight": numbers(2, 4, seed=3), "bias": torch.ones(2)})
    print(net(x).sum().item())

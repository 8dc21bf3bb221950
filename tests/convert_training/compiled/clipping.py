"""Bounds of clipping: by keyword, computed, other ones in each round, for micro-steps."""

import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_


def network():
    model = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3))
    for number, p in enumerate(model.parameters()):
        values = torch.arange(p.numel()).reshape(p.shape).float()
        p.data.copy_(torch.cos(values * 0.7 + number) * 0.5)
    return model, torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)


def batches():
    for k in range(6):
        yield torch.sin(torch.arange(32).reshape(8, 4).float() + k), (torch.arange(8) + k) % 3


def by_keyword(limits):
    model, optimizer = network()
    for x, y in batches():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        clip_grad_norm_(parameters=model.parameters(), max_norm=limits["norm"] / 2, norm_type=2.0)
        optimizer.step()
        print(loss.item())


def by_round():
    model, optimizer = network()
    for k, (x, y) in enumerate(batches()):
        bound = 0.5 / (k + 1)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        clip_grad_norm_(model.parameters(), bound, error_if_nonfinite=False)
        optimizer.step()
        print(loss.item())


def by_value():
    model, optimizer = network()
    for k, (x, y) in enumerate(batches()):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), clip_value=0.1 / (k + 1))
        optimizer.step()
        print(loss.item())


def step(model, optimizer, x, y, bound):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm=bound)
    optimizer.step()
    return loss


def in_a_function():
    model, optimizer = network()
    for k, (x, y) in enumerate(batches()):
        print(step(model, optimizer, x, y, 0.3 / (k + 1)).item())


def held():
    model, optimizer = network()
    optimizer.zero_grad()
    for k, (x, y) in enumerate(batches()):
        loss = nn.functional.cross_entropy(model(x), y) / 2
        loss.backward()
        if k % 2 == 1:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.4 / (k + 1))
            optimizer.step()
            optimizer.zero_grad()
        print(loss.item())


by_keyword({"norm": 0.4})
by_round()
by_value()
in_a_function()
held()

"""Loops as code bases write them: `while`, a dictionary by `**`, micro-steps, branches."""

from contextlib import nullcontext

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Linear(4, 6)
        self.norm = nn.BatchNorm1d(6)
        self.two = nn.Linear(6, 3)

    def forward(self, x, labels=None):
        logits = self.two(torch.tanh(self.norm(self.one(x))))
        loss = None if labels is None else nn.functional.cross_entropy(logits, labels)
        return {"logits": logits, "loss": loss}

    def training_step(self, pair, number):
        x, labels = pair
        return self(x, labels)["loss"] / (number + 1)


def net():
    made = Net()
    for number, p in enumerate(made.parameters()):
        p.data.copy_(torch.cos(torch.arange(p.numel()).reshape(p.shape).float() + number) * 0.5)
    return made


def batch(k):
    x = torch.sin(torch.arange(32).reshape(8, 4).float() + k)
    return {"x": x, "labels": (torch.arange(8) + k) % 3}


def evaluate(network, kept):
    network.eval()
    with torch.no_grad():
        found = network(**kept)["loss"].item()
    network.train()
    return found


def by_keywords():
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    k = 0
    while k < 6:
        held = batch(k)
        outputs = model(**held)
        loss = outputs["loss"] / 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        k += 1
        print(loss.item())
        if k % 2 == 0:
            print(evaluate(model, held))


def in_micro_steps(clip):
    model = net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    context = nullcontext()
    for k in range(4):
        for micro in range(2):
            with context:
                found = model(batch(2 * k + micro)["x"])
                loss = found["logits"].pow(2).mean() / 2
            scaler.scale(loss).backward()
        if clip is not None:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        print(loss.item())


def in_branches(is_squared):
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for k in range(3):
        optimizer.zero_grad()
        x = batch(k)["x"]
        if is_squared:
            found = model(x)["logits"]
            loss = found.pow(2).mean()
            loss += found.abs().mean()
        else:
            parts = [model(part)["logits"] for part in (x[:4], x[4:])]
            loss = sum(part.mean() for part in parts)
        loss.backward()
        optimizer.step()
        print(loss.item())


def by_numbers():
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    pairs = [tuple(batch(k).values()) for k in range(4)]
    for number, pair in enumerate(pairs):
        loss = model.training_step(pair, number)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())


by_keywords()
by_numbers()
in_micro_steps(0.1)
in_micro_steps(None)
in_branches(True)
in_branches(False)

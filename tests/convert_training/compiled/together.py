"""Several optimizers that step for one loss; losses that go through a network's parameters."""

import torch
from torch import nn


def fill(model):
    for number, p in enumerate(model.parameters()):
        values = torch.arange(p.numel()).reshape(p.shape).float()
        p.data.copy_(torch.cos(values * 0.7 + number) * 0.5)
    return model


def batches():
    for k in range(5):
        yield torch.sin(torch.arange(32).reshape(8, 4).float() + k), (torch.arange(8) + k) % 3


def train_epoch(encoder, middle, decoder, optimizers, criterion):
    first, second, third = optimizers
    for x, y in batches():
        first.zero_grad()
        second.zero_grad()
        third.zero_grad(set_to_none=True)
        loss = criterion(decoder(middle(encoder(x)).relu()), y)
        loss.backward()
        first.step()
        second.step()
        third.step()
        print(loss.item())


def regularized(model, optimizer, criterion, factor):
    for x, y in batches():
        optimizer.zero_grad()
        penalty = torch.tensor(0.0)
        for p in model.parameters():
            penalty += torch.norm(p)
        loss = criterion(model(x), y) + factor * penalty
        loss.backward()
        optimizer.step()
        print(loss.item())


def regularized_by_name(model, optimizer, criterion, factor):
    for x, y in batches():
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        for name, p in model.named_parameters():
            if "weight" in name:
                loss = loss + factor * p.abs().sum()
        loss = loss + factor * sum(p.pow(2).sum() for p in model.parameters())
        loss.backward()
        optimizer.step()
        print(loss.item())


def main():
    criterion = nn.CrossEntropyLoss()
    parts = [fill(nn.Linear(4, 5)), fill(nn.Linear(5, 6)), fill(nn.Linear(6, 3))]
    optimizers = [
        torch.optim.Adam(parts[0].parameters(), lr=0.05),
        torch.optim.SGD(parts[1].parameters(), lr=0.1, momentum=0.9),
        torch.optim.AdamW(parts[2].parameters(), lr=0.02),
    ]
    for _ in range(2):
        train_epoch(*parts, optimizers, criterion)
    model = fill(nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        regularized(model, optimizer, criterion, 0.05)
        regularized_by_name(model, optimizer, criterion, 0.01)


main()

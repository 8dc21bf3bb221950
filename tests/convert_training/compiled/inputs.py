"""Batches of dictionaries and tuples, a number of each round, and one that no graph takes as one."""

import numpy as np
import torch
from torch import nn


def fill(model):
    for number, p in enumerate(model.parameters()):
        values = torch.arange(p.numel()).reshape(p.shape).float()
        p.data.copy_(torch.cos(values * 0.7 + number) * 0.5)
    return model


def batches():
    for k in range(4):
        yield torch.sin(torch.arange(32).reshape(8, 4).float() + k), (torch.arange(8) + k) % 3


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 5), nn.Linear(5, 3)

    def forward(self, images, targets):
        x = torch.relu(self.body(images))
        return {
            "labels": nn.functional.cross_entropy(self.head(x), targets["labels"]),
            "boxes": (x - targets["boxes"][0]).abs().mean(),
        }


def detect(model, optimizer):
    for images, labels in batches():
        targets = {"labels": labels, "boxes": (images[:, :1], images[:, 1:])}
        losses = sum(loss for loss in model(images, targets).values())
        optimizer.zero_grad()
        losses.backward()
        optimizer.step()
        print(losses.item())


def mixed(x, y, k):
    share = np.random.RandomState(k).beta(1.0, 1.0)
    index = torch.arange(x.size(0) - 1, -1, -1)
    return share * x + (1 - share) * x[index], y, y[index], share


def mixed_loss(criterion, output, first, second, share):
    return share * criterion(output, first) + (1 - share) * criterion(output, second)


def mix(model, criterion, optimizer):
    for k, (x, y) in enumerate(batches()):
        x, first, second, share = mixed(x, y, k)
        loss = mixed_loss(criterion, model(x), first, second, share)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())


def annealed(model, optimizer, delta):
    for x, _ in batches():
        optimizer.zero_grad()
        loss = nn.functional.huber_loss(model(x), x[:, :3], delta=delta)
        loss.backward()
        optimizer.step()
        print(loss.item())


def main():
    detector = fill(Detector())
    optimizer = torch.optim.SGD(detector.parameters(), lr=0.1)
    model, criterion = fill(nn.Linear(4, 3)), nn.CrossEntropyLoss()
    other = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        detect(detector, optimizer)
        mix(model, criterion, other)
    annealed(model, other, 0.5)
    annealed(model, other, 0.25)


main()

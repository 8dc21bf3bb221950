"""Loops that read a loss before it has its last value."""

import torch
from torch import nn


def fill(model):
    for number, p in enumerate(model.parameters()):
        values = torch.arange(p.numel()).reshape(p.shape).float()
        p.data.copy_(torch.sin(values * 0.7 + number) * 0.5)
    return model


def batches():
    return [torch.sin(torch.arange(12).reshape(3, 4).float() + k) for k in range(6)]


def accumulated(model, optimizer):
    total = 0
    for step, x in enumerate(batches()):
        outputs = model(x)
        loss = outputs.pow(2).mean()
        total += loss.detach().float()
        if step % 2 == 0:
            print(f"{loss.item():.6f}")
        loss = loss / 2
        loss.backward()
        if step % 2 == 1:
            optimizer.step()
            optimizer.zero_grad()
    print(total.item() + loss.item())


def in_place(model, optimizer):
    losses = []
    for x in batches():
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        losses.append(loss.item())
        loss /= 2
        loss.backward()
        optimizer.step()
        print(loss.item())
    print(sum(losses))


class Trainer:
    def __init__(self, model, optimizer):
        self.model, self.optimizer, self.seen = model, optimizer, []

    def training_step(self, x, loss_2=0.1):
        self.optimizer.zero_grad()
        loss = self.model(x).pow(2).mean()
        self.seen.append(loss.detach())
        loss = loss * loss_2
        loss.backward()
        self.optimizer.step()
        return loss


def main():
    for train in (accumulated, in_place):
        model = fill(nn.Linear(4, 2))
        train(model, torch.optim.SGD(model.parameters(), lr=0.3))
        print(sum(p.sum().item() for p in model.parameters()))
    model = fill(nn.Linear(4, 2))
    trainer = Trainer(model, torch.optim.Adam(model.parameters(), lr=0.1))
    for x in batches():
        print(trainer.training_step(x).item())
    print(sum(loss.item() for loss in trainer.seen))


if __name__ == "__main__":
    main()

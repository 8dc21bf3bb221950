"""Modes that change within a loop, a scaler or none, clipping or not, and an average of weights."""

import torch
from torch import nn


def fill(model):
    for number, p in enumerate(model.parameters()):
        values = torch.arange(p.numel()).reshape(p.shape).float()
        p.data.copy_(torch.cos(values * 0.7 + number) * 0.5)


def batches():
    for k in range(6):
        yield torch.sin(torch.arange(32).reshape(8, 4).float() + k), (torch.arange(8) + k) % 3


def network():
    model = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 3))
    fill(model)
    return model


class Average(torch.optim.swa_utils.AveragedModel):
    def __init__(self, model, decay):
        def average(kept, new, count):
            return decay * kept + (1 - decay) * new

        super().__init__(model, "cpu", average, use_buffers=True)


class Freezer:
    def after(self, number, model):
        if number == 2:
            model.eval()
        if number == 4:
            model.train()


def train(model, criterion, optimizer, loader, freezer, average=None, scaler=None, clip=None):
    model.train()
    for number, (x, y) in enumerate(loader):
        with torch.autocast("cuda", enabled=scaler is not None):
            output = model(x)
            loss = criterion(output, y)
        optimizer.zero_grad()
        if scaler is not None:
            scaler.scale(loss).backward()
            if clip is not None:
                scaler.unscale_(optimizer)
                nn.utils.clip_grad_norm_(model.parameters(), clip)
            scaler.step(optimizer)
            scaler.update()
        else:
            loss.backward()
            if clip is not None:
                nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
        freezer.after(number, model)
        if average and number % 2 == 0:
            average.update_parameters(model)
            if number < 2:
                average.n_averaged.fill_(0)
        print(loss.item())
        print(output.sum().item())


for clip in (None, 0.3):
    for scaler in (None, torch.amp.GradScaler("cuda", enabled=False)):
        model = network()
        average = Average(model, 0.9)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
        train(model, nn.CrossEntropyLoss(), optimizer, batches(), Freezer(), average, scaler, clip)
        average.eval()
        for x, y in batches():
            print(average(x).sum().item())

"""Loops that train in one phase and compute the same forward part in another."""

import torch
from torch import nn


def fill(model):
    for number, p in enumerate(model.parameters()):
        values = torch.arange(p.numel()).reshape(p.shape).float()
        p.data.copy_(torch.cos(values * 0.7 + number) * 0.5)
    return model


def batches(start=0):
    for k in range(start, start + 4):
        yield torch.sin(torch.arange(32).reshape(8, 4).float() + k), (torch.arange(8) + k) % 3


def by_name(model, criterion, optimizer):
    for epoch in range(2):
        for phase in ["train", "val"]:
            if phase == "train":
                model.train()
            else:
                model.eval()
            correct = 0
            for inputs, labels in batches(3 * epoch):
                optimizer.zero_grad()
                with torch.set_grad_enabled(phase == "train"):
                    outputs = model(inputs)
                    _, preds = torch.max(outputs, 1)
                    loss = criterion(outputs, labels)
                    if phase == "train":
                        loss.backward()
                        nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.5)
                        optimizer.step()
                correct += torch.sum(preds == labels.data)
                print(loss.item())
            print(correct.item())


def by_flag(model, criterion, optimizer, train):
    model.train(train)
    total = 0.0
    for x, y in batches(2):
        with torch.set_grad_enabled(train):
            loss = criterion(model(x), y)
            if train:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        total += loss.item()
    print(total)


def by_optimizer(model, criterion, optimizer=None):
    for x, y in batches(1):
        hidden = model[0](x)
        loss = criterion(model[3](model[2](model[1](hidden))), y)
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(loss.item(), hidden.sum().item(), sep="\n")


def main():
    model = fill(nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 3)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    by_name(model, criterion, optimizer)
    for _ in range(2):
        by_flag(model, criterion, optimizer, True)
        by_flag(model, criterion, None, False)
    model.eval()
    by_optimizer(model, criterion)
    by_optimizer(model, criterion, optimizer)


main()

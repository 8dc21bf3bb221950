import torch
from torch import nn


def build():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 16), nn.ReLU(), nn.Linear(16, 10))


def loss(output, target):
    return nn.functional.cross_entropy(output, target)


def optimizer(model):
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

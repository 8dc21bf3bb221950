"""A little C3D for video clips."""

import torch
from torch import nn
from torch.nn import functional as F


class C3D(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv3d(2, 6, 3, padding=1)
        self.bn1 = nn.BatchNorm3d(6)
        self.pool1 = nn.MaxPool3d((1, 2, 2))
        self.conv2 = nn.Conv3d(6, 10, (3, 1, 1), padding=(1, 0, 0), bias=False)
        self.bn2 = nn.BatchNorm3d(10)
        self.fc = nn.Linear(10, 3)

    def forward(self, x):
        x = self.pool1(F.relu(self.bn1(self.conv1(x))))
        x = F.relu(self.bn2(self.conv2(x)))
        return self.fc(x.mean((2, 3, 4)))


def build():
    return C3D()


def loss(y, t):
    return F.cross_entropy(y, t)


def optimizer(model):
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

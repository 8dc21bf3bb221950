"""MobileNetV3-like: depthwise separable convolutions, Hardswish, ReLU6 and squeeze-excite."""

import torch
from torch import nn
from torch.nn import functional as F


class SE(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc1 = nn.Conv2d(c, c // 4, 1)
        self.fc2 = nn.Conv2d(c // 4, c, 1)

    def forward(self, x):
        s = F.relu(self.fc1(self.pool(x)))
        return x * F.hardsigmoid(self.fc2(s))


class InvertedResidual(nn.Module):
    def __init__(self, i, o, t, stride, act, se):
        super().__init__()
        m = i * t
        layers = [nn.Conv2d(i, m, 1, bias=False), nn.BatchNorm2d(m, eps=1e-3, momentum=0.01), act()]
        layers += [
            nn.Conv2d(m, m, 3, stride, 1, groups=m, bias=False),
            nn.BatchNorm2d(m, eps=1e-3, momentum=0.01),
            act(),
        ]
        if se:
            layers.append(SE(m))
        layers += [nn.Conv2d(m, o, 1, bias=False), nn.BatchNorm2d(o, eps=1e-3, momentum=0.01)]
        self.block = nn.Sequential(*layers)
        self.residual = stride == 1 and i == o

    def forward(self, x):
        return x + self.block(x) if self.residual else self.block(x)


class MobileNet(nn.Module):
    def __init__(self, classes=8):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, 3, 2, 1, bias=False),
            nn.BatchNorm2d(8, eps=1e-3, momentum=0.01),
            nn.Hardswish(),
            InvertedResidual(8, 8, 2, 1, nn.ReLU6, False),
            InvertedResidual(8, 12, 2, 2, nn.Hardswish, True),
            InvertedResidual(12, 12, 2, 1, nn.Hardswish, True),
        )
        self.classifier = nn.Sequential(
            nn.Linear(12, 24), nn.Hardswish(), nn.Dropout(0.2), nn.Linear(24, classes)
        )

    def forward(self, x):
        return self.classifier(self.features(x).mean([2, 3]))


def build():
    return MobileNet()


def loss(y, t):
    return F.cross_entropy(y, t)


def optimizer(model):
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    return opt, torch.optim.lr_scheduler.MultiStepLR(opt, [2, 4], 0.1)

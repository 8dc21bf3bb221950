"""A small residual network for images, in PyTorch."""

import torch
from torch import nn
from torch.nn import functional

LEARNING_RATE = 0.05
WARM_UP_STEPS = 8


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions around a shortcut, which is projected where the shape changes."""

    def __init__(self, in_channels, out_channels, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, out_channels, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(out_channels)
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(out_channels)
        self.shortcut = nn.Identity()
        if stride != 1 or in_channels != out_channels:
            self.shortcut = nn.Sequential(
                nn.Conv2d(in_channels, out_channels, 1, stride=stride, bias=False),
                nn.BatchNorm2d(out_channels),
            )

    def forward(self, x):
        y = functional.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return functional.relu(y + self.shortcut(x))


class Network(nn.Module):
    """A stem, three residual blocks around a dilated convolution, and a linear classifier."""

    def __init__(self, num_classes):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(16)
        self.relu = nn.ReLU()
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.block1 = ResidualBlock(16, 16)
        self.block2 = ResidualBlock(16, 32, stride=2)
        self.context = nn.Conv2d(32, 32, 3, padding=2, dilation=2)
        self.activation = nn.LeakyReLU(0.1)
        self.block3 = ResidualBlock(32, 32)
        self.avgpool = nn.AvgPool2d(3, stride=2, padding=1)
        self.fc = nn.Linear(32, num_classes)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.block2(self.block1(x))
        x = self.activation(self.context(x))
        x = self.avgpool(self.block3(x))
        x = torch.flatten(functional.adaptive_avg_pool2d(x, 1), 1)
        return self.fc(x)


def build(num_classes=10):
    """Build the network with PyTorch's default initialisation."""
    return Network(num_classes)


def loss(output, target):
    """Return the label-smoothed cross entropy, averaged over the batch."""
    return functional.cross_entropy(output, target, label_smoothing=0.1)


def optimizer(model):
    """Return SGD, which decays neither normalisation nor biases, with a linear warm-up."""
    decayed = [parameter for parameter in model.parameters() if parameter.ndim > 1]
    not_decayed = [parameter for parameter in model.parameters() if parameter.ndim <= 1]
    groups = [
        {"params": decayed, "weight_decay": 5e-4},
        {"params": not_decayed, "weight_decay": 0.0},
    ]
    sgd = torch.optim.SGD(groups, lr=LEARNING_RATE, momentum=0.9)
    warm_up = torch.optim.lr_scheduler.LambdaLR(
        sgd, lambda step: min(1.0, (step + 1) / WARM_UP_STEPS)
    )
    return sgd, warm_up

"""ResNet-50 in PyTorch: the reference of this example.

The parameter names are those of torchvision, so a torchvision checkpoint loads as it is.
"""

import math

import torch
from torch import nn

BATCH_SIZE = 2  # of the case files
BASE_LEARNING_RATE = 0.256 * BATCH_SIZE / 256  # the recipe's rate is for batches of 256
MOMENTUM = 0.875
WEIGHT_DECAY = 1 / 32768
TOTAL_STEPS = 100


class Bottleneck(nn.Module):
    """A 1x1, 3x3, 1x1 residual block whose stride sits in the 3x3 convolution."""

    expansion = 4

    def __init__(self, in_channels, channels, stride=1, downsample=None):
        super().__init__()
        out_channels = channels * self.expansion
        self.conv1 = nn.Conv2d(in_channels, channels, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, stride=stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.conv3 = nn.Conv2d(channels, out_channels, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(out_channels)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample

    def forward(self, x):
        shortcut = x if self.downsample is None else self.downsample(x)
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.relu(self.bn2(self.conv2(x)))
        x = self.bn3(self.conv3(x))
        return self.relu(x + shortcut)


class ResNet(nn.Module):
    """A stem, four stages of bottlenecks, global average pooling and a linear head."""

    def __init__(self, blocks_per_stage, num_classes):
        super().__init__()
        self.in_channels = 64
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1 = self._stage(64, blocks_per_stage[0], stride=1)
        self.layer2 = self._stage(128, blocks_per_stage[1], stride=2)
        self.layer3 = self._stage(256, blocks_per_stage[2], stride=2)
        self.layer4 = self._stage(512, blocks_per_stage[3], stride=2)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(512 * Bottleneck.expansion, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def _stage(self, channels, blocks, stride):
        out_channels = channels * Bottleneck.expansion
        downsample = None
        if stride != 1 or self.in_channels != out_channels:
            downsample = nn.Sequential(
                nn.Conv2d(self.in_channels, out_channels, 1, stride=stride, bias=False),
                nn.BatchNorm2d(out_channels),
            )
        layers = [Bottleneck(self.in_channels, channels, stride, downsample)]
        self.in_channels = out_channels
        layers += [Bottleneck(out_channels, channels) for _ in range(1, blocks)]
        return nn.Sequential(*layers)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer1(x)
        x = self.layer2(x)
        x = self.layer3(x)
        x = self.layer4(x)
        x = torch.flatten(self.avgpool(x), 1)
        return self.fc(x)


def build(num_classes=1000):
    """Build ResNet-50 with torchvision's initialisation."""
    return ResNet([3, 4, 6, 3], num_classes)


def loss(output, target):
    """Return the label-smoothed cross entropy, averaged over the batch."""
    return nn.functional.cross_entropy(output, target, label_smoothing=0.1)


def optimizer(model):
    """Return SGD, which decays only convolution and head weights, with its cosine schedule."""
    decayed = [parameter for parameter in model.parameters() if parameter.ndim > 1]
    not_decayed = [parameter for parameter in model.parameters() if parameter.ndim <= 1]
    groups = [
        {"params": decayed, "weight_decay": WEIGHT_DECAY},
        {"params": not_decayed, "weight_decay": 0.0},
    ]
    sgd = torch.optim.SGD(groups, lr=BASE_LEARNING_RATE, momentum=MOMENTUM)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        sgd, lambda step: 0.5 * (1 + math.cos(math.pi * step / TOTAL_STEPS))
    )
    return sgd, schedule

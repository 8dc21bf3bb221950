"""A small U-Net for binary segmentation, in PyTorch."""

import torch
from torch import nn
from torch.nn import functional


class DoubleConvolution(nn.Module):
    """Two 3x3 convolutions, each followed by batch normalisation and a leaky ReLU."""

    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, out_channels, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(out_channels)
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(out_channels)
        self.activation = nn.LeakyReLU(0.2)

    def forward(self, x):
        x = self.activation(self.bn1(self.conv1(x)))
        return self.activation(self.bn2(self.conv2(x)))


class Up(nn.Module):
    """Enlarge the deep features, join them with the shallow ones and convolve."""

    def __init__(self, deep_channels, shallow_channels):
        super().__init__()
        self.convolutions = DoubleConvolution(deep_channels + shallow_channels, shallow_channels)

    def forward(self, deep, shallow):
        size = shallow.shape[-2:]
        deep = functional.interpolate(deep, size=size, mode="bilinear", align_corners=True)
        return self.convolutions(torch.cat([shallow, deep], dim=1))


class UNet(nn.Module):
    """Three levels of features with skip connections and a 1x1 convolution as head."""

    def __init__(self, channels):
        super().__init__()
        self.down1 = DoubleConvolution(3, channels)
        self.down2 = DoubleConvolution(channels, 2 * channels)
        self.bottom = DoubleConvolution(2 * channels, 4 * channels)
        self.pool = nn.MaxPool2d(2)
        self.up2 = Up(4 * channels, 2 * channels)
        self.up1 = Up(2 * channels, channels)
        self.head = nn.Conv2d(channels, 1, 1)

    def forward(self, x):
        shallow = self.down1(x)
        middle = self.down2(self.pool(shallow))
        deep = self.bottom(self.pool(middle))
        return self.head(self.up1(self.up2(deep, middle), shallow))


def build(channels=8):
    """Build the U-Net with PyTorch's default initialisation."""
    return UNet(channels)


def loss(output, target):
    """Return the binary cross entropy of every pixel, averaged."""
    return functional.binary_cross_entropy_with_logits(output, target)


def optimizer(model):
    """Return RMSprop with momentum and the same decay for every parameter."""
    return torch.optim.RMSprop(
        model.parameters(), lr=1e-3, alpha=0.9, eps=1e-8, momentum=0.9, weight_decay=1e-3
    )

"""An image classifier in PyTorch that prepares raw camera images itself."""

import torch
from torch import nn
from torch.nn import functional as F

MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)
LOSS_SCALE = 64.0


class Prepare(nn.Module):
    """From bytes to normalised numbers: exposure, size, mean and deviation per channel."""

    def __init__(self, size):
        super().__init__()
        self.size = size
        self.register_buffer("mean", torch.tensor(MEAN).view(1, 3, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor(STD).view(1, 3, 1, 1), persistent=False)

    def forward(self, image):
        x = image.float()
        energy = x.square().sum(dim=1, keepdim=True)
        exposure = energy.mean(dim=(2, 3), keepdim=True).sqrt() / 240.0
        x = x / 255.0 / exposure
        x = F.interpolate(x, size=self.size, mode="bilinear", align_corners=False)
        return (x - self.mean) / self.std


class Context(nn.Module):
    """Features of a smaller image, enlarged again and put beside the others."""

    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, 10, 3, padding=1, padding_mode="replicate")

    def forward(self, x):
        small = F.interpolate(x, size=(7, 6), mode="bilinear", antialias=True)
        small = F.relu(self.conv(small))
        large = F.interpolate(small, size=x.shape[-2:], mode="bicubic")
        return torch.cat([x, large], dim=1)


class ImageModel(nn.Module):
    """Preparation, a stem with group normalisation, grouped convolutions, context, a head."""

    def __init__(self, classes=7):
        super().__init__()
        self.prepare = Prepare((24, 20))
        self.stem = nn.Conv2d(3, 12, 3, padding=1, padding_mode="reflect")
        self.stem_norm = nn.GroupNorm(3, 12)
        self.grouped = nn.Conv2d(12, 16, 3, stride=2, padding=1, groups=4, bias=False)
        self.bn = nn.BatchNorm2d(16)
        self.context = Context(16)
        self.pool = nn.AvgPool2d(3, stride=2, padding=1, count_include_pad=False)
        self.mix = nn.Conv2d(26, 18, 1)
        self.norm = nn.GroupNorm(6, 18)
        self.head = nn.Linear(18, classes)

    def forward(self, image):
        x = self.prepare(image)
        x = F.silu(self.stem_norm(self.stem(x)))
        x = F.hardswish(self.bn(self.grouped(x)))
        x = self.pool(self.context(x))
        x = F.leaky_relu(self.norm(self.mix(x)), 0.2)
        return self.head(x.mean(dim=(2, 3)))


def build():
    """Build the model."""
    return ImageModel()


def loss(output, target):
    """Return the cross entropy, scaled up as for half precision."""
    return LOSS_SCALE * F.cross_entropy(output, target)


def optimizer(model):
    """Return Nesterov's SGD, which undoes the loss scale first, with a stepped schedule."""
    sgd = torch.optim.SGD(
        model.parameters(), lr=0.04, momentum=0.9, weight_decay=1e-3, nesterov=True
    )

    def unscale(*_):
        for parameter in model.parameters():
            if parameter.grad is not None:
                parameter.grad.div_(LOSS_SCALE)

    sgd.register_step_pre_hook(unscale)
    return sgd, torch.optim.lr_scheduler.StepLR(sgd, step_size=2, gamma=0.5)

from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Config:
    in_channels: int = 3
    width: int = 8
    classes: int = 5
    norm: str = "batch"


class Encoder(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.conv = nn.Conv2d(config.in_channels, config.width, 3, padding=1)
        self.norm = nn.BatchNorm2d(config.width) if config.norm == "batch" else nn.Identity()

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x)))


class Classifier(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.encoder = Encoder(config)
        self.head = nn.Linear(config.width, config.classes)

    def forward(self, image):
        return self.head(self.encoder(image).mean((2, 3)))


def create_model(width=8, **kwargs):
    return Classifier(Config(width=width, **kwargs))


if __name__ == "__main__":
    model = create_model(width=6, classes=7)
    out = model(torch.randn(2, 3, 24, 24))
    print(out.shape)

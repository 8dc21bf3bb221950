"""A convolutional VAE decoder; MSE and BCE."""

import torch
from torch import nn
from torch.nn import functional as F


class Decoder(nn.Module):
    def __init__(self, latent=8):
        super().__init__()
        self.fc = nn.Linear(latent, 32 * 4 * 4)
        self.net = nn.Sequential(
            nn.ConvTranspose2d(32, 16, 4, 2, 1),
            nn.BatchNorm2d(16),
            nn.LeakyReLU(0.2),
            nn.ConvTranspose2d(16, 8, 3, 2, 1, output_padding=1, bias=False),
            nn.BatchNorm2d(8),
            nn.ReLU(inplace=True),
            nn.Upsample(scale_factor=2, mode="nearest"),
            nn.Conv2d(8, 3, 3, padding=1),
            nn.Sigmoid(),
        )

    def forward(self, z):
        return self.net(self.fc(z).view(-1, 32, 4, 4))


def build():
    return Decoder()


def loss(y, target):
    return F.binary_cross_entropy(y, target)


def optimizer(model):
    return torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.5, 0.99))

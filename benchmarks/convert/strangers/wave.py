import torch
import torch.nn as nn
from torch.nn.utils import weight_norm, spectral_norm


class Gated(nn.Module):
    def __init__(self, c, d):
        super().__init__()
        self.pad = nn.ConstantPad1d((2 * d, 0), 0.0)
        self.f = weight_norm(nn.Conv1d(c, c, 3, dilation=d))
        self.g = weight_norm(nn.Conv1d(c, c, 3, dilation=d))
        self.skip = nn.Conv1d(c, c, 1)
        self.res = nn.Conv1d(c, c, 1)

    def forward(self, x):
        p = self.pad(x)
        z = torch.tanh(self.f(p)) * torch.sigmoid(self.g(p))
        return self.res(z) + x, self.skip(z)


class WaveNet(nn.Module):
    def __init__(self, c=6, layers=3):
        super().__init__()
        self.start = nn.Conv1d(1, c, 1)
        self.layers = nn.ModuleList()
        for i in range(layers):
            self.layers.append(Gated(c, 2**i))
        self.end = nn.Sequential(nn.ReLU(), nn.Conv1d(c, c, 1), nn.ReLU(), nn.Conv1d(c, 4, 1))

    def forward(self, x):
        x = self.start(x)
        skips = 0
        for layer in self.layers:
            x, s = layer(x)
            skips += s
        return self.end(skips)


def build_wavenet():
    return WaveNet()


class Disc(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            spectral_norm(nn.Conv2d(3, 6, 4, 2, 1)),
            nn.LeakyReLU(0.2),
            nn.Conv2d(6, 6, 4, 2, 1),
            nn.InstanceNorm2d(6, affine=True),
            nn.LeakyReLU(0.2),
        )
        self.fc = nn.Linear(6, 1)

    def forward(self, x):
        feats = []
        for layer in self.body:
            x = layer(x)
            feats.append(x.abs().mean())
        x = x.sum(dim=[2, 3])
        return self.fc(x), torch.stack(feats)


def build_disc():
    return Disc()

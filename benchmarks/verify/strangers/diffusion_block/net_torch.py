"""A noise predictor: residual blocks with GroupNorm, SiLU and a time embedding."""

import math

import torch
from torch import nn
from torch.nn import functional as F


def timestep_embedding(t, dim):
    half = dim // 2
    freqs = torch.exp(-math.log(10000) * torch.arange(half, dtype=torch.float32) / half)
    args = t[:, None].float() * freqs[None]
    return torch.cat([torch.cos(args), torch.sin(args)], dim=-1)


class ResBlock(nn.Module):
    def __init__(self, i, o, emb):
        super().__init__()
        self.in_layers = nn.Sequential(nn.GroupNorm(4, i), nn.SiLU(), nn.Conv2d(i, o, 3, padding=1))
        self.emb_layers = nn.Sequential(nn.SiLU(), nn.Linear(emb, 2 * o))
        self.out_norm = nn.GroupNorm(4, o)
        self.out_rest = nn.Sequential(nn.SiLU(), nn.Dropout(0.1), nn.Conv2d(o, o, 3, padding=1))
        self.skip = nn.Identity() if i == o else nn.Conv2d(i, o, 1)

    def forward(self, x, emb):
        h = self.in_layers(x)
        scale, shift = self.emb_layers(emb)[:, :, None, None].chunk(2, dim=1)
        h = self.out_norm(h) * (1 + scale) + shift
        return self.skip(x) + self.out_rest(h)


class Predictor(nn.Module):
    def __init__(self, c=16):
        super().__init__()
        self.c = c
        self.time_embed = nn.Sequential(nn.Linear(c, 4 * c), nn.SiLU(), nn.Linear(4 * c, 4 * c))
        self.conv_in = nn.Conv2d(3, c, 3, padding=1)
        self.down = ResBlock(c, 2 * c, 4 * c)
        self.mid = ResBlock(2 * c, 2 * c, 4 * c)
        self.up = ResBlock(3 * c, c, 4 * c)
        self.out = nn.Sequential(nn.GroupNorm(4, c), nn.SiLU(), nn.Conv2d(c, 3, 3, padding=1))

    def forward(self, x, t):
        emb = self.time_embed(timestep_embedding(t, self.c))
        h0 = self.conv_in(x)
        h = self.down(F.avg_pool2d(h0, 2), emb)
        h = self.mid(h, emb)
        h = F.interpolate(h, scale_factor=2, mode="nearest")
        return self.out(self.up(torch.cat([h, h0], 1), emb))


def build():
    return Predictor()


def loss(y, noise):
    return F.mse_loss(y, noise)


def optimizer(model):
    return torch.optim.AdamW(model.parameters(), lr=2e-4, weight_decay=1e-2)

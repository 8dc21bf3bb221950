"""A masked autoencoder: which patches are seen is drawn, sorted, and undone."""

import torch
from torch import nn


class MAE(nn.Module):
    """As in facebookresearch/mae: patches are chosen by sorted noise."""

    def __init__(self, count=64, dim=8):
        super().__init__()
        self.embed, self.head = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.token = nn.Parameter(torch.zeros(1, 1, dim))
        self.position = nn.Parameter(torch.randn(1, count, dim))

    def random_masking(self, x, ratio):
        N, L, D = x.shape
        keep = int(L * (1 - ratio))
        noise = torch.rand(N, L, device=x.device)
        ids_shuffle = torch.argsort(noise, dim=1)
        ids_restore = torch.argsort(ids_shuffle, dim=1)
        ids_keep = ids_shuffle[:, :keep]
        masked = torch.gather(x, dim=1, index=ids_keep.unsqueeze(-1).repeat(1, 1, D))
        mask = torch.ones([N, L], device=x.device)
        mask[:, :keep] = 0
        return masked, torch.gather(mask, dim=1, index=ids_restore), ids_restore

    def forward(self, x):
        h, mask, ids = self.random_masking(self.embed(x) + self.position, 0.75)
        tokens = self.token.repeat(h.shape[0], ids.shape[1] - h.shape[1], 1)
        h = torch.gather(torch.cat([h, tokens], 1), 1, ids.unsqueeze(-1).repeat(1, 1, h.shape[2]))
        loss = ((self.head(h + self.position) - x) ** 2).mean(-1)
        return (loss * mask).sum() / mask.sum()


def build_mae():
    return MAE()

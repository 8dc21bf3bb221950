"""Two Swin blocks: shifted windows with a mask, a relative position bias, patch merging."""

import torch
from torch import nn
from torch.nn import functional as F


def partition(x, w):
    b, h, wd, c = x.shape
    x = x.view(b, h // w, w, wd // w, w, c)
    return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, w * w, c)


def reverse(windows, w, h, wd):
    b = windows.shape[0] // ((h // w) * (wd // w))
    x = windows.view(b, h // w, wd // w, w, w, -1)
    return x.permute(0, 1, 3, 2, 4, 5).reshape(b, h, wd, -1)


class WindowAttention(nn.Module):
    def __init__(self, d, w, heads):
        super().__init__()
        self.heads, self.scale = heads, (d // heads) ** -0.5
        self.qkv = nn.Linear(d, 3 * d)
        self.proj = nn.Linear(d, d)
        self.relative_position_bias_table = nn.Parameter(torch.zeros((2 * w - 1) ** 2, heads))
        nn.init.trunc_normal_(self.relative_position_bias_table, std=0.02)
        coords = torch.stack(
            torch.meshgrid(torch.arange(w), torch.arange(w), indexing="ij")
        ).flatten(1)
        rel = (coords[:, :, None] - coords[:, None, :]).permute(1, 2, 0) + (w - 1)
        self.register_buffer("relative_position_index", rel[..., 0] * (2 * w - 1) + rel[..., 1])

    def forward(self, x, mask=None):
        b, n, c = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        attn = (q * self.scale) @ k.transpose(-2, -1)
        bias = self.relative_position_bias_table[self.relative_position_index.view(-1)].view(
            n, n, -1
        )
        attn = attn + bias.permute(2, 0, 1).unsqueeze(0)
        if mask is not None:
            nw = mask.shape[0]
            attn = (attn.view(b // nw, nw, self.heads, n, n) + mask[None, :, None]).view(
                -1, self.heads, n, n
            )
        attn = attn.softmax(-1)
        return self.proj((attn @ v).transpose(1, 2).reshape(b, n, c))


class SwinBlock(nn.Module):
    def __init__(self, d, size, w, shift, heads):
        super().__init__()
        self.size, self.w, self.shift = size, w, shift
        self.norm1 = nn.LayerNorm(d)
        self.attn = WindowAttention(d, w, heads)
        self.norm2 = nn.LayerNorm(d)
        self.mlp = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))
        mask = None
        if shift:
            img = torch.zeros(1, size, size, 1)
            slices = (slice(0, -w), slice(-w, -shift), slice(-shift, None))
            for i, a in enumerate(slices):
                for j, b in enumerate(slices):
                    img[:, a, b] = 3 * i + j
            m = partition(img, w).squeeze(-1)
            m = m[:, None] - m[:, :, None]
            mask = m.masked_fill(m != 0, -100.0).masked_fill(m == 0, 0.0)
        self.register_buffer("attn_mask", mask)

    def forward(self, x):
        shortcut = x
        x = self.norm1(x)
        if self.shift:
            x = torch.roll(x, (-self.shift, -self.shift), (1, 2))
        x = self.attn(partition(x, self.w), self.attn_mask)
        x = reverse(x, self.w, self.size, self.size)
        if self.shift:
            x = torch.roll(x, (self.shift, self.shift), (1, 2))
        x = shortcut + x
        return x + self.mlp(self.norm2(x))


class PatchMerging(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm = nn.LayerNorm(4 * d)
        self.reduction = nn.Linear(4 * d, 2 * d, bias=False)

    def forward(self, x):
        x = torch.cat([x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]], -1)
        return self.reduction(self.norm(x))


class Swin(nn.Module):
    def __init__(self, d=16, classes=6):
        super().__init__()
        self.patch_embed = nn.Conv2d(3, d, 2, 2)
        self.blocks = nn.Sequential(SwinBlock(d, 8, 4, 0, 2), SwinBlock(d, 8, 4, 2, 2))
        self.merge = PatchMerging(d)
        self.norm = nn.LayerNorm(2 * d)
        self.head = nn.Linear(2 * d, classes)

    def forward(self, x):
        x = self.patch_embed(x).permute(0, 2, 3, 1)
        x = self.norm(self.merge(self.blocks(x)))
        return self.head(x.mean((1, 2)))


def build():
    return Swin()


def loss(y, t):
    return F.cross_entropy(y, t)


def optimizer(model):
    decay = [p for n, p in model.named_parameters() if p.ndim > 1 and "bias_table" not in n]
    rest = [p for n, p in model.named_parameters() if not (p.ndim > 1 and "bias_table" not in n)]
    return torch.optim.AdamW(
        [{"params": decay, "weight_decay": 0.05}, {"params": rest, "weight_decay": 0.0}], lr=1e-3
    )

import torch
import torch.nn as nn
from typing import Optional, Tuple


def window_partition(x, w: int):
    B, H, W, C = x.shape
    x = x.view(B, H // w, w, W // w, w, C)
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, w, w, C)


def window_reverse(windows, w: int, H: int, W: int):
    B = int(windows.shape[0] / (H * W / w / w))
    x = windows.view(B, H // w, W // w, w, w, -1)
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(B, H, W, -1)


def drop_path(x, drop_prob: float = 0.0, training: bool = False):
    if drop_prob == 0.0 or not training:
        return x
    keep = 1 - drop_prob
    shape = (x.shape[0],) + (1,) * (x.ndim - 1)
    mask = x.new_empty(shape).bernoulli_(keep)
    if keep > 0.0:
        mask.div_(keep)
    return x * mask


class WindowAttention(nn.Module):
    def __init__(
        self,
        dim,
        window_size: Tuple[int, int],
        num_heads,
        qkv_bias=True,
        qk_scale: Optional[float] = None,
    ):
        super().__init__()
        self.window_size, self.num_heads = window_size, num_heads
        self.scale = qk_scale or (dim // num_heads) ** -0.5
        self.relative_position_bias_table = nn.Parameter(
            torch.zeros((2 * window_size[0] - 1) * (2 * window_size[1] - 1), num_heads)
        )
        coords = torch.stack(
            torch.meshgrid(
                [torch.arange(window_size[0]), torch.arange(window_size[1])], indexing="ij"
            )
        )
        flat = torch.flatten(coords, 1)
        rel = (flat[:, :, None] - flat[:, None, :]).permute(1, 2, 0).contiguous()
        rel[:, :, 0] += window_size[0] - 1
        rel[:, :, 1] += window_size[1] - 1
        rel[:, :, 0] *= 2 * window_size[1] - 1
        self.register_buffer("relative_position_index", rel.sum(-1))
        self.qkv = nn.Linear(dim, dim * 3, bias=qkv_bias)
        self.proj = nn.Linear(dim, dim)
        nn.init.trunc_normal_(self.relative_position_bias_table, std=0.02)
        self.softmax = nn.Softmax(dim=-1)

    def forward(self, x, mask=None):
        B_, N, C = x.shape
        qkv = (
            self.qkv(x)
            .reshape(B_, N, 3, self.num_heads, C // self.num_heads)
            .permute(2, 0, 3, 1, 4)
        )
        q, k, v = qkv[0], qkv[1], qkv[2]
        q = q * self.scale
        attn = q @ k.transpose(-2, -1)
        bias = self.relative_position_bias_table[self.relative_position_index.view(-1)].view(
            N, N, -1
        )
        attn = attn + bias.permute(2, 0, 1).contiguous().unsqueeze(0)
        if mask is not None:
            nW = mask.shape[0]
            attn = attn.view(B_ // nW, nW, self.num_heads, N, N) + mask.unsqueeze(1).unsqueeze(0)
            attn = attn.view(-1, self.num_heads, N, N)
        x = (self.softmax(attn) @ v).transpose(1, 2).reshape(B_, N, C)
        return self.proj(x)


class SwinBlock(nn.Module):
    def __init__(self, dim=8, res=8, heads=2, w=4, shift=2, drop=0.0):
        super().__init__()
        self.res, self.w, self.shift, self.drop = res, w, shift, drop
        self.norm = nn.LayerNorm(dim)
        self.attn = WindowAttention(dim, (w, w), heads)
        if shift > 0:
            img = torch.zeros((1, res, res, 1))
            slices = (slice(0, -w), slice(-w, -shift), slice(-shift, None))
            cnt = 0
            for h in slices:
                for v in slices:
                    img[:, h, v, :] = cnt
                    cnt += 1
            m = window_partition(img, w).view(-1, w * w)
            m = m.unsqueeze(1) - m.unsqueeze(2)
            mask = m.masked_fill(m != 0, float(-100.0)).masked_fill(m == 0, float(0.0))
        else:
            mask = None
        self.register_buffer("attn_mask", mask)

    def forward(self, x):
        B, L, C = x.shape
        H = W = self.res
        shortcut = x
        x = self.norm(x).view(B, H, W, C)
        if self.shift > 0:
            x = torch.roll(x, shifts=(-self.shift, -self.shift), dims=(1, 2))
        y = window_partition(x, self.w).view(-1, self.w * self.w, C)
        y = self.attn(y, mask=self.attn_mask).view(-1, self.w, self.w, C)
        x = window_reverse(y, self.w, H, W)
        if self.shift > 0:
            x = torch.roll(x, shifts=(self.shift, self.shift), dims=(1, 2))
        return shortcut + drop_path(x.view(B, H * W, C), self.drop, self.training)


class Swin(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, 8, kernel_size=2, stride=2)
        self.blocks = nn.ModuleList([SwinBlock(shift=0), SwinBlock(shift=2)])
        self.reduction = nn.Linear(32, 16, bias=False)
        self.avg = nn.AdaptiveAvgPool1d(1)
        self.head = nn.Linear(16, 5) if True else nn.Identity()

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        for blk in self.blocks:
            x = blk(x)
        B, L, C = x.shape
        x = x.view(B, 8, 8, C)
        x = torch.cat(
            [x[:, 0::2, 0::2, :], x[:, 1::2, 0::2, :], x[:, 0::2, 1::2, :], x[:, 1::2, 1::2, :]], -1
        )
        x = self.reduction(x.view(B, -1, 4 * C))
        return self.head(torch.flatten(self.avg(x.transpose(1, 2)), 1))


def build_swin():
    return Swin()

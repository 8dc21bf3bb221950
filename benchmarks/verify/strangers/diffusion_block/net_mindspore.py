import math

import mindspore as ms
from mindspore import nn, ops
from mindspore.experimental import optim


class TimestepEmbedding(nn.Cell):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim
        self.linear_1 = nn.Dense(dim, 4 * dim)
        self.linear_2 = nn.Dense(4 * dim, 4 * dim)

    def construct(self, t):
        half = self.dim // 2
        freqs = ops.exp(-math.log(10000) * ops.arange(half).astype(ms.float32) / half)
        args = t.astype(ms.float32).expand_dims(1) * freqs
        emb = ops.cat((ops.cos(args), ops.sin(args)), axis=-1)
        return self.linear_2(ops.silu(self.linear_1(emb)))


class ResnetBlock(nn.Cell):
    def __init__(self, i, o, emb):
        super().__init__()
        self.norm1 = nn.GroupNorm(4, i, eps=1e-5)
        self.conv1 = nn.Conv2d(i, o, 3, pad_mode="pad", padding=1, has_bias=True)
        self.time_emb_proj = nn.Dense(emb, 2 * o)
        self.norm2 = nn.GroupNorm(4, o, eps=1e-5)
        self.dropout = nn.Dropout(p=0.1)
        self.conv2 = nn.Conv2d(o, o, 3, pad_mode="pad", padding=1, has_bias=True)
        self.nonlinearity = nn.SiLU()
        self.use_shortcut = i != o
        if self.use_shortcut:
            self.conv_shortcut = nn.Conv2d(i, o, 1, pad_mode="valid", has_bias=True)

    def construct(self, x, temb):
        h = self.conv1(self.nonlinearity(self.norm1(x)))
        temb = self.time_emb_proj(self.nonlinearity(temb))
        scale, shift = temb.expand_dims(-1).expand_dims(-1).chunk(2, 1)
        h = self.norm2(h) * (1 + scale) + shift
        h = self.conv2(self.dropout(self.nonlinearity(h)))
        if self.use_shortcut:
            x = self.conv_shortcut(x)
        return x + h


class UNet(nn.Cell):
    def __init__(self, c=16):
        super().__init__()
        self.conv_in = nn.Conv2d(3, c, 3, pad_mode="pad", padding=1, has_bias=True)
        self.time = TimestepEmbedding(c)
        self.down_block = ResnetBlock(c, 2 * c, 4 * c)
        self.mid_block = ResnetBlock(2 * c, 2 * c, 4 * c)
        self.up_block = ResnetBlock(3 * c, c, 4 * c)
        self.norm_out = nn.GroupNorm(4, c)
        self.conv_out = nn.Conv2d(c, 3, 3, pad_mode="pad", padding=1, has_bias=True)
        self.pool = nn.AvgPool2d(2, 2)

    def construct(self, sample, timestep):
        temb = self.time(timestep)
        first = self.conv_in(sample)
        h = self.down_block(self.pool(first), temb)
        h = self.mid_block(h, temb)
        height, width = h.shape[2:]
        h = ops.interpolate(h, size=(2 * height, 2 * width), mode="nearest")
        h = self.up_block(ops.cat((h, first), axis=1), temb)
        return self.conv_out(ops.silu(self.norm_out(h)))


def build():
    return UNet()


def loss(prediction, noise):
    return ops.mse_loss(prediction, noise)


def optimizer(model):
    return optim.AdamW(model.trainable_params(), lr=2e-4, weight_decay=1e-2)

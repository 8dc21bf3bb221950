import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import TruncatedNormal, initializer
from mindspore.experimental import optim


def roll(x, n):
    """Roll both axes to the front by n; ops.roll has no kernel on a CPU."""
    x = ops.cat((x[:, n:], x[:, :n]), 1)
    return ops.cat((x[:, :, n:], x[:, :, :n]), 2)


def window_partition(x, w):
    b, h, wd, c = x.shape
    x = ops.reshape(x, (b, h // w, w, wd // w, w, c))
    return ops.reshape(ops.transpose(x, (0, 1, 3, 2, 4, 5)), (-1, w * w, c))


def window_reverse(x, w, h, wd, b):
    x = ops.reshape(x, (b, h // w, wd // w, w, w, -1))
    return ops.reshape(ops.transpose(x, (0, 1, 3, 2, 4, 5)), (b, h, wd, -1))


def relative_index(w):
    coords = np.stack(np.meshgrid(np.arange(w), np.arange(w), indexing="ij")).reshape(2, -1)
    rel = coords[:, :, None] - coords[:, None, :] + w - 1
    return (rel[0] * (2 * w - 1) + rel[1]).reshape(-1).astype(np.int32)


def shift_mask(size, w, shift):
    img = np.zeros((size, size), np.float32)
    edges = (slice(0, -w), slice(-w, -shift), slice(-shift, None))
    for i, a in enumerate(edges):
        for j, b in enumerate(edges):
            img[a, b] = 3 * i + j
    m = img.reshape(size // w, w, size // w, w).transpose(0, 2, 1, 3).reshape(-1, w * w)
    return np.where(m[:, None] != m[:, :, None], -100.0, 0.0).astype(np.float32)


class WindowAttention(nn.Cell):
    def __init__(self, dim, w, heads):
        super().__init__()
        self.num_heads = heads
        self.head_dim = dim // heads
        self.scale = self.head_dim**-0.5
        self.q = nn.Dense(dim, dim)
        self.k = nn.Dense(dim, dim)
        self.v = nn.Dense(dim, dim)
        self.proj = nn.Dense(dim, dim)
        self.bias_table = Parameter(initializer(TruncatedNormal(0.02), ((2 * w - 1) ** 2, heads)))
        self.index = Tensor(relative_index(w))

    def construct(self, x, mask=None):
        b, n, c = x.shape
        q = (
            ops.transpose(
                ops.reshape(self.q(x), (b, n, self.num_heads, self.head_dim)), (0, 2, 1, 3)
            )
            * self.scale
        )
        k = ops.transpose(
            ops.reshape(self.k(x), (b, n, self.num_heads, self.head_dim)), (0, 2, 3, 1)
        )
        v = ops.transpose(
            ops.reshape(self.v(x), (b, n, self.num_heads, self.head_dim)), (0, 2, 1, 3)
        )
        attn = ops.matmul(q, k)
        bias = ops.reshape(ops.gather(self.bias_table, self.index, 0), (n, n, -1))
        attn = attn + ops.expand_dims(ops.transpose(bias, (2, 0, 1)), 0)
        if mask is not None:
            nw = mask.shape[0]
            attn = ops.reshape(attn, (b // nw, nw, self.num_heads, n, n)) + ops.reshape(
                mask, (1, nw, 1, n, n)
            )
            attn = ops.reshape(attn, (-1, self.num_heads, n, n))
        attn = ops.softmax(attn, -1)
        out = ops.reshape(ops.transpose(ops.matmul(attn, v), (0, 2, 1, 3)), (b, n, c))
        return self.proj(out)


class Mlp(nn.Cell):
    def __init__(self, d):
        super().__init__()
        self.fc1 = nn.Dense(d, 2 * d)
        self.fc2 = nn.Dense(2 * d, d)

    def construct(self, x):
        return self.fc2(ops.gelu(self.fc1(x)))


class Block(nn.Cell):
    """Works on flattened tokens (batch, height * width, channels)."""

    def __init__(self, d, size, w, shift, heads):
        super().__init__()
        self.size, self.w, self.shift = size, w, shift
        self.norm1 = nn.LayerNorm([d], epsilon=1e-5)
        self.norm2 = nn.LayerNorm([d], epsilon=1e-5)
        self.attn = WindowAttention(d, w, heads)
        self.mlp = Mlp(d)
        self.mask = Tensor(shift_mask(size, w, shift)) if shift else None

    def construct(self, x):
        b, n, c = x.shape
        y = ops.reshape(self.norm1(x), (b, self.size, self.size, c))
        if self.shift:
            y = roll(y, self.shift)
        y = self.attn(window_partition(y, self.w), self.mask)
        y = window_reverse(y, self.w, self.size, self.size, b)
        if self.shift:
            y = roll(y, -self.shift)
        x = x + ops.reshape(y, (b, n, c))
        return x + self.mlp(self.norm2(x))


class Swin(nn.Cell):
    def __init__(self, d=16, classes=6):
        super().__init__()
        self.embed = nn.Conv2d(3, d, 2, 2, pad_mode="valid", has_bias=True)
        self.block0 = Block(d, 8, 4, 0, 2)
        self.block1 = Block(d, 8, 4, 2, 2)
        self.merge_norm = nn.LayerNorm([4 * d], epsilon=1e-5)
        self.merge_reduction = nn.Dense(4 * d, 2 * d, has_bias=False)
        self.norm = nn.LayerNorm([2 * d], epsilon=1e-5)
        self.head = nn.Dense(2 * d, classes)

    def construct(self, x):
        x = self.embed(x)
        b, c, h, w = x.shape
        x = ops.transpose(ops.reshape(x, (b, c, h * w)), (0, 2, 1))
        x = self.block1(self.block0(x))
        x = ops.reshape(x, (b, h // 2, 2, w // 2, 2, c))
        x = ops.reshape(ops.transpose(x, (0, 1, 3, 4, 2, 5)), (b, h * w // 4, 4 * c))
        x = self.norm(self.merge_reduction(self.merge_norm(x)))
        return self.head(x.mean(1))


def build():
    return Swin()


def loss(y, t):
    return ops.cross_entropy(y, t.astype(ms.int32))


def optimizer(model):
    def decays(p):
        return p.ndim > 1 and "bias_table" not in p.name

    params = model.trainable_params()
    groups = [
        {"params": [p for p in params if decays(p)], "weight_decay": 0.05},
        {"params": [p for p in params if not decays(p)], "weight_decay": 0.0},
    ]
    return optim.AdamW(groups, lr=1e-3)

"""MLP-Mixer, with the patches cut by a reshape and a Dense, and tokens kept last throughout."""

import mindspore as ms
from mindspore import nn, ops


def mlp(d, h):
    return nn.SequentialCell([nn.Dense(d, h), nn.GELU(approximate=False), nn.Dense(h, d)])


class Transposed(nn.Cell):
    """Applies an MLP over the tokens of (batch, tokens, channels)."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def construct(self, x):
        return self.inner(x.transpose(0, 2, 1)).transpose(0, 2, 1)


class Residual(nn.Cell):
    def __init__(self, d, inner):
        super().__init__()
        self.fn = nn.SequentialCell(nn.LayerNorm((d,), epsilon=1e-6), inner)

    def construct(self, x):
        return self.fn(x) + x


class MeanTokens(nn.Cell):
    def construct(self, x):
        return x.mean(1)


class Patches(nn.Cell):
    def __init__(self, d, patch):
        super().__init__()
        self.patch = patch
        self.proj = nn.Dense(3 * patch * patch, d)

    def construct(self, x):
        b, c, h, w = x.shape
        p = self.patch
        x = x.reshape(b, c, h // p, p, w // p, p).transpose(0, 2, 4, 1, 3, 5)
        return self.proj(x.reshape(b, (h // p) * (w // p), c * p * p))


def build():
    d, patch, size, depth = 32, 4, 16, 2
    tokens = (size // patch) ** 2
    layers = [Patches(d, patch)]
    for _ in range(depth):
        layers += [Residual(d, Transposed(mlp(tokens, 24))), Residual(d, mlp(d, 64))]
    layers += [nn.LayerNorm((d,), epsilon=1e-6), MeanTokens(), nn.Dense(d, 7)]
    return nn.SequentialCell(*layers)


def loss(y, target):
    return ops.cross_entropy(y, target.astype(ms.int32), label_smoothing=0.1)


def optimizer(model):
    return nn.SGD(
        [{"params": model.trainable_params()}], learning_rate=0.05, momentum=0.9, weight_decay=1e-4
    )

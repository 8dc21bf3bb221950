"""The networks of originals.py in MindSpore, written by hand for MindSpore and for speed."""

import math

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from mindspore.common.initializer import Zero, initializer


class PatchEmbedding(nn.Cell):
    def __init__(self, size, patch, width):
        super().__init__()
        self.projection = nn.Conv2d(3, width, patch, patch, pad_mode="valid", has_bias=True)
        count = (size // patch) ** 2
        self.token = ms.Parameter(initializer(Zero(), (1, 1, width)))
        self.positions = ms.Parameter(initializer(Zero(), (1, count + 1, width)))

    def construct(self, x):
        x = self.projection(x)
        batch, width = x.shape[:2]
        x = x.reshape(batch, width, -1).swapaxes(1, 2)
        token = ops.broadcast_to(self.token, (batch, 1, width))
        return ops.cat((token, x), axis=1) + self.positions


class Attention(nn.Cell):
    def __init__(self, width, heads, length=0):
        super().__init__()
        self.heads = heads
        self.scale = 1 / math.sqrt(width // heads)
        self.qkv = nn.Dense(width, 3 * width)
        self.output = nn.Dense(width, width)
        self.mask = ms.Tensor(np.triu(np.full((length, length), -np.inf, np.float32), 1))
        self.is_causal = length > 0

    def construct(self, x):
        batch, length, width = x.shape
        qkv = self.qkv(x).reshape(batch, length, 3, self.heads, width // self.heads)
        qkv = qkv.transpose(2, 0, 3, 1, 4)
        scores = ops.matmul(qkv[0], qkv[1].swapaxes(-2, -1)) * self.scale
        if self.is_causal:
            scores = scores + self.mask[:length, :length]
        x = ops.matmul(ops.softmax(scores, axis=-1), qkv[2])
        return self.output(x.swapaxes(1, 2).reshape(batch, length, width))


class Block(nn.Cell):
    def __init__(self, width, heads, length=0):
        super().__init__()
        self.norm1 = nn.LayerNorm((width,), epsilon=1e-5)
        self.attention = Attention(width, heads, length)
        self.norm2 = nn.LayerNorm((width,), epsilon=1e-5)
        self.mlp = nn.SequentialCell(
            nn.Dense(width, 4 * width), nn.GELU(approximate=False), nn.Dense(4 * width, width)
        )

    def construct(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class VisionTransformer(nn.Cell):
    def __init__(self, size=64, patch=8, width=192, depth=6, heads=3, classes=100):
        super().__init__()
        self.embedding = PatchEmbedding(size, patch, width)
        self.blocks = nn.SequentialCell([Block(width, heads) for _ in range(depth)])
        self.norm = nn.LayerNorm((width,), epsilon=1e-5)
        self.head = nn.Dense(width, classes)

    def construct(self, x):
        return self.head(self.norm(self.blocks(self.embedding(x)))[:, 0])


class GPT(nn.Cell):
    def __init__(self, vocabulary=256, length=64, width=192, depth=4, heads=4):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(length, width)
        self.blocks = nn.CellList([Block(width, heads, length) for _ in range(depth)])
        self.norm = nn.LayerNorm((width,), epsilon=1e-5)
        self.head = nn.Dense(width, vocabulary, has_bias=False)

    def construct(self, ids):
        x = self.tokens(ids) + self.positions(ops.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Tagger(nn.Cell):
    def __init__(self, vocabulary=500, width=64, hidden=128, tags=20):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, hidden, batch_first=True, bidirectional=True)
        self.head = nn.Dense(2 * hidden, tags)

    def construct(self, ids):
        states, _ = self.lstm(self.embedding(ids))
        return self.head(states)


def vit():
    return VisionTransformer()


def gpt():
    return GPT()


def tagger():
    return Tagger()

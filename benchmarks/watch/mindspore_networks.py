"""Ten small networks of different kinds in MindSpore, with a place for a planted operator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import nn, ops

Batch = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]


@dataclass(frozen=True)
class Task:
    """A network with what it needs; its `middle` is the cell around which faults are planted."""

    name: str
    build: Callable[[], nn.Cell]
    batch: Callable[[np.random.Generator], Batch]
    middle: str


class Mlp(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.mid, self.head = nn.Dense(16, 32), nn.Dense(32, 32), nn.Dense(32, 4)
        self.act = nn.ReLU()

    def construct(self, x: Any) -> Any:
        return self.head(self.act(self.mid(self.act(self.first(x)))))


class Cnn(nn.Cell):
    def __init__(self, bn: bool = False) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, pad_mode="pad", padding=1)
        self.mid = nn.Conv2d(8, 16, 3, pad_mode="pad", padding=1)
        self.norm = nn.BatchNorm2d(16) if bn else nn.GroupNorm(4, 16)
        self.head = nn.Dense(16, 4)

    def construct(self, x: Any) -> Any:
        h = ops.relu(self.norm(self.mid(ops.relu(self.conv1(x)))))
        return self.head(h.mean((2, 3)))


class Attention(nn.Cell):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm((width,)), nn.LayerNorm((width,))
        self.q, self.k, self.v = (nn.Dense(width, width) for _ in range(3))
        self.out = nn.Dense(width, width)
        self.mlp = nn.SequentialCell(
            nn.Dense(width, 2 * width), nn.GELU(), nn.Dense(2 * width, width)
        )
        self.width = width
        self.mask = ms.Tensor(np.triu(np.full((8, 8), -np.inf, np.float32), 1))

    def construct(self, x: Any) -> Any:
        h = self.norm1(x)
        scores = ops.matmul(self.q(h), self.k(h).swapaxes(-1, -2)) / self.width**0.5
        weights = ops.softmax(scores + self.mask, -1)
        x = x + self.out(ops.matmul(weights, self.v(h)))
        return x + self.mlp(self.norm2(x))


class Transformer(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(20, 16)
        self.mid = Attention(16)
        self.head = nn.Dense(16, 4)

    def construct(self, tokens: Any) -> Any:
        return self.head(self.mid(self.embed(tokens))[:, -1])


class Recurrent(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.inp, self.rec = nn.Dense(8, 16), nn.Dense(16, 16)
        self.mid, self.head = nn.Dense(16, 16), nn.Dense(16, 4)

    def construct(self, x: Any) -> Any:
        h = ops.tanh(self.inp(x[:, 0]))
        for step in range(1, 4):
            h = ops.tanh(self.inp(x[:, step]) + self.rec(h))
        return self.head(self.mid(h))


class UNet(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.down1 = nn.Conv2d(3, 8, 3, pad_mode="pad", padding=1)
        self.mid = nn.Conv2d(8, 16, 3, stride=2, pad_mode="pad", padding=1)
        self.up = nn.Conv2dTranspose(16, 8, 2, stride=2, pad_mode="valid")
        self.head = nn.Dense(16, 4)

    def construct(self, x: Any) -> Any:
        a = ops.relu(self.down1(x))
        b = self.up(ops.relu(self.mid(a)))
        return self.head(ops.cat((a, b), 1).mean((2, 3)))


class AutoEncoder(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.encode, self.mid = nn.Dense(16, 12), nn.Dense(12, 6)
        self.decode, self.head = nn.Dense(6, 12), nn.Dense(12, 4)
        self.act = nn.Tanh()

    def construct(self, x: Any) -> Any:
        return self.head(self.act(self.decode(self.act(self.mid(self.act(self.encode(x)))))))


class Mixer(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.mid = nn.Dense(8, 8), nn.Dense(16, 16)
        self.norm, self.head = nn.LayerNorm((16,)), nn.Dense(16, 4)

    def construct(self, x: Any) -> Any:
        x = x + self.tokens(self.norm(x).swapaxes(1, 2)).swapaxes(1, 2)
        x = x + ops.gelu(self.mid(x))
        return self.head(x.mean(1))


class TextCnn(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(20, 12)
        self.mid = nn.Dense(12, 16)
        self.head = nn.Dense(16, 4)

    def construct(self, tokens: Any) -> Any:
        return self.head(ops.relu(self.mid(self.embed(tokens))).mean(1))


class Gated(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.gate, self.mid, self.head = nn.Dense(16, 16), nn.Dense(16, 16), nn.Dense(16, 4)
        self.sigmoid = nn.Sigmoid()

    def construct(self, x: Any) -> Any:
        return self.head(self.sigmoid(self.gate(x)) * self.mid(x))


def _rows(*shape: int) -> Callable[[np.random.Generator], Batch]:
    def draw(generator: np.random.Generator) -> Batch:
        y = generator.integers(0, 4, 16)
        x = generator.standard_normal((16, *shape)).astype(np.float32)
        x.reshape(16, -1)[np.arange(16), y] += 1.5
        return x, y.astype(np.int32)

    return draw


def _images(generator: np.random.Generator) -> Batch:
    y = generator.integers(0, 4, 8)
    x = generator.standard_normal((8, 3, 12, 12)) + 0.3 * y[:, None, None, None]
    return x.astype(np.float32), y.astype(np.int32)


def _texts(generator: np.random.Generator) -> Batch:
    y = generator.integers(0, 4, 16)
    tokens = generator.integers(0, 16, (16, 8))
    tokens[:, 7] = 16 + y
    return tokens.astype(np.int32), y.astype(np.int32)


TASKS = (
    Task("mlp", Mlp, _rows(16), "mid"),
    Task("cnn", Cnn, _images, "mid"),
    Task("resnet", lambda: Cnn(bn=True), _images, "mid"),
    Task("transformer", Transformer, _texts, "mid"),
    Task("rnn", Recurrent, _rows(4, 8), "mid"),
    Task("unet", UNet, _images, "mid"),
    Task("autoencoder", AutoEncoder, _rows(16), "mid"),
    Task("mixer", Mixer, _rows(8, 16), "mid"),
    Task("textcnn", TextCnn, _texts, "mid"),
    Task("gated", Gated, _rows(16), "mid"),
)

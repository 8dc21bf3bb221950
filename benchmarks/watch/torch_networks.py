"""Ten small networks of different kinds in torch, with their batches and losses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Batch = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Task:
    """A network with what it needs; middle: the submodule around which faults are planted."""

    name: str
    build: Callable[[], nn.Module]
    batch: Callable[[torch.Generator], Batch]
    loss: Callable[[Tensor, Tensor], Tensor]
    middle: str
    is_classifier: bool = True

    def on(self, device: str) -> Task:
        """The same on a device: what is drawn is drawn on the host."""

        def batch(generator: torch.Generator) -> Batch:
            x, y = self.batch(generator)
            return x.to(device), y.to(device)

        return replace(self, build=lambda: self.build().to(device), batch=batch)


def mlp() -> nn.Module:
    return nn.Sequential(
        nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4)
    )


def cnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1),
        nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 4),
    )  # fmt: skip


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(x + self.bn2(self.conv2(h)))


class ResNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.block1 = Block(8)
        self.block2 = Block(8)
        self.head = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        h = self.block2(self.block1(self.stem(x)))
        return self.head(h.mean((2, 3)))


class Attention(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm1(x)).chunk(3, -1)
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        mask = torch.triu(torch.ones_like(scores[0], dtype=torch.bool), 1)
        weights = torch.softmax(scores.masked_fill(mask, float("-inf")), -1)
        x = x + self.out(weights @ v)
        return x + self.mlp(self.norm2(x))


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(20, 16)
        self.layer1 = Attention(16)
        self.layer2 = Attention(16)
        self.head = nn.Linear(16, 20)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.layer2(self.layer1(self.embed(tokens)))).transpose(1, 2)


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(8, 16, batch_first=True)
        self.mix = nn.Linear(16, 16)
        self.head = nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        states, _ = self.rnn(x)
        return self.head(torch.tanh(self.mix(states[:, -1])))


class Lstm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(8, 16)
        self.mix = nn.Linear(16, 16)
        self.head = nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        h = c = x.new_zeros(x.shape[0], 16)
        for step in range(x.shape[1]):
            h, c = self.cell(x[:, step], (h, c))
        return self.head(self.mix(h))


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down1 = nn.Conv2d(1, 8, 3, padding=1)
        self.down2 = nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.norm = nn.GroupNorm(4, 16)
        self.up = nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.last = nn.Conv2d(16, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        a = torch.relu(self.down1(x))
        b = torch.relu(self.norm(self.down2(a)))
        return self.last(torch.cat([a, self.up(b)], 1))


class AutoEncoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(16, 12), nn.Tanh(), nn.Linear(12, 6))
        self.decode = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 16))

    def forward(self, x: Tensor) -> Tensor:
        return self.decode(self.encode(x))


class Mixer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Linear(8, 8)
        self.channels = nn.Linear(16, 16)
        self.norm = nn.LayerNorm(16)
        self.head = nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.tokens(self.norm(x).transpose(1, 2)).transpose(1, 2)
        x = x + F.gelu(self.channels(x))
        return self.head(x.mean(1))


class TextCnn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(20, 12)
        self.conv = nn.Conv1d(12, 16, 3, padding=1)
        self.drop = nn.Dropout(0.1)
        self.head = nn.Linear(16, 4)

    def forward(self, tokens: Tensor) -> Tensor:
        h = torch.relu(self.conv(self.embed(tokens).transpose(1, 2)))
        return self.head(self.drop(h.amax(-1)))


def _rows(*shape: int) -> Callable[[torch.Generator], Batch]:
    """Inputs with a class that they show, with noise."""

    def draw(generator: torch.Generator) -> Batch:
        y = torch.randint(0, 4, (16,), generator=generator)
        x = torch.randn(16, *shape, generator=generator)
        x.view(16, -1)[torch.arange(16), y] += 1.5
        return x, y

    return draw


def _images(generator: torch.Generator) -> Batch:
    y = torch.randint(0, 4, (8,), generator=generator)
    x = torch.randn(8, 3, 12, 12, generator=generator)
    return x + 0.3 * y.view(8, 1, 1, 1), y


def _tokens(generator: torch.Generator) -> Batch:
    start = torch.randint(0, 20, (8, 1), generator=generator)
    tokens = (start + 3 * torch.arange(9)) % 20
    return tokens[:, :-1], tokens[:, 1:]


def _texts(generator: torch.Generator) -> Batch:
    y = torch.randint(0, 4, (16,), generator=generator)
    tokens = torch.randint(0, 16, (16, 10), generator=generator)
    tokens[:, 3] = 16 + y
    return tokens, y


def _masks(generator: torch.Generator) -> Batch:
    x = torch.randn(4, 1, 12, 12, generator=generator)
    return x, (x[:, 0] > 0).long()


def _copies(generator: torch.Generator) -> Batch:
    x = torch.randn(16, 4, generator=generator).repeat(1, 4)
    return x, x


def _squares(output: Tensor, target: Tensor) -> Tensor:
    return F.mse_loss(output, target)


def _classes(output: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(output, target)


TASKS = (
    Task("mlp", mlp, _rows(16), _classes, "2"),
    Task("cnn", cnn, _images, _classes, "3"),
    Task("resnet", ResNet, _images, _classes, "block1.conv2"),
    Task("transformer", Transformer, _tokens, _classes, "layer1.out"),
    Task("gru", Recurrent, _rows(6, 8), _classes, "mix"),
    Task("lstm", Lstm, _rows(6, 8), _classes, "mix"),
    Task("unet", UNet, _masks, _classes, "up"),
    Task("autoencoder", AutoEncoder, _copies, _squares, "encode.2", is_classifier=False),
    Task("mixer", Mixer, _rows(8, 16), _classes, "channels"),
    Task("textcnn", TextCnn, _texts, _classes, "conv"),
)


def planted(model: nn.Module, place: str, make: Callable[[nn.Module], nn.Module]) -> Any:
    """Put `make(submodule)` in a submodule's place; returns it."""
    owner, _, name = place.rpartition(".")
    parent = model.get_submodule(owner)
    made = make(getattr(parent, name))
    setattr(parent, name, made)
    return made

"""A network around one cell that a test names, and one whose functions a test replaces."""

from __future__ import annotations

import copy
import functools
from typing import Any

import mindspore as ms
import mindspore.numpy as mnp
from mindspore import Tensor, mint, nn, ops
from mindspore.ops import gelu as renamed_gelu
from mindspore.ops import operations as P


class Around(nn.Cell):
    """Calls one cell."""

    def __init__(self, cell: str) -> None:
        super().__init__()
        self.layer = eval(cell, {"nn": nn, "mint": mint, "Tensor": Tensor})

    def construct(self, *inputs: Any) -> Any:
        found = self.layer(*inputs)
        return found[0] if isinstance(found, tuple) else found


def around(cell: str) -> nn.Cell:
    return Around(cell)


class Block(nn.Cell):
    """Functions in every way in which a port may call them."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Dense(width, width)
        self.norm = nn.LayerNorm(
            (width,),
            epsilon=1e-7,
        )
        self.slope = nn.LeakyReLU(alpha=0.2)
        self.softmax = nn.Softmax(0)
        self.primitive = P.Softmax(-1)
        self.function = ops.silu
        self.partial = functools.partial(ops.softmax, axis=0)

    def construct(self, x: Any) -> Any:
        x = self.slope(self.norm(self.linear(x)))
        x = self.softmax(x)
        y = P.MatMul()(self.primitive(x), x.swapaxes(0, 1))
        y = 2.0 - (y[:, 0:1] + 1.0)
        x = nn.Tanh()(x * y)
        x = ops.stop_gradient(x) + mnp.exp(x)
        x = renamed_gelu(x) + x.tanh()
        x = self.function(x) + self.partial(x)
        first, second = x.split(3, 1)
        return mint.cat((first, second), 1) / 3


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.block = Block(6)

    def construct(self, x: Any) -> Any:
        return self.block(x) * 2


class Built(nn.Cell):
    """Cells whose building calls are not plain."""

    def __init__(self, width: int, **kwargs: Any) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm((width,)), nn.LayerNorm((2, width))
        self.unpacked = nn.LayerNorm(*((width,),), **kwargs)
        self.original = nn.LeakyReLU(0.3)
        self.copied = copy.deepcopy(self.original)
        self.long = nn.Conv2d(
            width, width * 2 + width // 2, kernel_size=(3, 3), stride=(1, 1), has_bias=True
        )

    def construct(self, x: Any) -> Any:
        return x


def built() -> nn.Cell:
    return Built(6, epsilon=1e-3)


def build() -> nn.Cell:
    return Net()


def loss(output: Any, target: ms.Tensor) -> ms.Tensor:
    found = nn.SmoothL1Loss()(output, target)
    return found.sum()

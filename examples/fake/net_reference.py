"""A small residual network in isograd's own numpy library: the reference."""

from __future__ import annotations

from isograd.frameworks.fake.network import (
    SGD,
    BatchNorm,
    Linear,
    Module,
    ReLU,
    Residual,
    Sequential,
    Tanh,
    Tensor,
    mean_squared_error,
)


def build() -> Module:
    body = Sequential(Linear(8, 8), BatchNorm(8), ReLU(), Linear(8, 8))
    return Sequential(Linear(6, 8), Tanh(), Residual(body), Linear(8, 3))


def loss(output: Tensor, target: Tensor) -> Tensor:
    return mean_squared_error(output, target)


def optimizer(model: Module) -> SGD:
    return SGD(model.parameters(), lr=0.05, momentum=0.9)

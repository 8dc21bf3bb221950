"""The conformance network in MindSpore, of cells that have CPU kernels."""

from __future__ import annotations

from typing import Any

import mindspore as ms
from mindspore import nn, ops


class Gate(nn.Cell):
    def __init__(self, fail: bool) -> None:
        super().__init__()
        self.linear = nn.Dense(4, 4)
        self.fail = fail

    def construct(self, x: Any, *, scale: Any) -> tuple[Any, Any]:
        if self.fail:
            raise ValueError("on purpose")
        return self.linear(x) * scale, (x * x).mean()


class Net(nn.Cell):
    def __init__(self, fail: str | None) -> None:
        super().__init__()
        self.fail = fail
        self.first = nn.Dense(4, 4, has_bias=False)
        self.embed = nn.Embedding(7, 4)
        self.norm = nn.BatchNorm1d(4, momentum=0.9)
        self.act = nn.ReLU()
        self.twice = nn.Dense(4, 4)
        self.drop = nn.Dropout(p=0.5)
        self.gate = Gate(fail == "forward")
        self.tied = nn.Dense(4, 4, has_bias=False)
        self.tied.weight = self.first.weight

    def construct(self, x: Any, tokens: Any, *, scale: Any) -> dict[str, Any]:
        x = self.first(x) + self.embed(tokens)
        x = self.act(self.norm(x))
        x = self.twice(ops.tanh(self.twice(x)))
        gated, average = self.gate(self.drop(x), scale=scale)
        found: dict[str, Any] = {"logits": self.tied(gated), "mean": average}
        if self.fail == "loss":
            found["fail"] = True
        return found


def build(fail: str | None = None) -> nn.Cell:
    if fail == "build":
        raise ValueError("on purpose")
    return Net(fail)


def loss(output: dict[str, Any], target: ms.Tensor) -> ms.Tensor:
    if output.get("fail"):
        raise ValueError("on purpose")
    return ops.mse_loss(output["logits"], target) + output["mean"]


def optimizer(model: Net) -> nn.Optimizer:
    if model.fail == "optimizer":
        raise ValueError("on purpose")
    return nn.SGD(model.trainable_params(), learning_rate=0.02, momentum=0.9)

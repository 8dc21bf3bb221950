"""The conformance network in isograd's numpy library."""

from __future__ import annotations

from typing import Any

from isograd.frameworks.fake.network import (
    SGD,
    BatchNorm,
    Dropout,
    Embedding,
    Linear,
    Module,
    ReLU,
    Tensor,
    mean,
    mean_squared_error,
    tanh,
)


class Gate(Module):
    def __init__(self, fail: bool) -> None:
        self.linear = Linear(4, 4)
        self.fail = fail

    def forward(self, x: Tensor, *, scale: Tensor) -> tuple[Tensor, Tensor]:
        if self.fail:
            raise ValueError("on purpose")
        return self.linear(x) * scale, mean(x * x)


class Net(Module):
    def __init__(self, fail: str | None) -> None:
        self.fail = fail
        self.first = Linear(4, 4, bias=False)
        self.embed = Embedding(7, 4)
        self.norm = BatchNorm(4)
        self.act = ReLU(inplace=True)
        self.twice = Linear(4, 4)
        self.drop = Dropout(0.5)
        self.gate = Gate(fail == "forward")
        self.tied = Linear(4, 4, bias=False)
        self.tied.weight = self.first.weight

    def forward(self, x: Tensor, tokens: Tensor, *, scale: Tensor) -> dict[str, Any]:
        x = self.first(x) + self.embed(tokens)
        x = self.act(self.norm(x))
        x = self.twice(tanh(self.twice(x)))
        gated, average = self.gate(self.drop(x), scale=scale)
        found: dict[str, Any] = {"logits": self.tied(gated), "mean": average}
        if self.fail == "loss":
            found["fail"] = True
        return found


def build(fail: str | None = None) -> Module:
    if fail == "build":
        raise ValueError("on purpose")
    return Net(fail)


def loss(output: dict[str, Any], target: Tensor) -> Tensor:
    if output.get("fail"):
        raise ValueError("on purpose")
    return mean_squared_error(output["logits"], target) + output["mean"]


def optimizer(model: Net) -> SGD:
    if model.fail == "optimizer":
        raise ValueError("on purpose")
    return SGD(model.parameters(), lr=0.02, momentum=0.9)

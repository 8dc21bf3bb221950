"""The conformance network in torch."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self, fail: bool) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.fail = fail

    def forward(self, x: torch.Tensor, *, scale: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if self.fail:
            raise ValueError("on purpose")
        return self.linear(x) * scale, (x * x).mean()


class Net(nn.Module):
    def __init__(self, fail: str | None) -> None:
        super().__init__()
        self.fail = fail
        self.first = nn.Linear(4, 4, bias=False)
        self.embed = nn.Embedding(7, 4)
        self.norm = nn.BatchNorm1d(4)
        self.act = nn.ReLU(inplace=True)
        self.twice = nn.Linear(4, 4)
        self.drop = nn.Dropout(0.5)
        self.gate = Gate(fail == "forward")
        self.tied = nn.Linear(4, 4, bias=False)
        self.tied.weight = self.first.weight

    def forward(
        self, x: torch.Tensor, tokens: torch.Tensor, *, scale: torch.Tensor
    ) -> dict[str, Any]:
        x = self.first(x) + self.embed(tokens)
        x = self.act(self.norm(x))
        x = self.twice(torch.tanh(self.twice(x)))
        gated, average = self.gate(self.drop(x), scale=scale)
        found: dict[str, Any] = {"logits": self.tied(gated), "mean": average}
        if self.fail == "loss":
            found["fail"] = True
        return found


def build(fail: str | None = None) -> nn.Module:
    if fail == "build":
        raise ValueError("on purpose")
    return Net(fail)


def loss(output: dict[str, Any], target: torch.Tensor) -> torch.Tensor:
    if output.get("fail"):
        raise ValueError("on purpose")
    return nn.functional.mse_loss(output["logits"], target) + output["mean"]


def optimizer(model: Net) -> torch.optim.Optimizer:
    if model.fail == "optimizer":
        raise ValueError("on purpose")
    return torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)

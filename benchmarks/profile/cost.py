"""What recording costs: steps that isograd profiles beside those of torch's own profiler.

`python benchmarks/profile/cost.py [--rounds N]`: a step of ResNet-50's bottlenecks (batch 8)
plain, under torch.profiler with shapes, and in each window of a recording; rounds take turns. The
ratios are of medians over all rounds.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import isograd
from isograd.profile.read.open import open_profile

STEPS = 40


class Bottleneck(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.narrow = nn.Conv2d(width, width // 4, 1, bias=False)
        self.first = nn.BatchNorm2d(width // 4)
        self.middle = nn.Conv2d(width // 4, width // 4, 3, padding=1, bias=False)
        self.second = nn.BatchNorm2d(width // 4)
        self.wide = nn.Conv2d(width // 4, width, 1, bias=False)
        self.third = nn.BatchNorm2d(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.first(self.narrow(x)).relu()
        y = self.second(self.middle(y)).relu()
        return (x + self.third(self.wide(y))).relu()


def network() -> nn.Module:
    """16 bottlenecks behind a first convolution, as many as ResNet-50 has."""
    torch.manual_seed(0)
    blocks = [Bottleneck(128) for _ in range(16)]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10)]
    return nn.Sequential(nn.Conv2d(3, 128, 7, 4, 3), *blocks, *head)


def train(model: nn.Module, steps: int) -> list[float]:
    """Seconds of each step."""
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    x, y = torch.randn(8, 3, 64, 64), torch.zeros(8, dtype=torch.long)
    found = []
    for _ in range(steps):
        began = time.perf_counter()
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        found.append(time.perf_counter() - began)
    return found


def recorded(model: nn.Module) -> dict[str, list[float]]:
    """Seconds of the steps of each window of a recording."""
    with tempfile.TemporaryDirectory(prefix="cost-") as folder:
        with isograd.profile(model, Path(folder) / "run", steps=STEPS):
            train(model, STEPS + 2)
        marks = open_profile(Path(folder) / "run").marks
    assert marks is not None
    found: dict[str, list[float]] = defaultdict(list)
    for window, seconds in zip(marks.window, marks.steps.clock_s, strict=True):
        found[window].append(float(seconds))
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    model, times = network(), defaultdict[str, list[float]](list)
    train(model, 5)
    for _ in range(rounds):
        times["plain"] += train(model, 12)
        own: Any = torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True
        )
        with contextlib.ExitStack() as stack:
            stack.enter_context(own)
            times["torch.profiler, shapes"] += train(model, 12)[1:]
        for window, seconds in recorded(model).items():
            times[f"isograd, {window}"] += seconds
    usual = float(np.median(times["plain"]))
    print(f"{platform.machine()}, {os.cpu_count()} cores, {time.strftime('%Y-%m-%d')}\n")
    print("| steps | ms, median | of the plain step |\n|---|---|---|")
    for name, seconds in times.items():
        median = float(np.median(seconds))
        print(f"| {name} | {median * 1e3:.1f} | {median / usual:.2f} |")


if __name__ == "__main__":
    main()

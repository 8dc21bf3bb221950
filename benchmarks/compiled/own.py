"""Ports that ask for the static graph themselves: none that it breaks may be called equivalent.

    python benchmarks/compiled/own.py [--only TEXT] [--limit S]

`@ms.jit`, `ms.jit(f)`, `jit(fullgraph=True)`, `ms.jit_class`, `set_context(mode=GRAPH_MODE)` and
mixed precision, on one network; each is verified whole, at the case file's usual settings.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from isograd.progress import SilentProgress
from isograd.verify.ladder import verify_case
from isograd.verify.session import StartWorker
from isograd.worker.warm import WarmWorkers

_REFERENCE = """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
    def forward(self, x):
        return torch.tanh(self.fc(x)) + x

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(4, 4)
        self.block = Block()
    def forward(self, x):
        return self.block(self.stem(x))

def build():
    return Net()
def loss(output, target):
    return ((output - target) ** 2).mean()
def optimizer(model):
    return torch.optim.SGD(model.parameters(), lr=0.1)
"""
_PORT = """
import dataclasses
import functools
from typing import Any
import mindspore as ms
import numpy as np
from mindspore import amp, nn, ops
{before}
class Block(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(4, 4)
        {made}
    {decorator}
    def construct(self, x):
        {body}
    {method}

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.stem = nn.Dense(4, 4)
        self.block = Block()
    def construct(self, x):
        return self.block(self.stem(x))

def build():
    {built}
{on_loss}
def loss(output, target):
    return ((output - target) ** 2).mean()
def optimizer(model):
    return nn.SGD(model.trainable_params(), learning_rate=0.1)
"""
_CASE = """
[reference]
model = "net_torch.py:build"
loss = "net_torch.py:loss"
optimizer = "net_torch.py:optimizer"
[port]
model = "net_mindspore.py:build"
loss = "net_mindspore.py:loss"
optimizer = "net_mindspore.py:optimizer"
[[inputs]]
shape = [3, 4]
[[targets]]
shape = [3, 4]
[verify]
steps = 3
"""
_PLAIN = "return ops.tanh(self.fc(x)) + x"
_EXTENDED = "ys = [ops.tanh(self.fc(x))]; ys.extend([x]); return ys[0] + ys[1]"
_TWO_LOOPS = "ys = [y for y in [ops.tanh(self.fc(x))] for _ in range(1)]; return ys[0] + x"
_PARTIAL = "self.added = functools.partial(ops.add)"
_PAIR = "class Pair:\n    def __init__(self, a, b):\n        self.a, self.b = a, b\n"
_GRAPH = "ms.set_context(mode=ms.GRAPH_MODE)"


@dataclass(frozen=True)
class Own:
    """A port that asks for the static graph; breaks: whether the static graph breaks it."""

    title: str
    breaks: bool
    body: str = _PLAIN
    decorator: str = ""
    before: str = ""
    made: str = ""
    method: str = ""
    built: str = "return Net()"
    on_loss: str = ""

    def text(self) -> str:
        """The port's file."""
        method = "\n    ".join(self.method.splitlines())
        values = {**vars(self), "method": method, "body": "\n        ".join(self.body.split("; "))}
        return _PORT.format(**values)


OWNS = (
    Own("@ms.jit that loses a gradient (list.extend)", True, _EXTENDED, "@ms.jit"),
    Own("@ms.jit that is refused (two loops)", True, _TWO_LOOPS, "@ms.jit"),
    Own("jit(fullgraph=True) that is refused", True, _TWO_LOOPS, "@ms.jit(fullgraph=True)"),
    Own(
        "ms.jit of a method, kept on self, that loses a gradient",
        True,
        "return self.fast(x)",
        made="self.fast = ms.jit(self.slow)",
        method="def slow(self, x):\n    ys = [ops.tanh(self.fc(x))]\n    ys.extend([x])\n"
        "    return ys[0] + ys[1]",
    ),
    Own(
        "ms.jit_class made of tensors",
        True,
        "p = Pair(ops.tanh(self.fc(x)), x); return p.a + p.b",
        "@ms.jit",
        before=f"@ms.jit_class\n{_PAIR}",
    ),
    Own("GRAPH_MODE that loses a gradient", True, _EXTENDED, before=_GRAPH),
    Own("GRAPH_MODE that is refused", True, _TWO_LOOPS, before=_GRAPH),
    Own(
        "GRAPH_MODE set in the builder, functools.partial",
        True,
        "return self.added(ops.tanh(self.fc(x)), x)",
        made=_PARTIAL,
        built=f"{_GRAPH}; return Net()",
    ),
    Own(
        "@ms.jit in which an alias is augmented",
        True,
        "y = ops.tanh(self.fc(x)); z = y * 1.0; w = z; w += x; return z",
        "@ms.jit",
    ),
    Own(
        "mixed precision (O0) and @ms.jit that loses a gradient",
        True,
        _EXTENDED,
        "@ms.jit",
        built='return amp.auto_mixed_precision(Net(), "O0")',
    ),
    Own("clean: @ms.jit", False, decorator="@ms.jit"),
    Own("clean: GRAPH_MODE", False, before=_GRAPH),
    Own(
        "clean: ms.jit_class of constants",
        False,
        "return ops.tanh(self.fc(x)) * SCALES.a + x * SCALES.b",
        "@ms.jit",
        before=f"@ms.jit_class\n{_PAIR}SCALES = Pair(1.0, 1.0)",
    ),
    Own("clean: a jitted loss", False, on_loss="@ms.jit"),
)


def verdict(own: Own, start: StartWorker) -> tuple[str, str]:
    """The verdict of the whole verification, and the codes with their causes."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "net_torch.py").write_text(_REFERENCE, encoding="utf-8")
        (place / "net_mindspore.py").write_text(own.text(), encoding="utf-8")
        (place / "case.toml").write_text(_CASE, encoding="utf-8")
        report = verify_case(
            place / "case.toml", seed=0, keep=None, progress=SilentProgress(), start=start
        )
    codes = [f"{f.code} {f.cause.id if f.cause else ''}".strip() for f in report.findings]
    return report.verdict.value, ", ".join(dict.fromkeys(codes))


def rows(only: str, limit_s: float, start: StartWorker) -> Iterator[bool]:
    """Print a row for each port; whether it is right."""
    until = time.monotonic() + limit_s
    for own in OWNS:
        if only in own.title and time.monotonic() < until:
            found, codes = verdict(own, start)
            is_right = (found == "equivalent") is not own.breaks
            print(
                f"| {own.title} | {found} | {codes} | {'yes' if is_right else 'NO'} |", flush=True
            )
            yield is_right


def main() -> int:
    """Verify all; exit status 1 where a verdict is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="ports whose title holds this")
    parser.add_argument("--limit", type=float, default=1e9, help="begin none after SECONDS")
    given = parser.parse_args()
    print("| port | verdict | findings | right |")
    print("|---|---|---|---|")
    with WarmWorkers() as warm:
        right = list(rows(given.only, given.limit, warm.worker))
    return 0 if all(right) else 1


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())

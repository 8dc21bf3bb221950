"""The planted bottlenecks of torch and MindSpore, as parts of a training script.

The line that ends in `#!` is the planted one: a culprit is right where the finding names that line
or, where the plant is a setting, one of `codes`. `mended` are parts of the same script
without the plant.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TORCH = """\
import gc, io, json, logging, random, sys, time
import numpy as np
import torch
from torch import nn
torch.manual_seed(0)
torch.set_num_threads(1)
WORKERS, BATCH, PREFETCH, COLLATE, WIDTH, ROWS = 0, {batch}, None, None, {width}, {rows}
{setup}

class Data(torch.utils.data.Dataset):
    def __len__(self): return 4000
    def __getitem__(self, index):
        x = torch.full((256,), float(index % 5))
        {sample}
        return x, index % 4

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(256, WIDTH), nn.Linear(WIDTH, 512)
        self.c = nn.Linear(512, 4)
        {layers}
    def forward(self, x):
        x = self.b(self.a(x.repeat(ROWS, 1)).relu())
        {forward}
        return self.c(x).view(ROWS, -1, 4).mean(0)

net = Net()
{optimizer}
loader = torch.utils.data.DataLoader(
    Data(), BATCH, num_workers=WORKERS, prefetch_factor=PREFETCH, collate_fn=COLLATE)
loss_of = nn.CrossEntropyLoss()
for number, (x, y) in enumerate(loader):
    optimizer.zero_grad()
    loss = loss_of(net(x), y)
    loss.backward()
    {before}
    optimizer.step()
    {after}
    if number == 24:
        break
"""
PARTS = (
    "setup", "sample", "layers", "forward", "optimizer", "before", "after", "transform",
)  # fmt: skip
SGD = "optimizer = torch.optim.SGD(net.parameters(), 0.01)"

MINDSPORE = """\
import io, json, sys, time
import numpy as np
import mindspore, mindspore.dataset as ds
from mindspore import nn, ops
mindspore.runtime.launch_blocking()  # else eager MindSpore spins, and hides the plant when busy
WIDTH, BATCH, ROWS = {width}, {batch}, {rows}
{setup}

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Dense(64, WIDTH), nn.Dense(WIDTH, 512), nn.Dense(512, 4)
    def construct(self, x):
        x = self.a(ops.tile(x, (ROWS, 1)))
        {forward}
        return self.c(self.b(x)).reshape(ROWS, -1, 4).mean(0)

def rows():
    for index in range(4000):
        x = np.full(64, index % 5, np.float32)
        {sample}
        yield x, np.int32(index % 4)

def transform(x):
    {transform}
    return x

net = Net().set_train()
optimizer = nn.SGD(net.trainable_params(), 0.01)
loss_of = nn.CrossEntropyLoss()
gradients = mindspore.value_and_grad(
    lambda x, y: loss_of(net(x), y), None, net.trainable_params())
data = ds.GeneratorDataset(rows, ["x", "y"], shuffle=False)
data = data.map(transform, ["x"], num_parallel_workers=1).batch(BATCH)
for number, (x, y) in enumerate(data.create_tuple_iterator()):
    loss, found = gradients(x, y)
    optimizer(found)
    {after}
    if number == 18:
        break
"""


@dataclass(frozen=True)
class Case:
    """parts: what is put into the script. limit: the verdict's word; codes: culprits by code."""

    name: str
    framework: str
    limit: str
    parts: dict[str, str]
    codes: tuple[str, ...] = ()
    mended: dict[str, str] = field(default_factory=dict)

    def script(
        self, width: int = 512, batch: int = 8, rows: int = 1, *, is_mended: bool = False
    ) -> str:
        """The training script, with a network of this size.

        rows: how often the network takes each sample in a step, for more work with the same
        weights.  is_mended: without the plant.
        """
        parts = self.mended_parts() if is_mended else self.parts
        text = TORCH if self.framework == "torch" else MINDSPORE
        for name in PARTS:
            part = parts.get(name, SGD if name == "optimizer" else "pass")
            indent = next(
                (line[: len(line) - len(line.lstrip())] for line in text.splitlines()
                 if f"{{{name}}}" in line), "")  # fmt: skip
            text = text.replace(f"{{{name}}}", part.replace("\n", "\n" + indent))
        for name, value in (("width", width), ("batch", batch), ("rows", rows)):
            text = text.replace(f"{{{name}}}", str(value))
        return text

    def mended_parts(self) -> dict[str, str]:
        """Parts without the plant: what `mended` gives, else only those that prepare something."""
        kept = {name: self.parts[name] for name in ("setup", "optimizer") if name in self.parts}
        return {**kept, **self.mended}


def load() -> tuple[Case, ...]:
    """All cases of cases.toml."""
    text = Path(__file__).with_name("cases.toml").read_text(encoding="utf-8")
    found = []
    for entry in tomllib.loads(text)["case"]:
        known = ("name", "framework", "limit", "codes", "mended")
        parts = {name: value for name, value in entry.items() if name not in known}
        codes = tuple(entry.get("codes", ()))
        mended = entry.get("mended", {})
        name, framework, limit = entry["name"], entry["framework"], entry["limit"]
        found.append(Case(name, framework, limit, parts, codes, mended))
    return tuple(found)


CASES = load()

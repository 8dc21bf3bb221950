"""Methods that forward calls and that change what they are given."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.convert.support import converted, port_of, run_both

from isograd.convert import Level

NETWORK = """
import torch
from torch import nn


class Ends(nn.Module):
    def fill(self, t, w):
        first = t[:, :w]
        first.masked_fill_(first > -9, -1.0)
        last = t[:, -w:]
        last.masked_fill_(last > -9, -2.0)

    def forward(self, x):
        a = x * 1
        self.fill(a, 2)
        return a


class Deep(nn.Module):
    def forward(self, x):
        a = x * 1
        b = a
        self.outer(1, values=a[:1])
        return b

    def outer(self, n, values):
        self.inner(values, n)

    @staticmethod
    def inner(values, n):
        values.add_(n)


class Kept(nn.Module):
    def forward(self, x):
        self.memory = x * 1
        self.decay(self.memory)
        for _ in range(2):
            self.decay(self.memory)
        return self.memory

    def decay(self, memory):
        memory.mul_(0.5)
"""
RUN = """
import importlib, json
net = importlib.import_module("net")
x = [[float(v) for v in range(6)], [float(v) for v in range(6, 12)]]
print(json.dumps([make()(TENSOR(x)).tolist() for make in (net.Ends, net.Deep, net.Kept)]))
"""


def test_a_change_of_what_the_caller_reads_reaches_it(tmp_path: Path) -> None:
    port, report = converted(tmp_path, {"net.py": NETWORK})
    assert not report.findings
    expected, found = run_both(tmp_path, port, RUN)
    assert found == expected


@pytest.mark.parametrize(
    "body",
    [
        "x = self.half(x)\n        return x",
        "self.half(x)\n        return x",
        "return self.half(x + 1)",
    ],
)
def test_what_no_caller_reads_or_is_forwards_input_is_bound_anew(body: str) -> None:
    port, findings = port_of(
        "import torch\nfrom torch import nn\nclass Net(nn.Module):\n"
        f"    def forward(self, x):\n        {body}\n"
        "    def half(self, t):\n        t.mul_(0.5)\n        return t\n"
    )
    is_read = body.startswith("self.")
    assert ("compat.overwrite(t, t * 0.5)" in port) is is_read
    told = [] if is_read else [("in-place-input", Level.LOOK)]
    assert [(one.code, one.level) for one in findings] == told
    if told:
        assert findings[0].message.startswith("half changes its input t,")

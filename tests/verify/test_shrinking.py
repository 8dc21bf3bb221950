"""A random network that alarms is reduced to the lines that alarm, and still runs in torch."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "benchmarks" / "verify" / "random_networks"
#: The alarm: a part of the network that holds all of these lines.
SCRIPT = """
import json, sys
sys.path.insert(0, sys.argv[1])
import torch
from generate import Generator
from shrink import shrunk

drawn = (Generator(seed).network() for seed in range(int(sys.argv[2]), 1000))
network = next(one for one in drawn if len(one.lines) > int(sys.argv[4]))
cause = network.lines[int(sys.argv[3]):int(sys.argv[4])]
asked = []

def alarms(part):
    asked.append(len(part.lines))
    return all(line in part.lines for line in cause)

least = shrunk(network, alarms)
scope = {}
exec(least.torch_source(), scope)
inputs = [network.tensors[name] for name in least.inputs]
given = [
    torch.randn(t.shape) if t.dtype == "float32" else torch.zeros(t.shape, dtype=torch.int64)
    for t in inputs
]
output = scope["build"]()(*given)
targets = [torch.randn(t.shape) for t in least.ending.targets]
loss = float(scope["loss"](output, *targets)) if least.ending.loss else None
print(json.dumps([len(network.lines), [l.api for l in least.lines], [l.api for l in cause],
                  loss, len(asked)]))
"""


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is needed")
@pytest.mark.parametrize(
    ("seed", "first", "last"),
    [
        pytest.param(11, 3, 4, id="one line"),
        pytest.param(11, 2, 4, id="two lines"),
        pytest.param(75, 0, 3, id="three lines"),
    ],
)
def test_what_is_left_is_what_alarms(seed: int, first: int, last: int) -> None:
    command = [sys.executable, "-c", SCRIPT, str(FOLDER), str(seed), str(first), str(last)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")}
    found = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert found.returncode == 0, found.stderr
    before, left, cause, loss, asked = json.loads(found.stdout.splitlines()[-1])
    assert before > len(cause)
    assert left == cause
    assert (loss is None) == (len(cause) == 1)  # a line that alarms alone needs no training
    assert asked <= before * (before + 3)  # the bound of delta debugging (Zeller, 2002)

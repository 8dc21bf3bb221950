"""Two processes under msrun share gradients, sums and positions."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mindspore")

SCRIPT = """
import json, sys
import mindspore as ms
import numpy as np

ms.set_context(pynative_synchronize=True)
from isograd import runtime as composites

composites.init_process_group(backend="gloo")
rank = composites.get_rank()
network = composites.DistributedDataParallel(composites.Linear(2, 1))
optimizer = composites.SGD(network.parameters(), lr=0.1)
composites.backward(network(ms.Tensor(np.full((3, 2), rank + 1.0, np.float32))).mean())
total = ms.Tensor([1.0 + rank])
composites.all_reduce(total)
sampler = composites.DistributedSampler(range(6), shuffle=False)
weight = network.module.weight
told = [weight.grad.asnumpy().tolist(), weight.asnumpy().tolist(), total.asnumpy().tolist()]
with open(f"{sys.argv[1]}/{rank}.json", "w") as file:
    json.dump([*told, list(sampler)], file)
composites.destroy_process_group()
"""


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def test_two_processes_agree(tmp_path: Path) -> None:
    msrun = Path(sys.executable).with_name("msrun")
    if not msrun.exists():
        pytest.skip("msrun does not lie beside this interpreter")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    source = str(Path(__file__).parents[2] / "src")
    path = f"{msrun.parent}{os.pathsep}{os.environ.get('PATH', '')}"
    done = subprocess.run(
        [
            *(str(msrun), "--worker_num=2", "--local_worker_num=2", "--join=True"),
            *(f"--master_port={free_port()}", f"--log_dir={tmp_path / 'log'}"),
            *(str(script), str(tmp_path)),
        ],
        env={**os.environ, "PATH": path, "PYTHONPATH": source},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    first, second = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2))
    assert first[0] == second[0] == [[1.5, 1.5]]
    assert first[1] == second[1]
    assert first[2] == second[2] == [3.0]
    assert (first[3], second[3]) == ([0, 2, 4], [1, 3, 5])

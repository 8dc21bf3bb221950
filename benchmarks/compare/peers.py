"""TroubleShooter and msprobe on the same tensors, each in a virtual environment of its own.

The time is that of the tool's own process, less that of one which compares a single tiny pair.
"""

from __future__ import annotations

import json
import os
import shutil
import site
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

#: Seconds that an installation may take.
INSTALL_S = 900


@dataclass(frozen=True)
class Peer:
    """A tool: what pip installs, what its data must look like, and how it is called."""

    package: str
    prepare: Callable[[Path, Path], None]
    command: Callable[[Path, Path], list[str]]
    needs_torch: bool = False


def _as_is(source: Path, target: Path) -> None:
    for side in ("a", "b"):
        (target / side).mkdir(parents=True)
        for file in (source / side).iterdir():
            os.link(file, target / side / file.name)


def _as_dump(source: Path, target: Path) -> None:
    """The layout of msprobe's dumps of PyTorch."""
    import torch

    for side in ("a", "b"):
        folder = target / side / "step0" / "rank0"
        (folder / "dump_tensor_data").mkdir(parents=True)
        data, stack = {}, ["File net.py, line 1, in forward, \n relu()"]
        for number, file in enumerate(sorted((source / side).iterdir())):
            tensor = torch.from_numpy(np.load(file))
            name = f"Functional.relu.{number}.forward"
            data_name = f"{name}.output.0.pt"
            torch.save(tensor, folder / "dump_tensor_data" / data_name)
            output = {
                "type": "torch.Tensor", "dtype": "torch.float32", "shape": list(tensor.shape),
                "Max": float(tensor.max()), "Min": float(tensor.min()),
                "Mean": float(tensor.mean()), "Norm": float(tensor.norm()),
                "requires_grad": False, "data_name": data_name,
            }  # fmt: skip
            data[name] = {"input_args": [], "input_kwargs": {}, "output": [output]}
        head = {"task": "tensor", "level": "L1", "framework": "pytorch"}
        place = {"dump_data_dir": str(folder / "dump_tensor_data")}
        (folder / "dump.json").write_text(json.dumps(head | place | {"data": data}))
        (folder / "stack.json").write_text(json.dumps({"0": [list(data), stack]}))
        (folder / "construct.json").write_text(json.dumps(dict.fromkeys(data)))


_CALL = "import sys, troubleshooter as t; t.migrator.compare_npy_dir(sys.argv[1], sys.argv[2])"


def _troubleshooter(environment: Path, data: Path) -> list[str]:
    return [str(environment / "bin/python"), "-c", _CALL, str(data / "a"), str(data / "b")]


def _msprobe(environment: Path, data: Path) -> list[str]:
    dumps = [str(data / side / "step0" / "rank0" / "dump.json") for side in ("a", "b")]
    return [
        str(environment / "bin/msprobe"), "compare", "--target_path", dumps[0], "--golden_path",
        dumps[1], "--output_path", str(data / "out"),
    ]  # fmt: skip


PEERS = {
    "TroubleShooter": Peer("troubleshooter", _as_is, _troubleshooter),
    "msprobe": Peer("mindstudio-probe", _as_dump, _msprobe, needs_torch=True),
}


def measure_peer(name: str, folder: Path) -> dict[str, Any]:
    """Install a tool and measure it on `folder/pairs`; `error` says why it could not be."""
    peer = PEERS[name]
    work = Path(tempfile.mkdtemp(prefix=f"{peer.package}-", dir=folder))
    try:
        environment = _install(peer, work / "environment")
        tiny = work / "tiny"
        for side in ("a", "b"):
            (tiny / side).mkdir(parents=True)
            np.save(tiny / side / "t0.npy", np.ones(8, "f4"))
        seconds, rss_bytes = {}, 0
        for which, source in (("start", tiny), ("all", folder / "pairs")):
            peer.prepare(source, work / which)
            seconds[which], rss_bytes = _timed(peer.command(environment, work / which))
            shutil.rmtree(work / which)
        version = _version(peer, environment)
    except (subprocess.SubprocessError, OSError, ImportError, RuntimeError) as error:
        return {"error": str(error).splitlines()[-1]}
    finally:
        shutil.rmtree(work, ignore_errors=True)
    elapsed_s = max(seconds["all"] - seconds["start"], 1e-9)
    return {"version": version, "seconds": elapsed_s, "rss_bytes": rss_bytes, "whole": seconds}


def _install(peer: Peer, environment: Path) -> Path:
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    pip = [str(environment / "bin/python"), "-m", "pip", "install", "--quiet", peer.package]
    subprocess.run(pip, check=True, timeout=INSTALL_S, capture_output=True)
    if peer.needs_torch:
        inside = next(environment.glob("lib/python*/site-packages"))
        # What pip installed stands first; only torch is taken from this environment.
        (inside / "zz_torch.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    return environment


def _timed(command: list[str]) -> tuple[float, int]:
    """Seconds and peak memory in bytes of a process; RuntimeError where it fails."""
    with tempfile.TemporaryFile("w+") as output:
        started = time.perf_counter()
        process = subprocess.Popen(command, stdout=output, stderr=output)
        _, status, usage = os.wait4(process.pid, 0)
        elapsed_s = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        if process.returncode:
            last = (output.read().strip().splitlines() or ["nothing said"])[-1]
            raise RuntimeError(f"it ended with {process.returncode}: {last:.200}")
    return elapsed_s, usage.ru_maxrss * 1024


def _version(peer: Peer, environment: Path) -> str:
    code = f"import importlib.metadata as m; print(m.version({peer.package!r}))"
    command = [str(environment / "bin/python"), "-c", code]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

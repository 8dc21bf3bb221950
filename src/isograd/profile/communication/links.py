"""`isograd profile --links`: what a message costs, measured with processes of torch over gloo.

Where a launcher (torchrun) started the processes, its group is measured; else two processes are
started on this machine.
"""

from __future__ import annotations

import contextlib
import importlib.util
import multiprocessing
import os
import queue
import socket
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from isograd.errors import FrameworkMissingError, ProfileError
from isograd.profile.communication.cost import fit_affine
from isograd.profile.communication.segments import Affine, Floats

SIZES = tuple(1 << power for power in range(10, 25, 2))
REPEATS = 12
LIMIT_S = 120.0


@dataclass(frozen=True)
class LinkCost:
    """Median seconds of an AllReduce by size, and the affine cost that fits them."""

    processes: int
    size_bytes: Floats
    seconds: Floats
    affine: Affine


def measure_links(processes: int = 2) -> LinkCost:
    """Measure an AllReduce of each size; raise ProfileError where the processes do not answer."""
    if importlib.util.find_spec("torch") is None:
        raise FrameworkMissingError(
            "torch, which measures links, is not installed",
            "Install it: pip install 'isograd[torch]'.",
        )
    if "WORLD_SIZE" in os.environ and "RANK" in os.environ:
        return _cost(int(os.environ["WORLD_SIZE"]), _measure(None))
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    port = _free_port()
    children = [
        context.Process(target=_child, args=(rank, processes, port, answers), daemon=True)
        for rank in range(processes)
    ]
    try:
        for child in children:
            child.start()
        found = answers.get(timeout=LIMIT_S)
    except queue.Empty as error:
        raise ProfileError(
            f"{processes} processes did not measure their link within {LIMIT_S:.0f} s",
            "Start fewer processes, or start them with torchrun.",
        ) from error
    finally:
        for child in children:
            child.join(timeout=10)
            with contextlib.suppress(ValueError):
                child.kill()
    return _cost(processes, found)


def _cost(processes: int, seconds: list[float]) -> LinkCost:
    sizes, times = np.asarray(SIZES, dtype=np.float64), np.asarray(seconds)
    affine = fit_affine(sizes, times)
    assert affine is not None
    return LinkCost(processes, sizes, times, affine)


def _child(rank: int, processes: int, port: int, answers: Any) -> None:
    os.environ |= {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "RANK": str(rank),
        "WORLD_SIZE": str(processes),
    }
    found = _measure(rank)
    if rank == 0:
        answers.put(found)


def _measure(rank: int | None) -> list[float]:
    """Median seconds of each size, in this process of the group."""
    import torch
    from torch import distributed

    torch.set_num_threads(1)
    if not distributed.is_initialized():
        distributed.init_process_group("gloo")
    medians = []
    for size in SIZES:
        tensor = torch.zeros(size // 4)
        times = []
        for _ in range(REPEATS):
            distributed.barrier()
            start = time.perf_counter()
            distributed.all_reduce(tensor)
            times.append(time.perf_counter() - start)
        medians.append(float(np.median(times[2:])))
    if rank is not None:
        distributed.destroy_process_group()
    return medians


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])

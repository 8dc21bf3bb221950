"""DistributedDataParallel over gloo, two processes: does the predicted order of settings hold?

`python benchmarks/profile/ddp.py [--sample] [--out FILE]`. From the times at which gradients become
ready and the measured cost of a message, the time of the backward pass is predicted for three
bucket sizes; then the three are measured, in turn step by step.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))
import numpy as np
from benchmarks.profile.planted.run import summarise

from isograd.profile.communication.cost import fit_affine
from isograd.profile.communication.segments import Affine, best_segments, finish

LAYERS, WIDTH, BATCH, PROCESSES = 60, 192, 16, 2
#: Name and bucket_cap_mb. DDP's first bucket holds at most 1 MB whatever is asked.
#: Of repeated times the fastest tenth counts: what a busy machine adds is no property of a setting.
TENTH = 0.1
SETTINGS = (("each gradient alone", 1e-6), ("1 MB", 1.0), ("all in one", 1e4))


def worker(rank: int, folder: str, steps: int) -> None:
    """One process of the group; rank 0 writes what it measured."""
    import torch
    from torch import distributed

    torch.set_num_threads(1)
    torch.manual_seed(0)
    store = f"file://{folder}/store"
    distributed.init_process_group("gloo", init_method=store, rank=rank, world_size=PROCESSES)
    sizes = [1 << power for power in range(9, 24)]
    times = [_message(size) for size in sizes]
    ready, size_bytes = _ready_times(steps)
    measured, ends = _measured(steps)
    if rank == 0:
        answer = {
            "sizes": sizes,
            "times": times,
            "ready": ready.tolist(),
            "size_bytes": size_bytes,
            "ends": ends,
            "measured": measured,
        }
        (Path(folder) / "answer.json").write_text(json.dumps(answer))
    distributed.barrier()
    distributed.destroy_process_group()


def _network() -> Any:
    import torch
    from torch import nn

    torch.manual_seed(0)
    return nn.Sequential(*[nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)])


def _message(size: int, repeats: int = 40) -> float:
    """Seconds of an AllReduce of `size` bytes."""
    import torch
    from torch import distributed

    tensor, times = torch.zeros(size // 4), []
    for _ in range(repeats):
        distributed.barrier()
        start = time.perf_counter()
        distributed.all_reduce(tensor)
        times.append(time.perf_counter() - start)
    return float(np.quantile(times, TENTH))


def _ready_times(steps: int) -> tuple[Any, list[int]]:
    """Seconds from the beginning of the backward pass to each gradient, in their order."""
    import torch
    from torch import distributed

    network, found, now = _network(), [], [0.0]
    parameters = list(network.parameters())
    row: list[float] = []
    order: list[int] = []

    def watch(number: int) -> None:
        def is_ready(_: Any) -> None:
            row.append(time.perf_counter() - now[0])
            order.append(number)

        parameters[number].register_post_accumulate_grad_hook(is_ready)

    for number in range(len(parameters)):
        watch(number)
    x = torch.randn(BATCH, WIDTH)
    for _ in range(steps):
        distributed.barrier()
        loss = network(x).sum()
        row.clear()
        order.clear()
        now[0] = time.perf_counter()
        loss.backward()
        found.append(list(row))
    sizes = [parameters[number].numel() * 4 for number in order]
    return np.quantile(np.asarray(found), TENTH, axis=0), sizes


def _measured(steps: int) -> tuple[dict[str, list[float]], dict[str, list[int]]]:
    """Seconds of the backward pass with its messages; and the gradients at which buckets end."""
    import torch
    from torch import distributed
    from torch.nn.parallel import DistributedDataParallel

    models = {
        name: DistributedDataParallel(_network(), bucket_cap_mb=cap) for name, cap in SETTINGS
    }
    x = torch.randn(BATCH, WIDTH)
    found: dict[str, list[float]] = {name: [] for name, _ in SETTINGS}
    for _ in range(steps + 2):
        for name, model in models.items():
            distributed.barrier()
            loss = model(x).sum()
            start = time.perf_counter()
            loss.backward()
            found[name].append(time.perf_counter() - start)
    ends = {}
    for name, model in models.items():
        buckets = model._get_ddp_logging_data()["rebuilt_per_bucket_param_indices"]
        counts = [len(one.split()) for one in buckets.split(",") if one.strip()]
        ends[name] = np.cumsum(counts).tolist()
    return {name: times[2:] for name, times in found.items()}, ends


def answer(content: dict[str, Any]) -> dict[str, Any]:
    """Predicted and measured milliseconds of each setting, and whether the order agrees."""
    size = np.asarray(content["size_bytes"], dtype=np.float64)
    ready = np.maximum.accumulate(np.asarray(content["ready"]))
    model = fit_affine(np.asarray(content["sizes"], dtype=np.float64), np.asarray(content["times"]))
    assert isinstance(model, Affine)
    rows = []
    for name, _ in SETTINGS:
        predicted = finish(content["ends"][name], ready, size, model)
        times = content["measured"][name]
        rows.append(
            {
                "setting": name,
                "messages": len(content["ends"][name]),
                "predicted_ms": round(predicted * 1e3, 2),
                "measured_ms": round(float(np.quantile(times, TENTH)) * 1e3, 2),
                "median_ms": round(float(np.median(times)) * 1e3, 2),
            }
        )
    by_prediction = [row["setting"] for row in sorted(rows, key=lambda row: row["predicted_ms"])]
    by_clock = [row["setting"] for row in sorted(rows, key=lambda row: row["measured_ms"])]
    best = best_segments(ready, size, model)
    return {
        "settings": rows,
        "backward_ms": round(float(ready[-1]) * 1e3, 2),
        "message": f"{model.a_s * 1e6:.0f} µs + {model.b_s_per_byte * 1e9:.2f} ns per byte",
        "optimum": {"segments": len(best.ends), "predicted_ms": round(best.finish_s * 1e3, 2)},
        "order_predicted": by_prediction,
        "order_measured": by_clock,
        "order_agrees": by_prediction == by_clock,
        **{key: summarise([])[key] for key in ("machine", "commit", "date")},
    }


def main() -> None:
    """Run two processes and write the answer."""
    import torch

    parser = argparse.ArgumentParser()
    parser.add_argument("--sample", action="store_true", help="a quarter of the steps")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ddp-") as folder:
        steps = 10 if given.sample else 100
        torch.multiprocessing.spawn(worker, args=(folder, steps), nprocs=PROCESSES)
        found = answer(json.loads((Path(folder) / "answer.json").read_text()))
    text = json.dumps(found, indent=1, ensure_ascii=False)
    print(text)
    if given.out is not None:
        given.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""AllReduce segments: random instances against brute force, ResNet-50, and DDP over gloo.

`python benchmarks/profile/allreduce.py [--sample] [--ddp]` prints JSON lines.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import time

import numpy as np

from isograd.profile.communication.segments import (
    Affine,
    best_segments,
    fewest_segments,
    finish,
)

#: 10 GbE with 16 workers, as fitted in MG-WFBP's distributed_optimizer.py.
TEN_GBE_16 = Affine(9.08e-4, 7.40e-10)


def random_instances(count: int) -> dict[str, object]:
    """How many of the instances equal brute force, in both algorithms."""
    source = random.Random(0)
    linear = quadratic = 0
    for _ in range(count):
        length = source.randint(2, 11)
        ready = np.cumsum([source.expovariate(1) for _ in range(length)])
        size = np.asarray([source.expovariate(1) for _ in range(length)])
        cost = Affine(source.expovariate(2), source.expovariate(1))
        best = min(
            finish(
                [*[k + 1 for k in range(length - 1) if mask >> k & 1], length], ready, size, cost
            )
            for mask in range(1 << (length - 1))
        )
        linear += abs(best_segments(ready, size, cost).finish_s - best) < 1e-9
        exact = best_segments(ready, size, lambda n, cost=cost: cost(n)).finish_s
        quadratic += abs(exact - best) < 1e-9
    return {"instances": count, "linear_equal": linear, "quadratic_equal": quadratic}


def resnet50() -> tuple[np.ndarray, np.ndarray]:
    """Sizes in bytes of ResNet-50's 161 gradients, last layer first, and when each is ready.

    Ready times: the backward pass of 15.4 ms (23.6 ms step of MindSpore's documentation, less
    update and forward), spread over the layers by their multiplications.
    """
    layers: list[tuple[int, float]] = [(64 * 3 * 49, 118e6), (64, 0.8e6), (64, 0.0)]
    channels, size = 64, 56
    for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(blocks):
            stride = 2 if block == 0 and width > 64 else 1
            size_out = size // stride
            parts = [(channels, width, 1, size), (width, width, 3, size_out)]
            parts.append((width, width * 4, 1, size_out))
            if block == 0:
                parts.append((channels, width * 4, 1, size_out))
            for inputs, outputs, kernel, side in parts:
                count = inputs * outputs * kernel * kernel
                layers += [(count, float(count * side * side)), (outputs, 0.0), (outputs, 0.0)]
            channels, size = width * 4, size_out
    layers += [(2048 * 1000, 2048e3), (1000, 0.0)]
    backward = layers[::-1]
    work = np.asarray([flops for _, flops in backward])
    ready = np.cumsum(work) / work.sum() * 15.4e-3
    return ready, np.asarray([4.0 * count for count, _ in backward])


def on_resnet50() -> dict[str, object]:
    """Tails of the optimum, of [85, 160], and of one segment, in the 10 GbE × 16 model."""
    ready, size = resnet50()
    cost, last = TEN_GBE_16, float(ready[-1])
    best, fewest = best_segments(ready, size, cost), fewest_segments(ready, size, cost)
    return {
        "gradients": len(size),
        "best_tail_ms": (best.finish_s - last) * 1e3,
        "best_segments": len(best.ends),
        "fewest_tail_ms": (fewest.finish_s - last) * 1e3,
        "fewest_segments": list(fewest.indices),
        "two_segments_85_160_ms": (finish([86, 161], ready, size, cost) - last) * 1e3,
        "one_segment_ms": (finish([161], ready, size, cost) - last) * 1e3,
        "each_alone_ms": (finish(list(range(1, 162)), ready, size, cost) - last) * 1e3,
    }


def _rank(rank: int, port: int, results: object) -> None:
    """One process of DDP: the same training with three settings of the buckets."""
    import torch
    from torch import distributed, nn
    from torch.nn.parallel import DistributedDataParallel

    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", rank=rank, world_size=2)
    found = {}
    for cap in (0.05, 1.0, 100.0):
        torch.manual_seed(0)
        layers = [nn.Sequential(nn.Linear(512, 512), nn.ReLU()) for _ in range(10)]
        model = DistributedDataParallel(nn.Sequential(*layers), bucket_cap_mb=cap)
        inputs = torch.randn(64, 512)
        times = []
        for _ in range(25):
            distributed.barrier()
            start = time.perf_counter()
            model(inputs).sum().backward()
            times.append(time.perf_counter() - start)
        found[cap] = float(np.median(times[5:]))
    if rank == 0:
        results.put(found)  # type: ignore[attr-defined]
    distributed.destroy_process_group()


def with_ddp() -> dict[str, object]:
    """Measured and predicted order of three bucket sizes, two processes over gloo."""
    import multiprocessing

    from isograd.profile.communication.links import measure_links

    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    port = random.randint(20000, 40000)
    processes = [context.Process(target=_rank, args=(rank, port, results)) for rank in range(2)]
    for process in processes:
        process.start()
    measured = results.get(timeout=240)
    for process in processes:
        process.join()
    cost = measure_links(2)
    compute_s, layers, size = 0.012, 10, 4.0 * (512 * 512 + 512)
    ready = np.linspace(compute_s / layers, compute_s, layers)
    sizes = np.full(layers, size)
    predicted = {}
    for cap in measured:
        per = max(1, int(cap * (1 << 20) // size))
        ends = sorted({min(end, layers) for end in range(per, layers + per, per)})
        predicted[cap] = finish(ends, ready, sizes, cost.affine)
    order = sorted(measured, key=lambda cap: measured[cap])
    return {
        "measured_s": measured,
        "predicted_s": predicted,
        "a_s": cost.affine.a_s,
        "b_s_per_byte": cost.affine.b_s_per_byte,
        "order_measured": order,
        "order_predicted": sorted(predicted, key=lambda cap: predicted[cap]),
    }


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sample", action="store_true", help="500 instances instead of 5000")
    parser.add_argument("--ddp", action="store_true", help="two processes over gloo as well")
    given = parser.parse_args()
    print(json.dumps(random_instances(500 if given.sample else 5000)))
    print(json.dumps(on_resnet50()))
    if given.ddp:
        print(json.dumps(with_ddp()))


if __name__ == "__main__":
    main()

"""AllReduce segments: random instances against brute force, and ResNet-50; DDP is in ddp.py.

`python benchmarks/profile/allreduce.py [--sample]` prints JSON lines.
"""

from __future__ import annotations

import argparse
import json
import random

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


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sample", action="store_true", help="500 instances instead of 5000")
    given = parser.parse_args()
    print(json.dumps(random_instances(500 if given.sample else 5000)))
    print(json.dumps(on_resnet50()))


if __name__ == "__main__":
    main()

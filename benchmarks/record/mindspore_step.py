"""One process that times plain and recorded steps of MindSpore in PyNative mode in turn."""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import mindspore
import numpy as np
from mindspore import nn

import isograd

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples" / "resnet50"))


def main() -> None:
    """Print one JSON object: seconds of the wall and of the processor, and MB, per step."""
    import net_mindspore_faithful

    parser = argparse.ArgumentParser()
    parser.add_argument("--modes", nargs="+", required=True)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--folder", type=Path, required=True)
    arguments = parser.parse_args()
    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    generator = np.random.default_rng(0)
    images = mindspore.Tensor(generator.standard_normal((8, 3, 64, 64)).astype(np.float32))
    labels = mindspore.Tensor(generator.integers(0, 1000, 8).astype(np.int32))
    model = net_mindspore_faithful.build()
    optimizer = nn.Momentum(model.trainable_params(), 0.01, 0.9)

    def forward(images: Any, labels: Any) -> Any:
        return net_mindspore_faithful.loss(model(images), labels)

    differentiate = mindspore.value_and_grad(forward, None, optimizer.parameters)

    def step() -> Any:
        loss, gradients = differentiate(images, labels)
        optimizer(gradients)
        loss.asnumpy()
        return loss

    elapsed_s: dict[str, list[float]] = {mode: [] for mode in arguments.modes}
    processor_s: dict[str, list[float]] = {mode: [] for mode in arguments.modes}
    megabytes = dict.fromkeys(arguments.modes, 0.0)
    for number in range(arguments.rounds + 1):
        for mode in arguments.modes:
            shutil.rmtree(arguments.folder, ignore_errors=True)
            start_s, processor_start_s = time.perf_counter(), time.process_time()
            if mode == "plain":
                step()
            else:
                tensors = mode.partition(":")[2]
                with isograd.record(model, arguments.folder, tensors=tensors) as recorder:
                    recorder.step(step())
            if number:  # the first round warms up
                elapsed_s[mode].append(time.perf_counter() - start_s)
                processor_s[mode].append(time.process_time() - processor_start_s)
            files = arguments.folder.rglob("steps/*/*")
            megabytes[mode] = sum(path.stat().st_size for path in files) / 1e6
    result = {
        "median_s": {mode: statistics.median(seconds) for mode, seconds in elapsed_s.items()},
        "processor_s": {mode: statistics.median(seconds) for mode, seconds in processor_s.items()},
        "all_s": elapsed_s,
        "megabytes": megabytes,
        "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
        "version": mindspore.__version__,
    }
    print("RESULT " + json.dumps(result))


if __name__ == "__main__":
    main()

"""MindSpore's convolutions on this CPU, with every instruction set and without AVX-512.

python benchmarks/verify/convolutions.py

The two take turns, each in a process of its own; medians of five rounds.  isograd starts
MindSpore's workers without AVX-512 for what this shows (src/isograd/worker/host.py).
"""

import json
import os
import statistics
import subprocess
import sys

#: Batch, channels, side in pixels, output channels, kernel.
SHAPES = [
    (4, 64, 16, 64, 3),
    (4, 256, 16, 64, 1),
    (4, 512, 4, 512, 3),
    (4, 2048, 2, 512, 1),
]
WAYS = {"as it is": {}, "without AVX-512": {"ONEDNN_MAX_CPU_ISA": "AVX2"}}
ROUNDS = 5
_MEASURED = """
import json, sys, time
import mindspore as ms
import numpy as np
ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
ms.runtime.launch_blocking()

def spent_ms(run):
    run()
    begin = time.perf_counter()
    run()
    return 1e3 * (time.perf_counter() - begin)

found = []
for batch, channels, side, out, kernel in json.loads(sys.argv[1]):
    x = ms.Tensor(np.random.randn(batch, channels, side, side).astype(np.float32))
    w = ms.Tensor(np.random.randn(out, channels, kernel, kernel).astype(np.float32))
    conv = ms.ops.Conv2D(out, kernel, pad_mode="pad", pad=kernel // 2)
    grad = ms.grad(lambda x, w: conv(x, w).sum(), (0, 1))
    runs = (lambda: conv(x, w).asnumpy(), lambda: grad(x, w)[0].asnumpy())
    found.append([spent_ms(run) for run in runs])
print(json.dumps(found))
"""


def measure(variables: dict[str, str]) -> list[list[float]]:
    """Milliseconds forward, and forward and backward, of every shape in a fresh process."""
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, json.dumps(SHAPES)],
        env={**os.environ, "OMP_NUM_THREADS": "1", **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.strip().splitlines()[-1])


def main() -> int:
    """Print the table."""
    found = {way: [] for way in WAYS}
    for _ in range(ROUNDS):
        for way, variables in WAYS.items():
            found[way].append(measure(variables))
    print("| convolution | pass | as it is, ms | without AVX-512, ms | ratio |")
    print("|---|---|---|---|---|")
    for place, (batch, channels, side, out, kernel) in enumerate(SHAPES):
        for number, name in enumerate(("forward", "with gradients")):
            slow, fast = (
                statistics.median(one[place][number] for one in found[way]) for way in WAYS
            )
            shape = f"{batch}×{channels}×{side}×{side} → {out}, kernel {kernel}"
            print(f"| {shape} | {name} | {slow:.1f} | {fast:.1f} | {slow / fast:.1f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""A port's compiled step beside that of a network written by hand for MindSpore.

python benchmarks/convert/step_times.py [--only resnet50 vit gpt tagger] [--steps 30] [--rounds 3]

The originals of references/ (and examples/resnet50) are converted; port and native network get the
same weights, inputs, loss and optimizer (Adam), and one `@ms.jit` step each.  Steps are run in
turn, one of each; a round is a process of its own, in which both are compiled once, the port first
in every other one.  A small step is compiled before them: what the first compilation of a process
loads is counted for neither.  Prints a table of ratios, port to native: medians of the rounds.  The
losses of the first step must agree to 1e-4, or nothing is compared.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
EXAMPLE = ROOT / "examples" / "resnet50"
#: Original file, native file, function.
NETWORKS = {
    "resnet50": (EXAMPLE / "net_torch.py", EXAMPLE / "net_mindspore_faithful.py", "build"),
    "vit": (HERE / "references/originals.py", HERE / "references/native.py", "vit"),
    "gpt": (HERE / "references/originals.py", HERE / "references/native.py", "gpt"),
    "tagger": (HERE / "references/originals.py", HERE / "references/native.py", "tagger"),
}


def measure(name: str, port: Path, steps: int, is_native_first: bool) -> None:
    """Compile both, run them in turn and print times as JSON: the child's part."""
    import importlib.util
    import time

    import mindspore as ms
    import numpy as np
    from mindspore import nn, ops

    ms.runtime.launch_blocking()
    ms.set_seed(0)
    sys.path.insert(0, str(port.parent))

    def built(file: Path) -> nn.Cell:
        spec = importlib.util.spec_from_file_location(f"network_{file.stem}", file)
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        return getattr(module, NETWORKS[name][2])()

    rng = np.random.default_rng(0)
    if name in ("resnet50", "vit"):
        x = ms.Tensor(rng.standard_normal((4, 3, 64, 64)).astype(np.float32))
        y = ms.Tensor(rng.integers(0, 100, 4).astype(np.int32))
    else:
        most, labels, length = (256, 256, 64) if name == "gpt" else (500, 20, 32)
        x = ms.Tensor(rng.integers(0, most, (4, length)).astype(np.int32))
        y = ms.Tensor(rng.integers(0, labels, (4, length)).astype(np.int32))

    def stepped(network: nn.Cell):
        network.set_train()
        optimizer = nn.Adam(network.trainable_params(), 1e-3)

        def forward_fn(x, y):
            logits = network(x)
            return ops.cross_entropy(logits.reshape(-1, logits.shape[-1]), y.reshape(-1))

        gradient_fn = ms.value_and_grad(forward_fn, None, optimizer.parameters)

        @ms.jit
        def step(x, y):
            loss, gradients = gradient_fn(x, y)
            optimizer(gradients)
            return loss

        return step

    networks = {"port": built(port), "native": built(NETWORKS[name][1])}
    _give_weights(networks["native"], networks["port"])
    order = ["native", "port"] if is_native_first else ["port", "native"]
    steps_of = {side: stepped(networks[side]) for side in order}
    compile_s, losses = {}, {}
    _warm_up(stepped)
    for side in order:
        started = time.perf_counter()
        losses[side] = float(steps_of[side](x, y).asnumpy())
        compile_s[side] = time.perf_counter() - started
    times = {side: [] for side in order}
    for _ in range(steps):
        for side in order:
            started = time.perf_counter()
            steps_of[side](x, y).asnumpy()
            times[side].append(time.perf_counter() - started)
    step_s = {side: statistics.median(found[2:]) for side, found in times.items()}
    print("RESULT", json.dumps({"compile_s": compile_s, "losses": losses, "step_s": step_s}))


def _warm_up(stepped) -> None:
    """Compile and run a small step."""
    import mindspore as ms
    from mindspore import nn, ops

    x, y = ops.ones((2, 3), ms.float32), ops.zeros((2,), ms.int32)
    stepped(nn.Dense(3, 2))(x, y).asnumpy()


def _give_weights(target, source) -> None:
    """Copy parameters in their order, which is that of the constructors in both.

    LSTM cells of the runtime and of MindSpore's own pack their weights differently; a network
    with such ones gets the weights of equal names and shapes.
    """
    own, others = list(target.get_parameters()), list(source.get_parameters())
    if [p.shape for p in own] == [p.shape for p in others]:
        for mine, other in zip(own, others, strict=True):
            mine.set_data(other.value())
        return
    raise SystemExit(
        f"weights of other shapes: {[p.name for p in own]}, {[p.name for p in others]}"
    )


def row_of(name: str, rounds: int, steps: int) -> str:
    """A network's row of the table."""
    from isograd.convert.run import convert_path

    original, _, _ = NETWORKS[name]
    found = []
    with tempfile.TemporaryDirectory() as folder:
        convert_path(original, Path(folder) / "port")
        environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX2", "GLOG_v": "3"}
        for number in range(rounds):
            command = [sys.executable, __file__, "--child", name, str(number % 2), str(steps)]
            command.append(str(Path(folder) / "port" / original.name))
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, check=False
            )
            lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
            if not lines:
                raise SystemExit(f"{name}: {done.stdout[-600:]}{done.stderr[-1200:]}")
            found.append(json.loads(lines[0].partition(" ")[2]))
    apart = max(abs(one["losses"]["port"] - one["losses"]["native"]) for one in found)
    if apart > 1e-4:
        raise SystemExit(f"{name}: the first losses differ by {apart:.2g}")

    def median(key: str, side: str) -> float:
        return statistics.median(one[key][side] for one in found)

    ratios = [
        statistics.median(one[key]["port"] / one[key]["native"] for one in found)
        for key in ("step_s", "compile_s")
    ]
    return (
        f"| {name} | {1e3 * median('step_s', 'port'):.1f} | {1e3 * median('step_s', 'native'):.1f} "
        f"| {ratios[0]:.2f} | {median('compile_s', 'port'):.1f} "
        f"| {median('compile_s', 'native'):.1f} | {ratios[1]:.2f} |"
    )


def main() -> None:
    """Print the table."""
    if sys.argv[1:2] == ["--child"]:
        _, _, name, is_native_first, steps, port = sys.argv
        measure(name, Path(port), int(steps), is_native_first == "1")
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=list(NETWORKS), default=list(NETWORKS))
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    sys.path.insert(0, str(ROOT / "src"))
    print("| network | port, ms | native, ms | ratio | port compiles, s | native, s | ratio |")
    print("|---|---|---|---|---|---|---|")
    for name in given.only:
        print(row_of(name, given.rounds, given.steps), flush=True)


if __name__ == "__main__":
    main()

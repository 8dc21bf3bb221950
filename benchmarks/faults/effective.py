"""Does a fault matter in a port whose activations are rounded to bfloat16?

python benchmarks/faults/effective.py                             # every such fault, seed 0
python benchmarks/faults/effective.py --only mlp-bf16-gelu-tanh --first-seed 1

isograd's own judgement is not asked.  The rounding is taken out of the port: with the fault minus
without it, on equal weights and inputs, is the change that the fault makes.  The faultless port
with its rounding minus the same without is what rounding does.  For the network's output, every
parameter's gradient and the loss, in evaluation mode, the norms of the two are divided; a fault is
effective where the greatest quotient is above 1.  Below, the network with the fault is nearer to
the one without it than either is to what it would compute without rounding.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import catalog
import numpy as np

from isograd.verify.case import read_case
from isograd.verify.inputs import make_inputs, make_targets

#: What the rounded ports call rounding, and what stands there without it.
ROUNDING, NOTHING = "return x.astype(ms.bfloat16).astype(ms.float32)", "return x"

#: Runs in a process of its own: MindSpore's seeds are the process's.
CHILD = """
import sys
import mindspore as ms
import numpy as np
sys.path.insert(0, sys.argv[1])
import net_mindspore as port
given = np.load("given.npz")
def tensors(kind):
    return [ms.Tensor(given[k]) for k in sorted(given.files) if k.startswith(kind)]
np.random.seed(int(sys.argv[2]))
ms.set_seed(int(sys.argv[2]))
net = port.build()
net.set_train(False)
def forward(*inputs):
    output = net(*inputs)
    return port.loss(output, *tensors("target")), output
parameters = net.trainable_params()
run = ms.value_and_grad(forward, None, parameters, has_aux=True)
(loss, output), gradients = run(*tensors("input"))
named = {f"gradient of {p.name}": g for p, g in zip(parameters, gradients, strict=True)}
found = {"output": output, "loss": loss, **named}
np.savez("found.npz", **{key: value.asnumpy() for key, value in found.items()})
"""

Tensors = dict[str, np.ndarray]


def port_tensors(edit: catalog.Edit | None, network: str, seed: int, rounding: bool) -> Tensors:
    """Return the port's output, loss and gradients, float64."""
    with tempfile.TemporaryDirectory(prefix="isograd-effective-") as name:
        folder = Path(name)
        path = catalog.write_case(network, folder / "case", edit)
        if not rounding:
            source = path.parent / "net_mindspore.py"
            text = source.read_text()
            if ROUNDING not in text:
                raise RuntimeError(f"{source} rounds in another way than {ROUNDING!r}")
            source.write_text(text.replace(ROUNDING, NOTHING))
        case = read_case(path)
        given = {f"input {key}": value.values for key, value in make_inputs(case, seed).items()}
        targets = make_targets(case, seed)
        given |= {f"target {place}": value.values for place, value in enumerate(targets)}
        np.savez(folder / "given.npz", **given)
        command = [sys.executable, "-c", CHILD, str(path.parent), str(seed)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
        if done.returncode != 0:
            raise RuntimeError(f"{path}: {done.stderr.strip()[-500:]}")
        with np.load(folder / "found.npz") as found:
            return {key: found[key].astype(np.float64) for key in found.files}


def greatest_quotient(fault: Tensors, exact: Tensors, rounded: Tensors) -> tuple[float, str]:
    """Return the greatest norm of the change over that of the rounding, and its tensor."""
    best = (0.0, "")
    for key, before in exact.items():
        after, noisy = fault.get(key), rounded.get(key)
        if after is None or noisy is None or not after.shape == before.shape == noisy.shape:
            continue
        change, rounding = np.linalg.norm(after - before), np.linalg.norm(noisy - before)
        if change > 0:
            best = max(best, (float(change / rounding) if rounding > 0 else np.inf, key))
    return best


def main(argv: list[str] | None = None) -> int:
    """Print a table; return 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="ID", help="these faults only")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds (default 1)")
    parser.add_argument("--first-seed", type=int, default=0, metavar="SEED", help="default 0")
    chosen = parser.parse_args(argv)
    edits = [
        edit
        for edit in catalog.load()
        if edit.dtype == "bf16" and edit.kind == "fault" and edit.stages[0] != "update"
    ]
    if chosen.only:
        unknown = set(chosen.only) - {edit.id for edit in edits}
        if unknown:
            parser.error(f"no such fault in bfloat16: {', '.join(sorted(unknown))}")
        edits = [edit for edit in edits if edit.id in chosen.only]
    print("| fault | seed | change / rounding | in | effective |\n|---|---|---|---|---|")
    for seed in range(chosen.first_seed, chosen.first_seed + chosen.seeds):
        for network in sorted({edit.network for edit in edits}):
            exact = port_tensors(None, network, seed, rounding=False)
            rounded = port_tensors(None, network, seed, rounding=True)
            for edit in (edit for edit in edits if edit.network == network):
                fault = port_tensors(edit, network, seed, rounding=False)
                quotient, key = greatest_quotient(fault, exact, rounded)
                answer = "yes" if quotient > 1.0 else "no"
                row = (edit.id, seed, f"{quotient:.3g}", key, answer)
                print("| " + " | ".join(map(str, row)) + " |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

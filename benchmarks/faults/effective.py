"""Does a fault matter in a port whose activations are rounded to bfloat16?

python benchmarks/faults/effective.py                             # every such fault, seed 0
python benchmarks/faults/effective.py --only mlp-bf16-gelu-tanh --first-seed 1

isograd's own judgement is not asked.  The rounding is taken out of both networks: the port with
the fault minus the port without it, on equal weights and inputs, is the change that the fault
makes.  The faultless port with its rounding minus the same without is what rounding does.  For
the network's outputs, every parameter's gradient and the loss the norms of the two are divided; a
fault is effective where the greatest quotient is above 1.  Below, the network with the fault is
nearer to the one without it than either is to what it would compute without rounding.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import catalog
import numpy as np

from isograd.recording.reader import Recording

#: What the rounded networks call rounding, and what stands there without it.
WITHOUT_ROUNDING = (
    ("return x.bfloat16().float()", "return x"),
    ("return x.astype(ms.bfloat16).astype(ms.float32)", "return x"),
)

Tensors = dict[str, np.ndarray]


def port_tensors(edit: catalog.Edit | None, network: str, seed: int, rounding: bool) -> Tensors:
    """Return the port's outputs, gradients and losses in one verification, float64."""
    with tempfile.TemporaryDirectory(prefix="isograd-effective-") as name:
        folder = Path(name)
        case = catalog.write_case(network, folder / "case", edit)
        if not rounding:
            for source in case.parent.glob("net_*.py"):
                text = source.read_text()
                for rounded, nothing in WITHOUT_ROUNDING:
                    text = text.replace(rounded, nothing)
                source.write_text(text)
        kept = folder / "kept"
        command = [sys.executable, "-m", "isograd", "verify", str(case), "--quiet"]
        command += ["--seed", str(seed), "--keep", str(kept)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
        if done.returncode not in (0, 1):
            raise RuntimeError(f"{case}: {done.stderr.strip()[-500:]}")
        return dict(_tensors(Recording(kept / "port")))


def _tensors(recording: Recording) -> Iterator[tuple[str, np.ndarray]]:
    for number in recording.step_numbers:
        step = recording.step(number)
        values = {
            f"output {index}": slot.value
            for call in step.calls
            if call.kind == "module" and call.name == ""
            for index, slot in enumerate(call.outputs)
        }
        values |= {f"gradient of {key}": value for key, value in step.named("gradient").items()}
        for key, value in values.items():
            found = step.tensor(value)
            if found.is_floating:
                yield f"step {number}: {key}", found.values.astype(np.float64)
        if step.loss is not None:
            yield f"step {number}: loss", np.array(step.loss)


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

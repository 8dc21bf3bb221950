"""One API each, as people write it: the values of an expression in torch and in its port.

    python benchmarks/convert/expressions.py [--gradients] [FILE.txt …]

Each line of `expressions/*.txt` is a function: statements and an expression, parted by ` ;; `.
They are converted as one file and run on both sides.  An expression is the same, told (there is a
finding at its lines), raises in the port without a mark, or differs without a mark, in value,
shape or dtype.  With --gradients the gradients of all inputs are compared in place of the values.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from isograd.convert import convert_path

HERE = Path(__file__).parent / "expressions"
HEAD = """
import json
import math
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def made(*shape, seed=0):
    n = 1
    for s in shape:
        n *= s
    return (torch.arange(n, dtype=torch.float32) * 0.7137 + seed * 0.331).sin().reshape(shape)


x, y, v = made(3, 4), made(3, 4, seed=1), made(6, seed=2)
p = made(3, 4, seed=3).abs() + 0.1
i = torch.tensor([[2, 0, 1], [0, 2, 2]])
k = torch.tensor([5, -3, 2, 0, -7, 7])
b = x > 0
img, seq = made(2, 3, 8, 8, seed=4), made(2, 3, 10, seed=5)
m = made(4, 4, seed=6) + 3 * torch.eye(4)
e, z, c = torch.zeros(0, 4), torch.tensor(2.5), torch.complex(x, y)
"""
TAIL = """

def shown(r):
    if isinstance(r, (tuple, list)):
        return [shown(t) for t in r]
    if not isinstance(r, torch.Tensor):
        return repr(r)
    if r.is_complex():
        parts = shown(torch.cat([r.real.reshape(-1), r.imag.reshape(-1)]))
        return {**parts, "kind": "c", "shape": list(r.shape)}
    kind = "b" if r.dtype == torch.bool else ("f" if r.is_floating_point() else "i")
    values = r.detach().double().reshape(-1).tolist()
    return {"kind": kind, "bytes": r.element_size(), "shape": list(r.shape), "values": values}

"""
#: The inputs that an expression's gradient is asked of.
LEAVES = "x, y, v, p, img, seq, m, z"
GRADIENTS = f"""

def real(r):
    if isinstance(r, (tuple, list)):
        return sum([real(t) for t in r], torch.zeros(()))
    if not isinstance(r, torch.Tensor) or r.numel() == 0:
        return torch.zeros(())
    if r.is_complex():
        return real([r.real, r.imag])
    if not r.is_floating_point():
        return torch.zeros(())
    r = r.float().reshape(-1)
    return (r * (torch.arange(r.numel(), dtype=torch.float32) + 1).sin()).sum()


def gradients(f):
    leaves = [t.clone().requires_grad_() for t in ({LEAVES})]
    total = real(f(*[t * 1 for t in leaves])) + sum([t.sum() * 0 for t in leaves])
    total.backward()
    return [t.grad for t in leaves]

"""
#: Of the largest magnitude of a result.
TOLERANCE = 1e-4


def script(lines: list[str], *, gradients: bool) -> tuple[str, list[int]]:
    """The file of all expressions, and the line where each begins."""
    text, starts = HEAD, []
    for number, line in enumerate(lines):
        *before, last = line.split(" ;; ")
        starts.append(text.count("\n") + 3)
        body = "".join(f"    {part}\n" for part in before)
        text += f"\n\ndef f{number}({LEAVES if gradients else ''}):\n{body}    return {last}\n"
    text += TAIL + (GRADIENTS if gradients else "")
    for number in range(len(lines)):
        asked = f"gradients(f{number})" if gradients else f"f{number}()"
        text += f"try:\n    print({number}, json.dumps(shown({asked})))\n"
        text += f"except Exception as error:\n    print({number}, 'raises', type(error).__name__)\n"
    return text, starts


def run(folder: Path, *, is_port: bool) -> dict[int, Any]:
    """The results by number; of what raises, the name of its error."""
    first = "import sys, runpy; sys.modules['torch'] = None; import mindspore; "
    code = f"{first if is_port else 'import sys, runpy; '}sys.path.insert(0, '.'); "
    code += "runpy.run_path('script.py', run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    found: dict[int, Any] = {}
    for line in done.stdout.splitlines():
        number, _, said = line.partition(" ")
        if number.isdigit():
            is_error = said.startswith("raises")
            found[int(number)] = said if is_error else json.loads(said)
    return found


def is_same(ours: Any, theirs: Any) -> bool:
    """Whether two results are the same within rounding."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        first, second = ours["values"], theirs["values"]
        if any(ours[key] != theirs[key] for key in ("kind", "bytes", "shape")):
            return False
        large = max((abs(n) for n in second if math.isfinite(n)), default=0.0)
        return all(_near(a, b, TOLERANCE * large) for a, b in zip(first, second, strict=True))
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return all(is_same(a, b) for a, b in zip(ours, theirs, strict=True))
    if ours == theirs:
        return True
    try:
        return _near(float(ours), float(theirs), TOLERANCE * abs(float(theirs)))
    except (TypeError, ValueError):
        return False


def _near(a: float, b: float, bound: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b)) or abs(a - b) <= bound


def answers(path: Path, *, gradients: bool) -> list[tuple[str, str]]:
    """Each expression with what became of it."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    text, starts = script(lines, gradients=gradients)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "script.py").write_text(text, encoding="utf-8")
        report = convert_path(folder / "script.py", folder / "port")
        told = [finding.line for finding in report.findings]
        theirs, ours = run(folder, is_port=False), run(folder / "port", is_port=True)
    found = []
    for number, line in enumerate(lines):
        end = starts[number] + line.count(" ;; ") + 1
        is_error = isinstance(theirs[number], str) and theirs[number].startswith("raises")
        if is_error or is_same(ours[number], theirs[number]):
            found.append((line, "torch raises" if is_error else "same"))
        elif any(starts[number] <= place <= end for place in told):
            found.append((line, "told"))
        else:
            raises = isinstance(ours[number], str) and ours[number].startswith("raises")
            found.append((line, "raises" if raises else "differs"))
    return found


def main() -> None:
    """Print what is not the same, and a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, default=sorted(HERE.glob("*.txt")))
    parser.add_argument("--gradients", action="store_true", help="compare gradients, not values")
    options = parser.parse_args()
    kinds = ("same", "told", "raises", "differs", "torch raises")
    rows = []
    for path in options.files:
        found = answers(path, gradients=options.gradients)
        for line, kind in found:
            if kind not in ("same", "told"):
                print(f"{kind}: {line}", flush=True)
        counted = Counter(kind for _, kind in found)
        rows.append((path.stem, len(found), *(counted[kind] for kind in kinds)))
    print("\n| expressions | " + " | ".join(("all", *kinds)) + " |\n|" + "---|" * 7)
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")


if __name__ == "__main__":
    main()

"""Runs what aten.toml makes of its examples: `python aten_mindspore.py FOLDER`.

Reads torch.npz and codes.json there, writes mindspore.npz and problems.json.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import mint, nn, ops

from isograd import runtime as composites
from isograd.frameworks.mindspore.differentiate import differentiate
from isograd.knowledge.check.drawing import output_weights

SPACE = {"ms": ms, "nn": nn, "ops": ops, "mint": mint, "np": np, "composites": composites}


def run(key: str, code: str, given: dict[str, Any], wanted: list[str]) -> dict[str, Any]:
    tensors = {name: ms.Tensor(value) for name, value in given.items()}
    found: dict[str, Any] = {}

    def forward(*values: Any) -> Any:
        result = eval(code, {**SPACE, **tensors, **dict(zip(wanted, values, strict=True))})
        results = list(result) if isinstance(result, (tuple, list)) else [result]
        total = None
        for number, part in enumerate(results):
            part = part if isinstance(part, ms.Tensor) else ms.Tensor(part)
            found[f"{key}/out/{number}"] = part
            if part.dtype in (ms.float32, ms.float64):
                weights = ms.Tensor(output_weights(tuple(part.shape), number, 0))
                part = (part * weights.astype(part.dtype)).sum()
                total = part if total is None else total + part
        return total

    if wanted:
        values = tuple(tensors[name] for name in wanted)
        _, gradients, _ = differentiate(forward, values, ())
        found = {name: ops.stop_gradient(value) for name, value in found.items()}
        for name, gradient in zip(wanted, gradients, strict=True):
            found[f"{key}/gradient/{name}"] = gradient
    else:
        forward()
    return {name: value.asnumpy() for name, value in found.items()}


def main() -> None:
    ms.set_context(mode=ms.PYNATIVE_MODE)
    ms.runtime.launch_blocking()
    folder = Path(sys.argv[1])
    codes = json.loads((folder / "codes.json").read_text())
    results: dict[str, Any] = {}
    problems = json.loads((folder / "problems.json").read_text())
    with np.load(folder / "torch.npz") as arrays:
        for key, code in codes.items():
            given = {
                n.partition("/in/")[2]: arrays[n]
                for n in arrays.files
                if n.startswith(f"{key}/in/")
            }
            start = f"{key}/gradient/"
            wanted = [n.removeprefix(start) for n in arrays.files if n.startswith(start)]
            try:
                results.update(run(key, code, given, wanted))
            except Exception as error:
                problems[key] = f"{code}: {type(error).__name__}: {str(error)[:300]}"
    np.savez(folder / "mindspore.npz", **results)
    (folder / "problems.json").write_text(json.dumps(problems))


if __name__ == "__main__":
    main()

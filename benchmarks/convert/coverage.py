"""How many of torch's documented APIs have an entry and a rewrite.

python benchmarks/convert/coverage.py [--names] [--out FILE.json]

Documented is what is public in these namespaces and has a docstring of torch's (not one that
pybind11 makes).  A rewrite is a template, or a class or function that takes the API's place.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "src"))

import torch

from isograd.knowledge import load_knowledge
from isograd.knowledge.entry import Entry, Status

#: Those that are about torch itself (jit, fx, export, compile, onnx, hub, overrides) are left out.
NAMESPACES = """
torch torch.nn torch.nn.functional torch.nn.init torch.nn.parameter torch.nn.parallel
torch.nn.utils torch.nn.utils.rnn torch.nn.utils.parametrize torch.nn.utils.parametrizations
torch.optim torch.optim.lr_scheduler torch.optim.swa_utils torch.linalg torch.special torch.fft
torch.distributions torch.signal.windows torch.sparse torch.utils.data torch.utils.checkpoint
torch.func torch.autograd torch.random torch.amp
""".split()
#: Modules whose functions other namespaces give on.
_OF_TORCH = (
    "torch.jit",
    "torch.fx",
    "torch.overrides",
    "torch.compiler",
    "torch.onnx",
    "torch.hub",
)
OUTCOMES = ("rewritten", "reason", "no entry")


def documented() -> Iterator[tuple[str, str]]:
    """Namespaces with the full names of what they document."""
    for space in NAMESPACES:
        module = importlib.import_module(space)
        for name in getattr(module, "__all__", None) or dir(module):
            value = getattr(module, name, None)
            if not name.startswith("_") and _is_documented(value):
                if space != "torch" or not hasattr(torch.nn, name):
                    yield space, f"{space}.{name}"
    for name in dir(torch.Tensor):
        if not name.startswith("_") and _has_text(getattr(torch.Tensor, name)):
            yield "torch.Tensor", f"torch.Tensor.{name}"


def _is_documented(value: Any) -> bool:
    if isinstance(value, torch.dtype):
        return True
    module = str(getattr(value, "__module__", None) or "torch")
    if inspect.ismodule(value) or not callable(value) or not module.startswith("torch"):
        return False
    is_internal = module.startswith((*_OF_TORCH, "torch._C")) and inspect.isclass(value)
    return _has_text(value) and not is_internal and not module.startswith(_OF_TORCH)


def _has_text(value: Any) -> bool:
    text = str(getattr(value, "__doc__", None) or "").strip()
    first = text.partition("\n")[0]
    return len(text) > 20 and "arg0" not in first and "typing." not in first


def outcome(entry: Entry | None) -> str:
    """Whether an API is rewritten, or why not."""
    if entry is None:
        return "no entry"
    is_written = entry.rewrite or entry.value or entry.factory or entry.base
    return "rewritten" if entry.status is not Status.MISSING or is_written else "reason"


def main() -> None:
    """Count, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--names", action="store_true", help="those without a rewrite, too")
    parser.add_argument("--out", type=Path, help="JSON: names by namespace and outcome")
    given = parser.parse_args()
    knowledge = load_knowledge()
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: {name: [] for name in OUTCOMES})
    for space, api in dict.fromkeys(documented()):
        found[space][outcome(knowledge.find(api))].append(api)
    print("| namespace | " + " | ".join(OUTCOMES) + " |\n|---|---|---|---|")
    for space, row in found.items():
        print(f"| {space} | " + " | ".join(str(len(row[name])) for name in OUTCOMES) + " |")
    sums = [sum(len(row[name]) for row in found.values()) for name in OUTCOMES]
    print("| all | " + " | ".join(map(str, sums)) + " |")
    print(f"{sums[0] / sum(sums):.1%} of {sum(sums)} have a rewrite")
    if given.names:
        for row in found.values():
            print("\n".join(row["reason"] + row["no entry"]))
    if given.out is not None:
        given.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Does every example of the knowledge compute the same after `isograd convert`?

python benchmarks/convert/examples.py                    # every example
python benchmarks/convert/examples.py --only 'torch.nn.*'
python benchmarks/convert/examples.py --unannotated      # without `x: torch.Tensor`
python benchmarks/convert/examples.py --alone            # each as a project of its own

Each example becomes a file as a user would write it: a function of tensors, or a module with the
layer as its child.  The folder is converted once, or each example alone: what one example asks of a
layer gives all layers of its project torch's shape, which hides MindSpore's own.  Then original
and port run on the same numbers (three seeds; results, gradients, buffers).  Silently wrong is
what runs, differs, and has no finding.
"""

from __future__ import annotations

import argparse
import ast
import fnmatch
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from isograd.convert import FileConversion, Level, convert_path
from isograd.knowledge.check import batches
from isograd.knowledge.check.batches import Outcome
from isograd.knowledge.check.drawing import draw
from isograd.knowledge.check.torch_side import split_module
from isograd.knowledge.entry import Entry, Example
from isograd.knowledge.store import load_knowledge

_HEAD = "import numpy as np\nimport torch\n\n\n"
#: Optimizers and schedules stand in training code, which `training.py` runs.
_LEFT_OUT = ("torch.optim.*", "torch.utils.data.*", "torchvision.*")
_BATCH = 60


@dataclass(frozen=True)
class Case:
    """One example as a file."""

    name: str
    api: str
    example: Example
    code: str
    is_module: bool


@dataclass(frozen=True)
class Result:
    """What became of an example: right, finding, wrong, raises or unusable."""

    case: Case
    kind: str
    detail: str = ""


def main() -> int:
    """Convert and run the examples; 1 if any is silently wrong."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="+", default=["*"], metavar="PATTERN", help="APIs to try")
    parser.add_argument("--unannotated", action="store_true", help="functions without annotations")
    parser.add_argument("--alone", action="store_true", help="each example is a project")
    parser.add_argument("--jobs", type=int, default=2, help="processes at the same time")
    parser.add_argument("--out", type=Path, metavar="FILE.json", help="keep every result here")
    options = parser.parse_args()
    chosen = list(cases(options.only, not options.unannotated))
    with tempfile.TemporaryDirectory(prefix="isograd-examples-") as name:
        results = run(chosen, Path(name), options.jobs, alone=options.alone)
    for result in results:
        if result.kind in ("wrong", "raises"):
            print(f"{result.kind:7} {result.case.api}: {result.detail}\n{result.case.code}\n")
    counts = Counter(result.kind for result in results)
    print(f"{len(results)} examples of {len({r.case.api for r in results})} APIs: {dict(counts)}")
    if options.out:
        rows = [
            {"api": r.case.api, "code": r.case.code, "kind": r.kind, "detail": r.detail}
            for r in results
        ]
        options.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 1 if counts["wrong"] else 0


def cases(patterns: Sequence[str], is_annotated: bool) -> Iterator[Case]:
    """The examples whose API fits a pattern, as files."""
    for entry in load_knowledge(with_examples=True).entries:
        if any(fnmatch.fnmatch(entry.api, pattern) for pattern in _LEFT_OUT):
            continue
        if any(fnmatch.fnmatch(entry.api, pattern) for pattern in patterns):
            for number, example in enumerate(entry.examples):
                yield _case(entry, number, example, is_annotated)


def _case(entry: Entry, number: int, example: Example, is_annotated: bool) -> Case:
    name = f"e_{entry.api.replace('.', '_')}_{number}"
    parameters = ", ".join(_parameters(example, is_annotated))
    split = split_module(example.code) if batches._kind(entry, example) == "module" else None
    if split is None:
        *before, last = ast.parse(example.code).body
        body = [*before, ast.Return(last.value) if isinstance(last, ast.Expr) else last]
        code = f"def example({parameters}):\n{_indented(body, 4)}"
    else:
        *before, last = ast.parse(split[0]).body
        head = "".join(ast.unparse(statement) + "\n\n\n" for statement in before)
        code = (
            f"{head}class Example(torch.nn.Module):\n    def __init__(self):\n"
            f"        super().__init__()\n        self.layer = {ast.unparse(last)}\n\n"
            f"    def forward(self, {parameters}):\n"
            f"        return {split[1].replace('call(', 'self.layer(', 1)}\n"
        )
    return Case(name, entry.api, example, code, split is not None)


def _parameters(example: Example, is_annotated: bool) -> Iterator[str]:
    for name, text in example.inputs:
        is_tensor = isinstance(draw(name, text, 0), (np.ndarray, np.generic))
        yield f"{name}: torch.Tensor" if is_annotated and is_tensor else name


def _indented(body: Sequence[ast.stmt], width: int) -> str:
    lines = "\n".join(ast.unparse(statement) for statement in body).splitlines()
    return "".join(f"{' ' * width}{line}\n" for line in lines)


def run(chosen: Sequence[Case], folder: Path, jobs: int, *, alone: bool) -> list[Result]:
    """Write, convert and execute the files."""
    original, port = folder / "original" / "torch_examples", folder / "port" / "ported_examples"
    for case in chosen:
        own = original / case.name
        own.mkdir(parents=True)
        (own / "__init__.py").touch()
        (own / f"{case.name}.py").write_text(_HEAD + case.code, encoding="utf-8")
    pairs = [(original / case.name, port / case.name) for case in chosen]
    reports = [convert_path(*pair) for pair in (pairs if alone else [(original, port)])]
    files = {Path(file.file).stem: file for report in reports for file in report.files}
    path = [str(original.parent), str(port.parent), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(part for part in path if part)
    todo = [_job(case) for case in chosen]
    parts = [todo[start : start + _BATCH] for start in range(0, len(todo), _BATCH)]
    outcomes: list[Outcome] = []
    with ThreadPoolExecutor(jobs) as pool:
        for number, found in enumerate(pool.map(batches._run_batch, parts), 1):
            outcomes += found
            print(f"{number} of {len(parts)} batches", file=sys.stderr, flush=True)
    by_name = {outcome.api: outcome for outcome in outcomes}
    return [_result(case, files[case.name], by_name[case.name]) for case in chosen]


def _job(case: Case) -> dict[str, Any]:
    """As the knowledge's check runs it, the port's code being the converted file."""
    names = ", ".join(name for name, _ in case.example.inputs)
    call = f"Example()({names})" if case.is_module else f"example({names})"
    return {
        "key": f"{case.name}#0",
        "code": f"import torch_examples.{case.name}.{case.name} as written\nwritten.{call}",
        "port": f"import ported_examples.{case.name}.{case.name} as written\nwritten.{call}",
        "inputs": list(case.example.inputs),
        "gradient": case.example.gradient,
        "compare": case.example.compare,
        "kind": "module" if case.is_module else "call",
        "seeds": list(batches.SEEDS),
        "ties": False,
    }


def _result(case: Case, file: FileConversion, outcome: Outcome) -> Result:
    if outcome.forward is None:
        return Result(case, "unusable", outcome.detail)
    if any(finding.level is Level.FINISH for finding in file.findings):
        return Result(case, "finding", "; ".join(finding.message for finding in file.findings))
    if outcome.forward and outcome.gradient is not False:
        return Result(case, "right")
    if any(file.findings):
        return Result(case, "finding", "; ".join(finding.message for finding in file.findings))
    is_error = "Error" in outcome.detail or "process" in outcome.detail
    return Result(case, "raises" if is_error else "wrong", outcome.detail)


if __name__ == "__main__":
    sys.exit(main())

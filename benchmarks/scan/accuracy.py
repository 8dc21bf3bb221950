"""Recall, precision and unknown shares of scan against a runtime trace: `python accuracy.py`.

Needs the environment with torch; downloads torchvision, timm and pytorchcv once into
~/.cache/isograd-benchmarks/scan.  A trace is kept there too; `--trace` makes it anew.

Judged are calls of torch's functions, classes and methods, and attributes of tensors, by file, line
and API.  Recall: of the events whose call names the API in its own text.  Events through a variable
(`norm_layer(…)`) are counted beside it.  Precision: of scan's calls and attributes that the hooks
could have seen, on lines that ran; what stands after `and` or `or`, in a conditional expression, a
lambda or a comprehension may not have run with its line, and is left out.  Unknown: of all uses.
"""

from __future__ import annotations

import argparse
import ast
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "src"))
from corpora import FOLDER, describe_machine, source_of  # noqa: E402

from isograd.knowledge.store import load_knowledge  # noqa: E402
from isograd.scan.model import ScanReport  # noqa: E402
from isograd.scan.names import torch_names  # noqa: E402
from isograd.scan.run import scan_path  # noqa: E402

#: The package whose sources are read, by the set of models that is run.
PACKAGES = {
    "torchvision": "torchvision",
    "timm": "timm",
    "timm-others": "timm",
    "pytorchcv": "pytorchcv",
}
JUDGED = ("call", "attribute")
WANTED = {"recall": 0.98, "precision": 0.98, "annotated": 0.03, "unannotated": 0.10}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--trace", action="store_true", help="run the models again")
    parser.add_argument("--errors", type=int, default=0, help="print so many wrong lines")
    parser.add_argument("--only", choices=tuple(PACKAGES), help="one set of models")
    options = parser.parse_args()
    print(describe_machine())
    is_good = True
    for name in PACKAGES if options.only is None else (options.only,):
        report = scan_path(source_of(PACKAGES[name]), use_cache=False)
        trace = _trace(name, options.trace)
        is_good &= _judge(name, report, trace, options.errors)
        style = "unannotated" if name == "pytorchcv" else "annotated"
        is_good &= _unknown(name, report, WANTED[style])
    return 0 if is_good else 1


def _trace(name: str, is_fresh: bool) -> dict:
    out = FOLDER / f"trace-{name}.json"
    folder = source_of(PACKAGES[name]).parent
    if is_fresh or not out.is_file():
        command = [sys.executable, str(HERE / "trace.py"), name, str(folder), str(out)]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    return json.loads(out.read_text())


def _judge(name: str, report: ScanReport, trace: dict, shown: int) -> bool:
    known, names = load_knowledge(), torch_names()

    def canonical(api: str) -> str:
        return known.canonical(names.canonical(api))

    ran = {(file, line) for file, line in trace["lines"]}
    observable = {canonical(api) for api in trace["observable"]}
    named = {(f, line, canonical(api)) for f, line, api, is_named in trace["events"] if is_named}
    indirect = {(f, line, canonical(api)) for f, line, api, is_named in trace["events"]} - named
    everything, claimed = set(), set()
    maybe = {
        scan.file: _conditional_parts(source_of(PACKAGES[name]) / scan.file)
        for scan in report.files
    }
    for scan in report.files:
        for use in scan.uses:
            if use.how == "unsure":
                continue
            place = (scan.file, use.line, canonical(use.answer.api))
            everything.add(place)
            if use.how in JUDGED and place[2] in observable and place[:2] in ran:
                if not _may_be_skipped(maybe[scan.file], use.line, use.column - 1):
                    claimed.add(place)
    found = named & everything
    right = claimed & (named | indirect)
    recall, precision = len(found) / len(named), len(right) / len(claimed)
    print(
        f"{name}: {trace['models'] - len(trace['failed'])} of {trace['models']} models ran, "
        f"{len({f for f, _, _ in named})} files\n"
        f"  recall    {recall:.2%}  ({len(found):,} of {len(named):,} named calls); "
        f"{len(indirect):,} more calls go through variables, {len(indirect & everything):,} of "
        f"them seen\n"
        f"  precision {precision:.2%} ({len(right):,} of {len(claimed):,} claims on code that ran)"
    )
    for title, wrong in (("missed", named - everything), ("wrong", claimed - named - indirect)):
        print(f"  {title}: {Counter(api for _, _, api in wrong).most_common(8)}")
        for place in sorted(wrong)[:shown]:
            print("   ", *place)
    return recall >= WANTED["recall"] and precision >= WANTED["precision"]


Span = tuple[tuple[int, int], tuple[int, int]]


def _conditional_parts(path: Path) -> list[Span]:
    """Parts of expressions that may not run although their line does."""
    spans: list[Span] = []
    for node in ast.walk(ast.parse(path.read_bytes())):
        parts: list[ast.expr] = []
        if isinstance(node, ast.IfExp):
            parts = [node.body, node.orelse]
        elif isinstance(node, ast.BoolOp):
            parts = node.values[1:]
        elif isinstance(node, ast.Lambda):
            parts = [node.body]
        elif isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
            parts = [node.elt]
        for part in parts:
            start = (part.lineno, part.col_offset)
            spans.append((start, (part.end_lineno, part.end_col_offset)))
    return spans


def _may_be_skipped(spans: list[Span], line: int, column: int) -> bool:
    return any(start <= (line, column) < end for start, end in spans)


def _unknown(name: str, report: ScanReport, allowed: float) -> bool:
    uses = [use for scan in report.files for use in scan.uses]
    unknown = [use for use in uses if use.answer.status == "unknown"]
    unsure = [use for use in unknown if use.how == "unsure"]
    share = len(unsure) / len(uses)
    print(
        f"{name}: {len(uses):,} uses, unresolved {share:.2%} (at most {allowed:.0%}); status "
        f"unknown, with names that the knowledge lacks, {len(unknown) / len(uses):.2%}"
    )
    return len(unknown) / len(uses) <= allowed


if __name__ == "__main__":
    sys.exit(main())

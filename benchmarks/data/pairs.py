"""How many planted differences are found, at which transform, and with which cause.

python benchmarks/data/pairs.py [--sample] [--out FILE]: 88 differences over 10 families, 20 equal
pairs and 20 random pairs of equal distribution; --sample takes every eighth.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import sources  # noqa: E402
from faults import EQUAL, FAULTS, RANDOM, Fault  # noqa: E402

from isograd.data.compare.run import CompareOptions, compare  # noqa: E402
from isograd.data.compare.side import PipelineSide  # noqa: E402
from isograd.data.model import Comparison  # noqa: E402
from isograd.data.pipelines.host import PipelineHandle  # noqa: E402
from isograd.data.pipelines.service import DataService  # noqa: E402
from isograd.progress import SilentProgress  # noqa: E402


class Local(PipelineHandle):
    """A pipeline in this process, as its worker answers: both frameworks are imported once."""

    def __init__(self, reference: str) -> None:
        self.address = str(HERE / reference)
        self._service = DataService()
        self.about = self.call("open", reference, str(HERE), "pipeline")

    def call(self, method: str, *arguments: Any) -> Any:
        return self._service.call(method, list(arguments))


def run(reference: str, port: str, draws: int) -> Comparison:
    a, b = Local(f"pairs_torch.py:{reference}"), Local(f"pairs_mindspore.py:{port}")
    return compare(PipelineSide(a), PipelineSide(b), CompareOptions(draws=draws), SilentProgress())


def named(*parts: str) -> str:
    return "__".join(part for part in parts if part)


def judge(fault: Fault, found: Comparison) -> dict[str, Any]:
    """What of a fault was found."""
    first = found.differences[0] if found.differences else None
    causes = [one.cause.id for one in found.differences if one.cause is not None]
    labels = " ".join(
        f"{s.reference} {s.port}" for s in found.steps if s.outcome.startswith(("differs", "other"))
    )
    where = None
    if fault.transform:
        label = first.finding.evidence if first else ()
        text = " ".join((first.transform if first else "", *label, labels.partition(")")[0]))
        where = fault.transform in text
    return {
        "fault": named(fault.family, fault.both, fault.option),
        "found": bool(found.differences),
        "transform": where,
        "cause": any(cause in fault.causes for cause in causes[:1]),
        "wrong": bool(causes) and causes[0] not in fault.causes,
        "abstained": bool(found.differences) and not causes,
        "proved": bool(first and first.cause and first.cause.proved),
        "causes": causes,
        "expected": list(fault.causes),
        "said": first.finding.message[:200] if first else "",
        "gaps": list(found.gaps),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sample", action="store_true")
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    step = 8 if options.sample else 1
    os.environ["ISOGRAD_BENCH_IMAGES"] = str(sources.write_images(Path(tempfile.mkdtemp())))
    results, alarms = [], []
    started = time.time()
    for fault in [f for f in FAULTS if options.only in f.family][::step]:
        names = named(fault.family, fault.both), named(fault.family, fault.both, fault.option)
        try:
            result = judge(fault, run(*names, options.draws))
        except Exception as error:  # a benchmark goes on, and counts it as not found
            result = {"fault": names[1], "found": False, "transform": False, "cause": False,
                      "wrong": False, "abstained": False, "proved": False, "causes": [],
                      "said": f"{type(error).__name__}: {error}"[:300], "gaps": [],
                      "expected": list(fault.causes)}  # fmt: skip
        results.append(result)
        if not result["cause"] or result["transform"] is False:
            print("MISS", json.dumps(result), flush=True)
    for name in [n for n in (*EQUAL, *RANDOM) if options.only in n][::step]:
        try:
            found = run(name, name, options.draws)
            problems = [d.finding.message for d in found.differences] + list(found.gaps)
        except Exception as error:  # counted as an alarm
            problems = [f"{type(error).__name__}: {error}"[:300]]
        alarms.append({"pair": name, "problems": problems})
        if problems:
            print("ALARM", name, problems, flush=True)
    summary = summarise(results, alarms)
    summary["elapsed_s"] = round(time.time() - started, 1)
    print(json.dumps(summary, indent=1))
    if options.out:
        options.out.write_text(
            json.dumps({"summary": summary, "faults": results, "equal": alarms}, indent=1)
        )


def summarise(results: list[dict[str, Any]], alarms: list[dict[str, Any]]) -> dict[str, Any]:
    placed = [r for r in results if r["transform"] is not None]
    return {
        "differences": len(results),
        "families": len({r["fault"].partition("__")[0] for r in results}),
        "found": sum(r["found"] for r in results),
        "transforms": len(placed),
        "first transform right": sum(bool(r["transform"]) for r in placed),
        "cause named": sum(r["cause"] for r in results),
        "cause proved": sum(r["proved"] and r["cause"] for r in results),
        "wrong cause": sum(r["wrong"] for r in results),
        "abstained": sum(r["abstained"] for r in results),
        "pairs without difference": len(alarms),
        "alarms": sum(bool(a["problems"]) for a in alarms),
    }


if __name__ == "__main__":
    main()

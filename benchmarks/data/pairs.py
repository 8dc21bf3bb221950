"""How many planted differences are found, at which transform, and with which cause.

python benchmarks/data/pairs.py [--sample] [--out FILE --resume]: 88 differences over 10 families,
20 equal pairs and 20 random pairs of equal distribution; --sample takes every eighth.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
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


def judged_fault(fault: Fault, draws: int) -> dict[str, Any]:
    """One planted difference; a benchmark goes on after an error, and counts it as not found."""
    names = named(fault.family, fault.both), named(fault.family, fault.both, fault.option)
    try:
        return judge(fault, run(*names, draws))
    except Exception as error:
        return {"fault": names[1], "found": False, "transform": False, "cause": False,
                "wrong": False, "abstained": False, "proved": False, "causes": [],
                "said": f"{type(error).__name__}: {error}"[:300], "gaps": [],
                "expected": list(fault.causes)}  # fmt: skip


def judged_pair(name: str, draws: int) -> dict[str, Any]:
    """A pair without a difference; an error counts as an alarm."""
    try:
        found = run(name, name, draws)
        problems = [d.finding.message for d in found.differences] + list(found.gaps)
    except Exception as error:
        problems = [f"{type(error).__name__}: {error}"[:300]]
    return {"pair": name, "problems": problems}


def jobs(draws: int) -> dict[str, Callable[[], dict[str, Any]]]:
    """What can be run, by a name that a resumed run knows again."""
    found: dict[str, Callable[[], dict[str, Any]]] = {}
    for fault in FAULTS:
        name = named(fault.family, fault.both, fault.option)
        found[name] = lambda fault=fault: judged_fault(fault, draws)  # type: ignore[misc]
    for pair in (*EQUAL, *RANDOM):
        found[f"{pair} (equal)"] = lambda pair=pair: judged_pair(pair, draws)  # type: ignore[misc]
    return found


def main() -> None:
    """Run, print what was missed, and write rows and table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sample", action="store_true")
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=Path, help="JSON lines: one per pair")
    parser.add_argument("--resume", action="store_true", help="skip the pairs that --out holds")
    parser.add_argument("--table", type=Path, help="where the table in Markdown goes")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    options = parser.parse_args()
    os.environ["ISOGRAD_BENCH_IMAGES"] = str(sources.write_images(Path(tempfile.mkdtemp())))
    rows: dict[str, dict[str, Any]] = {}
    if options.resume and options.out and options.out.is_file():
        lines = options.out.read_text(encoding="utf-8").splitlines()
        rows = {row["name"]: row for row in map(json.loads, lines)}
    started = time.time()
    chosen = [(n, job) for n, job in jobs(options.draws).items() if options.only in n]
    for name, job in chosen[:: 8 if options.sample else 1]:
        if name in rows or time.time() - started > options.seconds:
            continue
        began = time.time()
        row = {"name": name, **job(), "draws": options.draws}
        row["elapsed_s"] = round(time.time() - began, 1)
        rows[name] = row
        if row.get("problems") or row.get("cause") is False or row.get("transform") is False:
            print("ALARM" if "problems" in row else "MISS", json.dumps(row), flush=True)
        if options.out:
            text = "".join(json.dumps(one) + "\n" for one in rows.values())
            options.out.write_text(text, encoding="utf-8")
    faults = [row for row in rows.values() if "fault" in row]
    summary = summarise(faults, [row for row in rows.values() if "pair" in row])
    print(json.dumps(summary, indent=1))
    if options.table:
        options.table.write_text(table(summary, list(rows.values())), encoding="utf-8")


def table(summary: dict[str, Any], rows: list[dict[str, Any]]) -> str:
    """The summary as Markdown, with what was missed, and where and when it was measured."""
    call = ["git", "rev-parse", "--short", "HEAD"]
    done = subprocess.run(call, cwd=HERE, capture_output=True, text=True)
    draws = sorted({row["draws"] for row in rows})
    count, placed = summary["differences"], summary["transforms"]
    lines = (
        (f"planted differences found, {summary['families']} families", "found", count, "99 %"),
        ("first differing transform right, where listed", "first transform right", placed, "95 %"),
        ("cause named", "cause named", count, "90 %"),
        ("cause proved on other samples", "cause proved", count, ""),
        ("wrong cause", "wrong cause", count, "1 %"),
        ("alarms on equal pairs", "alarms", summary["pairs without difference"], "0"),
    )
    missed = [row["name"] for row in rows if row.get("cause") is False]
    return (
        f"`python benchmarks/data/pairs.py` with {' and '.join(map(str, draws))} draws of random "
        f"transforms, commit {done.stdout.strip() or 'unknown'}, {os.cpu_count()} cores, "
        f"{time.strftime('%Y-%m-%d')}. Cause not named: {', '.join(missed) or 'none'}.\n\n"
        "| what | measured | wanted |\n|---|---|---|\n"
    ) + "".join(
        f"| {text} | {summary[key]} of {of} ({summary[key] / max(of, 1):.1%}) | {wanted} |\n"
        for text, key, of, wanted in lines
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

"""Faults that only the static graph makes: are they found, at their module, by their construct?

    python benchmarks/compiled/run.py [--sample] [--only NAME] [--out FILE] [--markdown FILE]

Planted faults (each plant on networks in turn, renamed and every other one nested in a helper),
ports that compile (clean), and ports whose compiled run rounds otherwise (rounding). The stage is
run alone; a finished case is not run again where --out holds it.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import random
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from networks import MINDSPORE, NETWORKS, TORCH, Network, case, source

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_WORDS = "kept parts state held pieces first values inner part store chosen fused".split()
_PLANTED, _CLEAN, _ROUNDING = 60, 30, 20
#: The same sum with other roundings: what a compiler may simplify or order otherwise.
_ROUNDINGS = (
    "({x} * 3.1 + ({f}) * 3.1) / 3.1",
    "(({x} + 100.0) + ({f})) - 100.0",
    "OPS.exp(OPS.log(1.5 + OPS.sigmoid({x}))) + ({f}) * 0.3 / 0.7",
    "{x} + ({f}) / 7.0 * 3.0 + {x} / 9.0",
    "({x} - {x}.mean(-1, True)) / 3.3 + ({f}) * 1.7 + {x} * 0.1",
)
_CLEANS = (
    "{x} + {f}",
    "sum([{x}, {f}])",
    "[{x}, {f}][0] + [{x}, {f}][1]",
    "(lambda value: value + {x})({f})",
    "{{'kept': {x}, 'added': {f}}}['kept'] + {f}",
)


@dataclass(frozen=True)
class Job:
    """One pair of networks; kind: the rule that must be named, empty where nothing may be found."""

    name: str
    family: str
    network: Network
    reference: str
    port: str
    kind: str = ""


def plants() -> list[dict[str, str]]:
    """The plants as written."""
    text = Path(__file__).with_name("plants.toml").read_text(encoding="utf-8")
    found: list[dict[str, str]] = tomllib.loads(text)["plant"]
    return found


def jobs() -> Iterator[Job]:
    """Every case; the same each time."""
    drawn = random.Random(31)
    all_plants = plants()
    for number in range(_PLANTED):
        plant = all_plants[number % len(all_plants)]
        network = NETWORKS[(number + number // len(NETWORKS)) % len(NETWORKS)]
        yield _planted(f"planted-{number:02d}", plant, network, drawn, nested=number % 2 == 1)
    for family, count, texts in (("clean", _CLEAN, _CLEANS), ("rounding", _ROUNDING, _ROUNDINGS)):
        for number in range(count):
            network = NETWORKS[number % len(NETWORKS)]
            text = texts[(number + number // len(NETWORKS)) % len(texts)]
            yield _plain(f"{family}-{number:02d}", family, text, network)


def _planted(
    name: str, plant: dict[str, str], network: Network, drawn: random.Random, nested: bool
) -> Job:
    words = dict(zip("abc", drawn.sample(_WORDS, 3), strict=True))
    values = {**words, "x": "x", "f": f"({network.added})"}
    if plant["kind"] in ("named_tuple", "dataclass"):
        values["a"] = words["a"].capitalize()

    def filled(key: str) -> str:
        return plant.get(key, "").format(**values)

    body = filled("body")
    methods = filled("methods")
    if nested and not plant.get("methods"):
        methods = f"def {words['c']}_of(self, x):\n" + textwrap.indent(body, "    ")
        body = f"return self.{words['c']}_of(x)"
    port = source(
        network,
        MINDSPORE,
        _method("construct", body),
        filled("before") + "\n",
        textwrap.indent(filled("made") + "\n", " " * 8) if plant.get("made") else "",
        textwrap.indent(methods + "\n", "    ") if methods else "",
    )
    expression = plant.get("torch", "{x} + {f}").format(**values)
    reference = source(network, TORCH, _method("forward", f"return {expression}"))
    return Job(name, "planted", network, reference, port, plant["kind"])


def _plain(name: str, family: str, text: str, network: Network) -> Job:
    expression = text.format(x="x", f=f"({network.added})")
    sides = [
        source(network, dialect, _method(dialect.forward, f"return {expression}"))
        for dialect in (TORCH, MINDSPORE)
    ]
    return Job(name, family, network, *sides)


def _method(name: str, body: str) -> str:
    return f"    def {name}(self, x):\n" + textwrap.indent(body + "\n", " " * 8)


def run(job: Job) -> dict[str, Any]:
    """The stage on one job, and whether it says what it must."""
    from isograd.progress import SilentProgress
    from isograd.verify.case import read_case
    from isograd.verify.compiled.stage import begin_compiled, run_compiled
    from isograd.verify.prepare import prepare
    from isograd.verify.session import Session

    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "net_torch.py").write_text(job.reference, encoding="utf-8")
        (place / "net_mindspore.py").write_text(job.port, encoding="utf-8")
        (place / "case.toml").write_text(case(job.network), encoding="utf-8")
        begin = time.monotonic()
        with Session(read_case(place / "case.toml"), 0, SilentProgress()) as session:
            session.build()
            prepare(session)
            built = time.monotonic()
            found = run_compiled(session, begin_compiled(session))
        elapsed = time.monotonic() - built
    findings = [f for f in found.findings if f.diverges]
    causes = [f.cause.id if f.cause else "" for f in findings]
    return {
        "name": job.name,
        "family": job.family,
        "network": job.network.name,
        "kind": job.kind,
        "found": bool(findings),
        "modules": [f.module for f in findings],
        "exact": bool(findings) and all(f.module == job.network.planted for f in findings),
        "causes": causes,
        "named": job.kind in causes,
        "wrong": [c for c in causes if c and c != job.kind],
        "proved": [bool(f.cause and f.cause.proved) for f in findings],
        "codes": [f.code for f in findings],
        "messages": [f.message for f in findings],
        "start_s": round(built - begin, 1),
        "stage_s": round(elapsed, 1),
    }


def summary(rows: list[dict[str, Any]]) -> list[str]:
    """The figures as lines of Markdown."""
    planted = [r for r in rows if r["family"] == "planted" and "error" not in r]
    quiet = [r for r in rows if r["family"] != "planted" and "error" not in r]
    broken = [r for r in rows if "error" in r]

    def share(name: str, count: int, of: int) -> str:
        return f"| {name} | {count} of {of} | {count / max(1, of):.1%} |"

    lines = ["| | cases | share |", "|---|---|---|"]
    lines.append(share("planted faults found", sum(r["found"] for r in planted), len(planted)))
    lines.append(share("exact module", sum(r["exact"] for r in planted), len(planted)))
    lines.append(share("construct named", sum(r["named"] for r in planted), len(planted)))
    lines.append(share("with a wrong cause", sum(bool(r["wrong"]) for r in planted), len(planted)))
    proved = sum(any(r["proved"]) for r in planted)
    lines.append(share("cause proved by compiling the rewrite", proved, len(planted)))
    for family in ("clean", "rounding"):
        own = [r for r in quiet if r["family"] == family]
        alarms = sum(r["found"] for r in own)
        lines.append(share(f"alarms on {family} ports", alarms, len(own)))
    if broken:
        lines.append(share("could not be run", len(broken), len(rows)))
    return lines


def main() -> None:
    """Run what is wanted, write rows as they come, print the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sample", action="store_true", help="every sixth case")
    parser.add_argument("--only", default="", help="cases whose name begins so")
    parser.add_argument("--out", type=Path, help="rows as JSON lines; finished ones are kept")
    parser.add_argument("--markdown", type=Path, help="the figures")
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    if given.out and given.out.exists():
        rows = [json.loads(line) for line in given.out.read_text().splitlines()]
    done = {row["name"] for row in rows}
    wanted = [job for job in jobs() if job.name.startswith(given.only)]
    for job in wanted[:: 6 if given.sample else 1]:
        if job.name in done:
            continue
        try:
            row = run(job)
        except Exception as error:  # a case that does not run is told, and counted
            row = {"name": job.name, "family": job.family, "kind": job.kind, "error": str(error)}
        rows.append(row)
        print(json.dumps(row), flush=True)
        if given.out:
            with given.out.open("a", encoding="utf-8") as out:
                out.write(json.dumps(row) + "\n")
    lines = summary(rows)
    print("\n".join(lines))
    if given.markdown:
        commit = ""
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            command = ["git", "rev-parse", "--short", "HEAD"]
            commit = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        head = f"{len(rows)} cases, commit {commit.strip()}, {datetime.date.today()}\n\n"
        given.markdown.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

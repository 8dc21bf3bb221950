"""Faults that only the static graph makes: are they found, at their module, by their construct?

    python benchmarks/compiled/run.py [--sample] [--only NAME] [--out FILE] [--markdown FILE]

Planted faults (each plant on networks in turn, renamed and every other one nested in a helper),
ports that compile (clean), and ports whose compiled run rounds otherwise (rounding). The stage is
run alone. A case that --out holds on this commit is not run again.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
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

from isograd.progress import SilentProgress
from isograd.verify.case import read_case
from isograd.verify.compiled.stage import begin_compiled, run_compiled
from isograd.verify.part import WHOLE
from isograd.verify.prepare import prepare
from isograd.verify.session import Session, StartWorker
from isograd.worker.warm import WarmWorkers

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


def plants() -> list[dict[str, Any]]:
    """The plants as written."""
    text = Path(__file__).with_name("plants.toml").read_text(encoding="utf-8")
    found: list[dict[str, Any]] = tomllib.loads(text)["plant"]
    return found


def jobs() -> Iterator[Job]:
    """Every case; the same each time."""
    drawn = random.Random(31)
    all_plants = plants()
    for number in range(_PLANTED):
        plant = all_plants[number % len(all_plants)]
        network = _network(number, plant)
        yield _planted(f"planted-{number:02d}", plant, network, drawn, nested=number % 2 == 1)
    for family, count, texts in (("clean", _CLEAN, _CLEANS), ("rounding", _ROUNDING, _ROUNDINGS)):
        for number in range(count):
            network = NETWORKS[number % len(NETWORKS)]
            text = texts[(number + number // len(NETWORKS)) % len(texts)]
            yield _plain(f"{family}-{number:02d}", family, text, network)


def _network(number: int, plant: dict[str, Any]) -> Network:
    """The next network in turn on which the plant is a fault."""
    turn = number + number // len(NETWORKS)
    while NETWORKS[turn % len(NETWORKS)].name in plant.get("right_on", ()):
        turn += 1
    return NETWORKS[turn % len(NETWORKS)]


def _planted(
    name: str, plant: dict[str, Any], network: Network, drawn: random.Random, nested: bool
) -> Job:
    words = dict(zip("abc", drawn.sample(_WORDS, 3), strict=True))
    values = {**words, "x": "x", "f": f"({network.added})"}
    if plant["kind"] in ("named_tuple", "dataclass"):
        values["a"] = words["a"].capitalize()

    def filled(key: str) -> str:
        text: str = plant.get(key, "")
        return text.format(**values)

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


def run(job: Job, start: StartWorker) -> dict[str, Any]:
    """The stage on one job, and whether it says what it must; start: starts its workers."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "net_torch.py").write_text(job.reference, encoding="utf-8")
        (place / "net_mindspore.py").write_text(job.port, encoding="utf-8")
        (place / "case.toml").write_text(case(job.network), encoding="utf-8")
        begin = time.monotonic()
        given = read_case(place / "case.toml"), 0, SilentProgress(), WHOLE, start
        with Session(*given) as session:
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
    """The figures as lines of Markdown, and the cases that are not as they must be."""
    planted = [r for r in rows if r["family"] == "planted"]

    def share(name: str, count: int, of: int, asked: str) -> str:
        return f"| {name} | {count} of {of} | {count / max(1, of):.1%} | {asked} |"

    def planted_with(key: str) -> int:
        return sum(bool(r.get(key)) for r in planted)

    lines = [
        "| | cases | share | asked |",
        "|---|---|---|---|",
        share("planted faults found", planted_with("found"), len(planted), "98 %"),
        share("exact module", planted_with("exact"), len(planted), "95 %"),
        share("construct named", planted_with("named"), len(planted), "90 %"),
        share("with a wrong cause", planted_with("wrong"), len(planted), "at most 1 %"),
    ]
    proved = sum(any(r.get("proved", ())) for r in planted)
    lines.append(share("cause proved by compiling the rewrite", proved, len(planted), ""))
    for family in ("clean", "rounding"):
        own = [r for r in rows if r["family"] == family]
        alarms = sum(bool(r.get("found")) for r in own)
        lines.append(share(f"alarms on {family} ports", alarms, len(own), "none"))
    broken = sum("error" in r for r in rows)
    lines.append(share("could not be run", broken, len(rows), "none"))
    wrong = [_words(row) for row in rows if not _is_right(row)]
    return [*lines, "", f"Not as asked: {'; '.join(wrong) or 'none'}."]


def _is_right(row: dict[str, Any]) -> bool:
    if "error" in row:
        return False
    if row["family"] != "planted":
        return not row["found"]
    return bool(row["exact"] and row["named"] and not row["wrong"])


def _words(row: dict[str, Any]) -> str:
    what = row.get("error") or ", ".join(filter(None, row["causes"])) or "nothing named"
    return f"{row['name']} ({row['kind'] or row['family']}, {row['network']}): {what}"


def main() -> int:
    """Run what is wanted, write rows as they come, print the figures."""
    given = _arguments()
    commit = _commit()
    rows = _kept(given.out, commit)
    wanted = [job for job in jobs() if job.name.startswith(given.only)][:: 6 if given.sample else 1]
    until = time.monotonic() + given.limit
    with WarmWorkers() as warm:
        for job in wanted:
            if job.name in rows or time.monotonic() > until:
                continue
            row = _tried(job, warm.worker) | {"commit": commit}
            rows[job.name] = row
            print(json.dumps(row), flush=True)
            if given.out:
                with given.out.open("a", encoding="utf-8") as out:
                    out.write(json.dumps(row) + "\n")
    lines = summary([rows[job.name] for job in wanted if job.name in rows])
    print("\n".join(lines))
    if given.markdown:
        where = f"{os.cpu_count()} cores ({platform.machine()}), load {os.getloadavg()[0]:.1f}"
        head = f"Commit {commit}, {datetime.date.today()}, {where}."
        given.markdown.write_text("\n".join([head, "", *lines, ""]), encoding="utf-8")
    return 0 if all(map(_is_right, rows.values())) else 1


def _tried(job: Job, start: StartWorker) -> dict[str, Any]:
    try:
        return run(job, start)
    except Exception as error:  # a case that does not run is reported and counted
        base = {"name": job.name, "family": job.family, "network": job.network.name}
        return base | {"kind": job.kind, "error": f"{type(error).__name__}: {error}"}


def _kept(file: Path | None, commit: str) -> dict[str, dict[str, Any]]:
    """The rows of a file by name that were measured on this commit."""
    if file is None or not file.exists():
        return {}
    rows = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    return {row["name"]: row for row in rows if row.get("commit") == commit}


def _commit() -> str:
    command = ["git", "rev-parse", "--short", "HEAD"]
    asked = subprocess.run(
        command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    return asked.stdout.strip()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sample", action="store_true", help="every sixth case")
    parser.add_argument("--only", default="", help="cases whose name begins so")
    parser.add_argument("--out", type=Path, help="rows as JSON lines; this commit's are kept")
    parser.add_argument("--limit", type=float, default=1e9, help="begin no case after SECONDS")
    parser.add_argument("--markdown", type=Path, help="write the figures here")
    return parser.parse_args()


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())

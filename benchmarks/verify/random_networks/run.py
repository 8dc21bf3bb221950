"""Draw random networks, port each, and verify the ports: every alarm is a fault of isograd's.

python benchmarks/verify/random_networks/run.py --count 20 --seed 1

Each network is ported by `isograd convert` and, where MindSpore has all its layers, written in
them too.  A port that is not equivalent, or a verification that fails, is an alarm.  Results are
appended to a file, one line each, so that a run can be cut into pieces.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from generate import Generator
from network import Network
from shrink import shrunk

from isograd.convert.run import convert_path
from isograd.errors import IsogradError
from isograd.model import VerifyReport
from isograd.progress import SilentProgress
from isograd.verify.ladder import verify_case

_HERE = Path(__file__).resolve().parent
#: Of networks, this share is drawn from what MindSpore has as its own layers.
_NATIVE_EVERY = 3
_MOST_STATEMENTS = 12


@dataclass
class Outcome:
    """What one port of one network came to."""

    seed: int
    port: str
    verify_seed: int
    verdict: str
    elapsed_s: float
    detail: str = ""
    apis: list[str] = field(default_factory=list)
    commit: str = ""

    @property
    def is_alarm(self) -> bool:
        return self.verdict not in ("equivalent", "marked")


def draw_network(seed: int, most: int = _MOST_STATEMENTS) -> Network:
    """The network of a seed."""
    return Generator(seed, native_only=seed % _NATIVE_EVERY == 0, most=most).network()


def judge(network: Network, folder: Path, verify_seed: int, port: str) -> tuple[str, str]:
    """Verdict of one port, in a word, with what was found."""
    case = folder / ("native.toml" if port == "native" else "case.toml")
    if port == "convert":
        try:
            report = convert_path(folder / "net.py", folder / "port")
        except IsogradError as error:
            return "convert failed", str(error)
        if report.findings:
            return "marked", "; ".join(f"{f.line}: {f.message}" for f in report.findings[:3])
    try:
        found = verify_case(case, seed=verify_seed, keep=None, progress=SilentProgress())
    except IsogradError as error:
        return "error", f"{type(error).__name__}: {error.what}"
    except Exception as error:  # any failure is one of isograd's
        return "error", f"{type(error).__name__}: {error}"
    return found.verdict.value, _words(found)


def _words(report: VerifyReport) -> str:
    parts = []
    for finding in report.findings:
        if finding.diverges:
            cause = f" [{finding.cause.id}]" if finding.cause else ""
            parts.append(f"{finding.stage.value} {finding.module}: {finding.message}{cause}")
    parts += [f"gap {gap.stage.value}: {gap.what}: {gap.why}" for gap in report.gaps]
    parts += [
        f"stage {result.stage.value} {result.verdict.value}"
        for result in report.stages
        if result.verdict.value in ("error", "divergent")
    ]
    return " | ".join(parts)


def run_one(seed: int, verify_seed: int, keep: Path | None, most: int) -> Iterator[Outcome]:
    """Draw the network of a seed and judge its ports."""
    network = draw_network(seed, most)
    apis = [line.api for line in network.lines]
    ports = ["convert", "native"] if network.has_native else ["convert"]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) if keep is None else keep / str(seed)
        network.write(folder)
        for port in ports:
            begin = time.monotonic()
            verdict, detail = judge(network, folder, verify_seed, port)
            elapsed = time.monotonic() - begin
            yield Outcome(seed, port, verify_seed, verdict, elapsed, detail, apis)


def main(argv: Sequence[str] | None = None) -> int:
    """Run, print one line for each alarm and a table; exit status 1 for an alarm."""
    arguments = _arguments(argv)
    if arguments.shrink is not None:
        return _shrink(arguments)
    done = _already(arguments.out)
    seeds = range(arguments.first, arguments.first + arguments.count)
    asked = [(s, v) for v in arguments.verify_seeds for s in seeds if (s, v) not in done]
    commit = _commit()
    deadline = time.monotonic() + arguments.limit
    outcomes: list[Outcome] = []
    with ProcessPoolExecutor(arguments.jobs, get_context("spawn")) as pool:
        place = arguments.keep, arguments.most, deadline
        jobs = [pool.submit(_work, *job, *place) for job in asked]
        for job in as_completed(jobs):
            for outcome in job.result():
                outcome.commit = commit
                outcomes.append(outcome)
                _show(outcome)
                if arguments.out is not None:
                    with arguments.out.open("a") as stream:
                        stream.write(json.dumps(vars(outcome)) + "\n")
    print(_table(outcomes))
    return 1 if any(o.is_alarm for o in outcomes) else 0


def _work(
    seed: int, verify_seed: int, keep: Path | None, most: int, deadline: float
) -> list[Outcome]:
    """One network in a process of its own: the generator seeds torch, convert keeps a library."""
    if time.monotonic() > deadline:
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(run_one(seed, verify_seed, keep, most))


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=20, help="networks (default 20)")
    parser.add_argument("--first", type=int, default=0, help="the first network's seed (default 0)")
    parser.add_argument("--verify-seeds", type=int, nargs="+", default=[0], help="verify's seeds")
    parser.add_argument(
        "--most", type=int, default=_MOST_STATEMENTS, help="statements of a network at most"
    )
    parser.add_argument("--jobs", type=int, default=2, help="at the same time (default 2)")
    parser.add_argument("--limit", type=float, default=1e9, help="start no network after SECONDS")
    parser.add_argument("--out", type=Path, help="append results here, and skip what it holds")
    parser.add_argument("--keep", type=Path, help="write the networks into this folder")
    parser.add_argument("--shrink", type=int, help="reduce the network of this seed to its cause")
    parser.add_argument("--port", default="convert", choices=("convert", "native"))
    return parser.parse_args(argv)


def _show(outcome: Outcome) -> None:
    if outcome.is_alarm:
        print(f"{outcome.seed} {outcome.port}: {outcome.verdict}: {outcome.detail}", flush=True)


def _already(path: Path | None) -> set[tuple[int, int]]:
    if path is None or not path.exists():
        return set()
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return {(row["seed"], row["verify_seed"]) for row in rows}


def _table(outcomes: Sequence[Outcome]) -> str:
    counts = collections.Counter((o.port, o.verdict) for o in outcomes)
    rows = [f"{port:8} {verdict:15} {count}" for (port, verdict), count in sorted(counts.items())]
    seconds = [o.elapsed_s for o in outcomes]
    if seconds:
        rows.append(
            f"median {statistics.median(seconds):.1f} s a port, {sum(seconds):.0f} s in all"
        )
    return "\n".join(rows)


def _commit() -> str:
    asked = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],  # noqa: S607 - whichever git there is
        cwd=_HERE,
        capture_output=True,
        text=True,
        check=False,
    )
    return asked.stdout.strip()


def _shrink(arguments: argparse.Namespace) -> int:
    network = draw_network(arguments.shrink, arguments.most)
    seed: Any = arguments.verify_seeds[0]

    def alarms(part: Network) -> bool:
        with tempfile.TemporaryDirectory() as place:
            part.write(Path(place))
            verdict, _ = judge(part, Path(place), seed, arguments.port)
        return verdict not in ("equivalent", "marked")

    least = shrunk(network, alarms)
    folder = arguments.keep or Path(tempfile.mkdtemp())
    least.write(folder)
    print((folder / "net.py").read_text())
    print(f"{folder}: {' | '.join(judge(least, folder, seed, arguments.port))}")
    return 0


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())

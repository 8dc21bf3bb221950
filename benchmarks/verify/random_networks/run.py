"""Draw random networks, port each, and verify the ports: every alarm is a fault of isograd's.

python benchmarks/verify/random_networks/run.py --count 20 --seed 1

Each network is ported by `isograd convert` and, where MindSpore has all its layers, written in
them too.  A port that is not equivalent, or a verification that fails, is an alarm.  Results are
kept in a file, one line for each network, port and seed, so that a run can be cut into pieces; a
row is measured again with --again, and the newest one counts.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import functools
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from generate import Generator
from network import Network
from rows import Outcome, newest, read_rows, table
from shrink import shrunk

from isograd.convert.run import convert_path
from isograd.errors import IsogradError
from isograd.model import VerifyReport
from isograd.progress import SilentProgress
from isograd.verify.ladder import verify_case
from isograd.verify.session import StartWorker
from isograd.worker.host import Worker
from isograd.worker.warm import WarmWorkers

_HERE = Path(__file__).resolve().parent
#: Of networks, this share is drawn from what MindSpore has as its own layers.
_NATIVE_EVERY = 3
_MOST_STATEMENTS = 12


def draw_network(seed: int, most: int = _MOST_STATEMENTS) -> Network:
    """The network of a seed."""
    return Generator(seed, native_only=seed % _NATIVE_EVERY == 0, most=most).network()


class Clock:
    """Starts workers, and counts the processor time of them and of this process."""

    def __init__(self, start: StartWorker) -> None:
        self._start = start
        self._begin = time.process_time()

    def start(self, framework: str, side: str, python: str | None = None) -> Worker:
        """A worker whose time is counted when it closes."""
        worker = self._start(framework, side, python)
        close = worker.close

        def counted() -> None:
            self._begin -= _processor_s(worker)
            close()

        worker.close = counted  # type: ignore[method-assign]  # also called by `with`
        return worker

    def spent_s(self) -> float:
        """Processor time since this was made."""
        return time.process_time() - self._begin


def _processor_s(worker: Worker) -> float:
    """Processor time of a worker that has not been closed; 0 of one that has ended."""
    with contextlib.suppress(OSError, IndexError):
        text = Path(f"/proc/{worker._process.pid}/stat").read_text()
        fields = text.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def judge(
    network: Network, folder: Path, verify_seed: int, port: str, start: StartWorker = Worker
) -> tuple[str, str]:
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
        found = verify_case(
            case, seed=verify_seed, keep=None, progress=SilentProgress(), start=start
        )
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


def run_one(
    seed: int, verify_seed: int, keep: Path | None, most: int, start: StartWorker = Worker
) -> Iterator[Outcome]:
    """Draw the network of a seed and judge its ports."""
    network = draw_network(seed, most)
    apis = [line.api for line in network.lines]
    ports = ["convert", "native"] if network.has_native else ["convert"]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) if keep is None else keep / str(seed)
        network.write(folder)
        for port in ports:
            begin, clock = time.monotonic(), Clock(start)
            verdict, detail = judge(network, folder, verify_seed, port, clock.start)
            elapsed = time.monotonic() - begin, clock.spent_s()
            yield Outcome(seed, port, verify_seed, verdict, *elapsed, detail, apis)


def main(argv: Sequence[str] | None = None) -> int:
    """Run, print one line for each alarm and a table; exit status 1 for an alarm."""
    arguments = _arguments(argv)
    if arguments.shrink is not None:
        return _shrink(arguments)
    known = [] if arguments.out is None else read_rows(arguments.out)
    seeds = range(arguments.first, arguments.first + arguments.count)
    pairs = [(s, v) for v in arguments.verify_seeds for s in seeds]
    if arguments.pairs:
        pairs = [(int(s), int(v)) for s, v in (pair.split(":") for pair in arguments.pairs)]
    done = {(one.seed, one.verify_seed) for one in known}
    asked = pairs if arguments.again else [pair for pair in pairs if pair not in done]
    commit = _commit()
    for outcome in _measured(asked, arguments):
        outcome.commit = commit
        known.append(outcome)
        _show(outcome)
        if arguments.out is not None:
            with arguments.out.open("a") as stream:
                stream.write(json.dumps(vars(outcome)) + "\n")
    wanted = set(pairs)
    outcomes = [one for one in newest(known) if (one.seed, one.verify_seed) in wanted]
    print(table(outcomes))
    return 1 if any(o.is_alarm for o in outcomes) else 0


def _measured(asked: Sequence[tuple[int, int]], arguments: argparse.Namespace) -> Iterator[Outcome]:
    deadline = time.monotonic() + arguments.limit
    place = arguments.keep, arguments.most, deadline
    if arguments.jobs == 1:
        for job in asked:
            yield from _work(*job, *place)
        return
    with ProcessPoolExecutor(arguments.jobs, get_context("spawn")) as pool:
        for done in as_completed([pool.submit(_work, *job, *place) for job in asked]):
            yield from done.result()


@functools.cache
def _warm() -> WarmWorkers:
    """One pair of processes that hold the frameworks, for all networks of this process."""
    found = WarmWorkers()
    atexit.register(found.close)
    return found


def _work(
    seed: int, verify_seed: int, keep: Path | None, most: int, deadline: float
) -> list[Outcome]:
    """One network; nothing is begun after the deadline."""
    if time.monotonic() > deadline:
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(run_one(seed, verify_seed, keep, most, _warm().worker))


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
    parser.add_argument("--out", type=Path, help="keep results here, and skip what it holds")
    parser.add_argument("--again", action="store_true", help="measure what --out holds again")
    parser.add_argument("--pairs", nargs="*", help="only these, as NETWORK:SEED")
    parser.add_argument("--keep", type=Path, help="write the networks into this folder")
    parser.add_argument("--shrink", type=int, help="reduce the network of this seed to its cause")
    parser.add_argument("--port", default="convert", choices=("convert", "native"))
    return parser.parse_args(argv)


def _show(outcome: Outcome) -> None:
    if outcome.is_alarm:
        print(f"{outcome.seed} {outcome.port}: {outcome.verdict}: {outcome.detail}", flush=True)


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
            verdict, _ = judge(part, Path(place), seed, arguments.port, _warm().worker)
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

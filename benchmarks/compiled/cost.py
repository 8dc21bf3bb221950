"""What the stage compiled costs: processor time of a verification with the stage and without it.

    python benchmarks/compiled/cost.py [--networks NAME …] [--rounds N]

Both are run in turn, each in a process of its own with its workers; the least of the rounds counts.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "verify"))

import faults

from isograd.model import Verdict
from isograd.progress import SilentProgress
from isograd.verify.case import Case, read_case
from isograd.verify.ladder import verify_case
from isograd.worker.host import Worker
from isograd.worker.warm import WarmWorkers

#: Networks whose ports the compiler takes.
_NETWORKS = ("cnn", "unet", "transformer", "lstm_tagger", "resnet50")


def seconds(network: str, compiled: str) -> float:
    """Processor time of one verification of a clean port, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        case = faults.write_case(network, Path(folder) / "case", None)
        text = case.read_text(encoding="utf-8")
        text = re.sub(r"^compiled = .*\n", "", text, flags=re.MULTILINE)
        text = text.replace("[verify]\n", f'[verify]\ncompiled = "{compiled}"\n')
        case.write_text(text, encoding="utf-8")
        command = [sys.executable, __file__, "--case", str(case)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{network}, compiled = {compiled}: {done.stderr or done.stdout}")
    return float(done.stdout.split()[-1])


class _Workers:
    """Starts workers as a verification does, and adds up what they and their makers take."""

    def __init__(self, warm: WarmWorkers, case: Case) -> None:
        self._warm, self._case = warm, case
        self.spent_s = 0.0

    def start(self, framework: str, side: str, python: str | None = None) -> Worker:
        is_shared = self._case.wants_compiled and framework.startswith("mindspore")
        worker = (self._warm.worker if is_shared else Worker)(framework, side, python)
        close = worker.close

        def counted() -> None:
            if worker._process.poll() is None:
                self.spent_s += _taken_s(worker._process.pid)
            close()

        worker.close = counted  # type: ignore[method-assign]  # also called by `with`
        return worker

    def makers_s(self) -> float:
        return sum(_taken_s(s._process.pid) for s in self._warm._servers.values() if s)


def _taken_s(process: int) -> float:
    """Processor time of a process that has not ended."""
    text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    fields = text.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _verify(file: Path) -> None:
    """Verify a case in this process, and print what it took, workers included."""
    case = read_case(file)
    with WarmWorkers() as warm:
        workers = _Workers(warm, case)
        report = verify_case(
            case, seed=0, keep=None, progress=SilentProgress(), start=workers.start
        )
        total = time.process_time() + workers.spent_s + workers.makers_s()
    if report.verdict is not Verdict.EQUIVALENT:
        raise SystemExit(f"the verdict is {report.verdict.value}")
    print(total)


def main() -> None:
    """Print a row for each network, and the median share."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--networks", nargs="+", choices=faults.CASES, default=_NETWORKS)
    parser.add_argument("--rounds", type=int, default=2, help="of each (default 2)")
    parser.add_argument("--case", type=Path, help="verify this alone and print what it took")
    given = parser.parse_args()
    if given.case:
        _verify(given.case)
        return
    print("| network | other stages, s | with compiled, s | the stage's share of the others |")
    print("|---|---|---|---|")
    shares = []
    for network in given.networks:
        rounds = [(seconds(network, "off"), seconds(network, "auto")) for _ in range(given.rounds)]
        off, auto = (min(each) for each in zip(*rounds, strict=True))
        shares.append((auto - off) / off)
        print(f"| {network} | {off:.1f} | {auto:.1f} | {shares[-1]:.0%} |", flush=True)
    print(f"| median | | | {statistics.median(shares):.0%} |")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()

"""What the stage compiled costs: processor time of a verification with the stage and without it.

    python benchmarks/compiled/cost.py [--networks NAME …] [--rounds N]

Both are run in turn, each in a process of its own with its workers; the least of the rounds counts.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "verify"))

import faults


def seconds(network: str, compiled: str) -> float:
    """Processor time of one verification of a clean port, its workers included."""
    with tempfile.TemporaryDirectory() as folder:
        case = faults.write_case(network, Path(folder) / "case", None)
        text = case.read_text(encoding="utf-8")
        text = re.sub(r"^compiled = .*\n", "", text, flags=re.MULTILINE)
        text = text.replace("[verify]\n", f'[verify]\ncompiled = "{compiled}"\n')
        case.write_text(text, encoding="utf-8")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "isograd", "verify", str(case), "--quiet"]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{network}, compiled = {compiled}: exit status {done.returncode}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print a row for each network, and the median share."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--networks", nargs="+", choices=faults.CASES, default=list(faults.CASES))
    parser.add_argument("--rounds", type=int, default=2, help="of each (default 2)")
    given = parser.parse_args()
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

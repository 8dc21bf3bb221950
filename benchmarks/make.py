"""Runs benchmarks and writes their tables into docs/benchmarks.md, with commit, machine and date.

    python benchmarks/make.py [--full] [--only KEY …]

A benchmark prints its table in Markdown; what it prints beside is left out.  One that fails
leaves its section as it was, and makes the exit status 1.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import re
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "benchmarks.md"


@dataclass(frozen=True)
class Benchmark:
    """One entry of benchmarks.toml."""

    key: str
    title: str
    about: str
    sample: str
    full: str

    def command(self, *, is_full: bool) -> str:
        """The words behind `python`."""
        return self.full if is_full and self.full else self.sample


def load() -> list[Benchmark]:
    """All benchmarks in their order."""
    text = (ROOT / "benchmarks" / "benchmarks.toml").read_text(encoding="utf-8")
    return [Benchmark(**entry) for entry in tomllib.loads(text)["benchmark"]]


def tables_of(output: str) -> str:
    """The tables in a benchmark's output, and the sentences that stand directly below them."""
    kept: list[str] = []
    is_below = False
    for line in output.splitlines():
        is_row = line.startswith("|")
        if is_row and kept and not is_below:
            kept.append("")
        if is_row:
            kept.append(line.rstrip())
        elif is_below and line.strip():
            kept += ["", line.rstrip()]
        is_below = is_row or (is_below and not line.strip())
    return "\n".join(kept).strip()


def section(benchmark: Benchmark, table: str, command: str, elapsed_s: float) -> str:
    """The text between a benchmark's marks."""
    commit = _said("git", "rev-parse", "--short", "HEAD")
    changed = " with changes" if _said("git", "status", "--porcelain", "-uno") else ""
    load_now = os.getloadavg()[0]
    where = f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}"
    facts = f"{datetime.date.today()}, commit {commit}{changed}, {where}, load {load_now:.1f}"
    return (
        f"## {benchmark.title}\n\n{benchmark.about}\n\n```\npython {command}\n```\n\n"
        f"{facts}, {elapsed_s / 60:.0f} min.\n\n{table}"
    )


def written(page: str, key: str, text: str) -> str:
    """The page with a benchmark's section replaced, or added at its end."""
    first, last = f"<!-- {key} -->", f"<!-- /{key} -->"
    new = f"{first}\n{text}\n{last}"
    pattern = re.compile(f"{re.escape(first)}.*?{re.escape(last)}", re.DOTALL)
    if pattern.search(page):
        return pattern.sub(lambda _: new, page)
    return f"{page.rstrip()}\n\n{new}\n"


def _said(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def main() -> int:
    """Run what was asked for, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--only", nargs="*", default=[])
    chosen = parser.parse_args()
    benchmarks = load()
    unknown = set(chosen.only) - {one.key for one in benchmarks}
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    failed = []
    for benchmark in benchmarks:
        if chosen.only and benchmark.key not in chosen.only:
            continue
        command = benchmark.command(is_full=chosen.full)
        print(f"{benchmark.key}: python {command}", flush=True)
        begun = time.monotonic()
        done = subprocess.run(
            [sys.executable, *shlex.split(command)], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        table = tables_of(done.stdout)
        if done.returncode not in (0, 1) or not table:
            failed.append(benchmark.key)
            continue
        text = section(benchmark, table, command, time.monotonic() - begun)
        PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), benchmark.key, text))
    for key in failed:
        print(f"{key}: failed; its section stands as it was", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

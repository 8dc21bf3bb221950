"""Does `isograd init` give a case that runs without an edit?  Ten pairs of files, ten styles.

    python benchmarks/verify/init/run.py [--sample]

Each pair of tests/init/pairs is copied, `isograd init` writes its case, and `isograd verify` runs
it as written.  Exit status 0 where at least eight of ten run.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PAIRS = Path(__file__).parents[3] / "tests" / "init" / "pairs"
NEEDED = 0.8
SAMPLE = ("build_function", "dict_output")


def _isograd(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "isograd", *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env=environment, check=False
    )


def measure(pair: Path) -> tuple[bool, str]:
    """Whether the pair's case runs as written, and one row of the table."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(shutil.copytree(pair, Path(place) / pair.name))
        names = sorted(path.name for path in folder.glob("*.py"))
        port = next(n for n in names if n.endswith(("_ms.py", "_mindspore.py")))
        reference = next(n for n in names if n != port)
        begin = time.monotonic()
        made = _isograd(folder, "init", reference, port, "--json", "init.json")
        init_s = time.monotonic() - begin
        found = _isograd(folder, "verify", "case.toml", "--quiet", "--json", "verify.json")
        runs = made.returncode == 0 and found.returncode in (0, 1)
        verdict = "did not run"
        if runs:
            verdict = json.loads((folder / "verify.json").read_text())["verdict"]
        elapsed_s = time.monotonic() - begin - init_s
        return runs, f"| {pair.name} | {runs} | {verdict} | {init_s:.1f} | {elapsed_s:.1f} |"


def main() -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sample", action="store_true", help="two pairs only")
    is_sample = parser.parse_args().sample
    pairs = [p for p in sorted(PAIRS.iterdir()) if not is_sample or p.name in SAMPLE]
    print("| pair | runs as written | verdict | init, s | verify, s |\n|---|---|---|---|---|")
    count = 0
    for pair in pairs:
        runs, row = measure(pair)
        count += runs
        print(row, flush=True)
    print(f"\n{count} of {len(pairs)} run without an edit")
    return 0 if count >= NEEDED * len(pairs) else 1


if __name__ == "__main__":
    sys.exit(main())

"""Convert small networks of Hugging Face's transformers from their graphs, and verify them.

PYTHONPATH=FOLDER python benchmarks/convert/hugging_face/run.py --only 'llama|gpt2'

FOLDER holds transformers with what it imports (see ../README.md).  Prints a line for each network:
the verdict, which is the worst of its seeds, and the codes of what was told.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import tomllib

HERE = Path(__file__).resolve().parent


def measured(name: str, given: list[str], seeds: int) -> str:
    """One network's line."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "isograd", "convert", str(HERE / "networks.py")]
        command += ["--from-export", f"networks:{name}", "-o", f"{folder}/port", "--quiet"]
        command += [part for size in given for part in ("--input", size)]
        command += [part for seed in range(seeds) for part in ("--seed", str(seed))]
        report = Path(folder) / "report.json"
        done = subprocess.run(
            [*command, "--json", str(report)], capture_output=True, text=True, check=False
        )
        if not report.exists():
            return f"{name}: {(done.stderr.strip().splitlines() or ['nothing said'])[-1]}"
        told = json.loads(report.read_text(encoding="utf-8"))
    codes = sorted({finding["code"] for finding in told["findings"]})
    verdicts = [result["outcome"] for result in told["builders"]] or ["not written"]
    return f"{name}: {', '.join(verdicts)}{'; ' if codes else ''}{', '.join(codes)}"


def main() -> int:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="a pattern of names")
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args()
    inputs = tomllib.loads((HERE / "inputs.toml").read_text(encoding="utf-8"))
    for name, given in inputs.items():
        if re.search(options.only, name):
            print(measured(name, given, options.seeds), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

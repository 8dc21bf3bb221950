"""Everything that tells how isograd fares on a GPU or an Ascend, in one file.

    python benchmarks/device.py --device Ascend --out result.json [--quick]

For an owner of such a machine: the knowledge's examples, the constructs of the static graph, the
adapter's conformance, and samples of the benchmarks of verify and of the stage compiled. Every step
is kept as it ends; a step that fails is told, and the next one runs. Please send the file.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
_LAST_CHARACTERS = 20_000


def steps(device: str, folder: Path, quick: bool) -> dict[str, list[str]]:
    """The commands, by what they show."""
    python = sys.executable
    check = [python, "-m", "isograd.knowledge", "check", "--device", device]
    some = ["--only", "torch.nn.*"] if quick else []
    few = ["--only", "list.*"] if quick else []
    return {
        "knowledge": [*check, "--out", str(folder / "knowledge.json"), *some],
        "static_graph": [*check, "--compiled", "--out", str(folder / "static-graph.json"), *few],
        "conformance": [python, "-m", "pytest", "-q", "tests/frameworks/test_mindspore.py"],
        "faults": [python, "benchmarks/faults/run.py", "--faults", "--clean", "--sample", "5"],
        "compiled": [python, "benchmarks/compiled/run.py", "--sample"],
    }


def run(command: list[str], device: str) -> dict[str, Any]:
    """One step: its exit status, its seconds, and the end of what it says."""
    begin = time.monotonic()
    environment = {**os.environ, "ISOGRAD_DEVICE": device}
    found = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    return {
        "command": command,
        "status": found.returncode,
        "seconds": round(time.monotonic() - begin, 1),
        "said": (found.stdout + found.stderr)[-_LAST_CHARACTERS:],
    }


def main() -> None:
    """Run all steps and write the file after each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", required=True, choices=("CPU", "GPU", "Ascend"))
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--quick", action="store_true", help="a few minutes instead of an hour")
    given = parser.parse_args()
    folder = given.out.resolve().parent
    result: dict[str, Any] = {
        "schema": "isograd/device/1",
        "device": given.device,
        "machine": platform.platform(),
        "python": platform.python_version(),
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "versions": {name: _version(name) for name in ("isograd", "torch", "mindspore", "numpy")},
        "steps": {},
    }
    for name, command in steps(given.device, folder, given.quick).items():
        print(f"{name} …", flush=True)
        result["steps"][name] = run(command, given.device)
        for kept in ("knowledge.json", "static-graph.json"):
            if (folder / kept).is_file():
                result[kept] = json.loads((folder / kept).read_text(encoding="utf-8"))
        given.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        print(f"{name}: status {result['steps'][name]['status']}", flush=True)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


if __name__ == "__main__":
    main()

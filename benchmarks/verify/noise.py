"""How far clean ports are from their envelopes: the basis of the thresholds.

python benchmarks/verify/noise.py --seeds 5 --networks cnn transformer
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import faults
import numpy as np

STAGES = ("forward", "backward", "training")
LIMITS = (1.0, 3.0, 5.0)


def ratios_of(case: Path, seed: int) -> dict[str, list[float]]:
    """The worst ratio of every module that was replayed alone, by stage."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "isograd", "verify", str(case), "--quiet"]
        command += ["--seed", str(seed), "--json", str(report)]
        subprocess.run(command, check=False, capture_output=True)
        modules = json.loads(report.read_text())["modules"]
    found: dict[str, list[float]] = {stage: [] for stage in STAGES}
    for module in modules:
        if module["ratio"] is not None:
            found[module["stage"]].append(module["ratio"])
    return found


def main() -> None:
    """Run clean ports on several seeds and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", nargs="+", choices=faults.CASES, default=list(faults.CASES))
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    print("| network | stage | modules × seeds | median | 99 % | greatest | > 1 | > 3 | > 5 |")
    print("|---|---|---|---|---|---|---|---|---|")
    for network in arguments.networks:
        total: dict[str, list[float]] = {stage: [] for stage in STAGES}
        for seed in range(arguments.seeds):
            for stage, ratios in ratios_of(faults.CASES[network], seed).items():
                total[stage] += ratios
        for stage, ratios in total.items():
            if not ratios:
                continue
            values = np.array(ratios)
            shown = [np.median(values), np.quantile(values, 0.99), values.max()]
            above = [int((values > limit).sum()) for limit in LIMITS]
            cells = [network, stage, str(values.size), *(f"{v:.2f}" for v in shown)]
            print("| " + " | ".join([*cells, *map(str, above)]) + " |", flush=True)


if __name__ == "__main__":
    main()

"""Measures `isograd compare` beside np.sum and beside other tools, on the same data in one run.

python benchmarks/compare/run.py --out compare.json
python benchmarks/compare/run.py --gigabytes 0.2 --pairs 20 --sizes 0.05,0.2 --tiny 5000
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from measure import WAYS
from peers import PEERS, measure_peer

from data import link_pairs, make_pairs, make_tiny

HERE = Path(__file__).parent


def main() -> None:
    """Make the data, measure, print tables."""
    chosen = _parse()
    folder = Path(tempfile.mkdtemp(prefix="isograd-compare-", dir=chosen.folder))
    results: dict[str, Any] = {"machine": _machine(), "arguments": vars(chosen) | {"out": None}}
    try:
        total = int(chosen.gigabytes * 1e9)
        make_pairs(folder / "pairs", chosen.pairs, total)
        results["rates"] = _rates(folder / "pairs", total, chosen.rounds)
        results["linear"] = _linear(folder, [float(size) for size in chosen.sizes.split(",")])
        if chosen.tiny:
            results["tiny"] = _tiny(folder, chosen.tiny)
        results["dask"] = _dask(folder / "pairs")
        if not chosen.no_peers:
            results["peers"] = _peers(folder, total)
    finally:
        shutil.rmtree(folder)
    if chosen.out:
        chosen.out.write_text(json.dumps(results, indent=1, default=str) + "\n")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=2.0, help="both sides together")
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sizes", default="0.1,0.5,2,5,20", help="for linearity, in GB")
    parser.add_argument("--tiny", type=int, default=100_000, help="tiny tensors; 0 for none")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--folder", help="where the data go; needs twice --gigabytes")
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


def _machine() -> dict[str, Any]:
    return {"cores": os.cpu_count(), "python": platform.python_version(), "numpy": np.__version__}


def _one(way: str, folder: Path) -> dict[str, Any]:
    command = [sys.executable, str(HERE / "measure.py"), way, str(folder / "a"), str(folder / "b")]
    found = subprocess.run(command, check=True, capture_output=True, text=True)
    result: dict[str, Any] = json.loads(found.stdout)
    return result


def _rates(folder: Path, total: int, rounds: int) -> dict[str, Any]:
    """Every way once per round, so that what else the machine does falls on all alike."""
    _one("np.sum", folder)  # the page cache is warm for the first as for the last
    runs: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
    for _ in range(rounds):
        for way, found in runs.items():
            found.append(_one(way, folder))
    pair = max(file.stat().st_size for file in (folder / "a").iterdir()) * 2
    print(f"\n{total / 1e9:g} GB in {len(list((folder / 'a').iterdir()))} pairs, largest pair "
          f"{pair / 1e6:.1f} MB, {rounds} rounds\n")  # fmt: skip
    print("| way | GB/s, median | best | of np.sum | CPU s | peak RSS MB | beyond the pair MB |")
    print("|---|---|---|---|---|---|---|")
    base = statistics.median(found["seconds"] for found in runs["np.sum"])
    for way, found in runs.items():
        seconds = [one["seconds"] for one in found]
        rss = max(one["rss_bytes"] for one in found)
        median = statistics.median(seconds)
        cpu = statistics.median(one["cpu_s"] for one in found)
        cells = (
            f"{total / median / 1e9:.2f}", f"{total / min(seconds) / 1e9:.2f}",
            f"{base / median:.2f}", f"{cpu:.2f}", f"{rss / 1e6:.0f}", f"{(rss - pair) / 1e6:.0f}",
        )  # fmt: skip
        print(f"| {way} | {' | '.join(cells)} |")
    return runs


def _linear(folder: Path, sizes_gb: list[float]) -> list[dict[str, Any]]:
    print("\nTime over size (files beyond the first are hard links to the same ones)\n")
    print("| GB | s | s per GB | with ulps and histograms | peak RSS MB |")
    print("|---|---|---|---|---|")
    rows = []
    for size_gb in sizes_gb:
        target = folder / f"linked-{size_gb}"
        size = link_pairs(folder / "pairs", target, int(size_gb * 1e9))
        plain, counted = (_one(way, target) for way in list(WAYS)[1:])
        rows.append({"bytes": size, "plain": plain, "counted": counted})
        gigabytes = size / 1e9
        rss = max(plain["rss_bytes"], counted["rss_bytes"]) / 1e6
        print(f"| {gigabytes:.2f} | {plain['seconds']:.2f} | {plain['seconds'] / gigabytes:.3f} "
              f"| {counted['seconds'] / gigabytes:.3f} | {rss:.0f} |")  # fmt: skip
        shutil.rmtree(target)
    return rows


def _tiny(folder: Path, count: int) -> dict[str, Any]:
    make_tiny(folder / "tiny", count)
    found = _one("isograd, ulps and histograms", folder / "tiny")
    print(f"\n{count:,} tiny tensors: {found['seconds']:.1f} s, "
          f"peak RSS {found['rss_bytes'] / 1e6:.0f} MB")  # fmt: skip
    shutil.rmtree(folder / "tiny")
    return found


def _dask(folder: Path) -> dict[str, Any]:
    """Threads and a local cluster of two workers: equal to the bit, or not."""
    from isograd.checkpoints.open import open_source
    from isograd.compare.files.options import CompareOptions
    from isograd.compare.files.run import compare_sources
    from isograd.errors import UsageError

    reports = []
    try:
        for engine in ("threads", "dask"):
            options = CompareOptions(engine=engine, threads=2, is_compiled=True)
            with open_source(folder / "a") as first, open_source(folder / "b") as second:
                reports.append(compare_sources(first, second, options))
    except UsageError as error:
        print(f"\nDask: {error}")
        return {"error": str(error)}
    is_equal = reports[0].comparisons == reports[1].comparisons
    seconds = [report.elapsed_s for report in reports]
    print(f"\nDask, 2 local workers: {'the same bits as' if is_equal else 'NOT EQUAL TO'} threads; "
          f"{seconds[1]:.1f} s with its start, threads {seconds[0]:.1f} s")  # fmt: skip
    return {"equal": is_equal, "seconds": seconds}


def _peers(folder: Path, total: int) -> dict[str, Any]:
    print("\n| tool | version | GB/s | peak RSS MB |\n|---|---|---|---|")
    found = {}
    for name in PEERS:
        result = measure_peer(name, folder)
        found[name] = result
        if "error" in result:
            print(f"| {name} | | could not be measured: {result['error']} | |")
        else:
            print(f"| {name} | {result['version']} | {total / result['seconds'] / 1e9:.2g} "
                  f"| {result['rss_bytes'] / 1e6:.0f} |")  # fmt: skip
    return found


if __name__ == "__main__":
    main()

"""One measurement in a process of its own: seconds, bytes and peak memory as a line of JSON."""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np


def sum_maps(first: Path, second: Path) -> int:
    """np.sum over the memory maps of both folders, on all cores."""
    files = [*first.glob("*.npy"), *second.glob("*.npy")]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda file: np.load(file, mmap_mode="r").sum(), files))
    return len(files) // 2


def compare(first: Path, second: Path, *, is_counting: bool) -> int:
    """isograd, without the command line around it."""
    from isograd.checkpoints.open import open_source
    from isograd.compare.files.options import CompareOptions
    from isograd.compare.files.run import compare_sources

    options = CompareOptions(is_counting=is_counting)
    with open_source(first) as reference, open_source(second) as other:
        report = compare_sources(reference, other, options)
    assert all(found.difference is not None for found in report.comparisons)
    return len(report.comparisons)


def load_kernels() -> None:
    """What a first comparison loads or compiles, so that it is not part of the measurement."""
    from isograd.checkpoints import folders, groups, msprobe, recordings, safetensors_file
    from isograd.compare.files import run
    from isograd.compare.files.kernels import is_compiled_there, kernels

    if is_compiled_there():
        kernels(is_compiled=True).measure("f", "i")
        kernels(is_compiled=True).recount("f")
    assert run
    assert all((folders, groups, msprobe, recordings, safetensors_file))


WAYS: dict[str, Callable[[Path, Path], int]] = {
    "np.sum": sum_maps,
    "isograd": lambda first, second: compare(first, second, is_counting=False),
    "isograd, ulps and histograms": lambda first, second: compare(first, second, is_counting=True),
}


def main() -> None:
    """Measure one way once."""
    way, first, second = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    if way != "np.sum":
        load_kernels()
    before_bytes = _peak_bytes()
    started, started_cpu = time.perf_counter(), time.process_time()
    pairs = WAYS[way](first, second)
    elapsed_s = time.perf_counter() - started
    result = {
        "seconds": elapsed_s,
        "cpu_s": time.process_time() - started_cpu,
        "pairs": pairs,
        "rss_bytes": _peak_bytes(),
        "before_bytes": before_bytes,
    }
    print(json.dumps(result))


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main()

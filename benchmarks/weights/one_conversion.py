"""One conversion or one copy of a file in a process of its own; prints what it took as JSON.

python benchmarks/weights/one_conversion.py copy|convert SOURCE TARGET [--to NAMES] [--shard-size N]
"""

from __future__ import annotations

import argparse
import json
import os
import threading
import time
from pathlib import Path

BLOCK_BYTES = 1 << 24


class MappedPeak:
    """The greatest resident size that smaps reports while a block runs: mapped pages included."""

    def __init__(self) -> None:
        self.peak_bytes = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> MappedPeak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.02):
            text = Path("/proc/self/smaps_rollup").read_text(encoding="ascii")
            rss = next(line for line in text.splitlines() if line.startswith("Rss:"))
            self.peak_bytes = max(self.peak_bytes, int(rss.split()[1]) * 1024)


def copy(source: Path, target: Path) -> None:
    """Copy as `cp` does, then wait for the disk, as a conversion does."""
    with source.open("rb") as read, target.open("wb", buffering=0) as write:
        size, position = os.fstat(read.fileno()).st_size, 0
        while position < size:
            position += os.sendfile(write.fileno(), read.fileno(), position, BLOCK_BYTES)
        os.fsync(write.fileno())


def peak_bytes() -> int:
    """The greatest resident size so far; ru_maxrss would begin at that of the parent process."""
    text = Path("/proc/self/status").read_text(encoding="ascii")
    peak = next(line for line in text.splitlines() if line.startswith("VmHWM:"))
    return int(peak.split()[1]) * 1024


def main() -> None:
    """Run one, and print seconds and bytes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["copy", "convert"])
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--to")
    parser.add_argument("--shard-size", type=int)
    parser.add_argument("--without-watching", action="store_true")
    arguments = parser.parse_args()
    from isograd.checkpoints.open import open_source
    from isograd.weights.convert import ConvertOptions, convert
    from isograd.weights.plan import make_plan

    options = ConvertOptions(shard_bytes=arguments.shard_size)
    before = peak_bytes()
    largest = 0
    watched = MappedPeak()
    started, used = time.perf_counter(), time.process_time()
    if arguments.what == "copy":
        copy(arguments.source, arguments.target)
    else:
        with open_source(arguments.source) as source:
            largest = max(info.size_bytes for info in source)
            plan = make_plan(source, arguments.to)
            if arguments.without_watching:
                convert(source, arguments.target, plan, options)
            else:
                with watched:
                    convert(source, arguments.target, plan, options)
    found = {
        "seconds": time.perf_counter() - started,
        "processor_s": time.process_time() - used,
        "peak_bytes": peak_bytes() - before,
        "mapped_peak_bytes": max(0, watched.peak_bytes - before),
        "largest_bytes": largest,
    }
    print("RESULT", json.dumps(found))


if __name__ == "__main__":
    main()

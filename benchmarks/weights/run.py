"""Time and memory of `isograd weights` beside copying the same file, in one run.

python benchmarks/weights/run.py [--gigabytes 1] [--sharded-gigabytes 8] [--rounds 3] [--folder DIR]

Both sides end in fsync, and both begin with the source in the page cache.  Every conversion checks
the source's checksums and reads the target back.  Each measurement is a process of its own.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from isograd.checkpoints.base import RawTensor
from isograd.checkpoints.open import open_source
from isograd.weights.blocks import are_same_bytes, bytes_of
from isograd.weights.writers import FORMATS, Entry, WriteOptions

HERE = Path(__file__).resolve().parent
#: Bytes that a conversion may hold beyond the largest tensor.
ALLOWED_BYTES = 300e6
FORMAT_NAMES = (".pth", ".ckpt", ".safetensors", ".npz")


def entries_of(gigabytes: float, tensor_bytes: int = 20 << 20) -> list[Entry]:
    """Kernels of one size, each with the four vectors of a norm, until so many bytes."""
    found: list[Entry] = []
    columns = tensor_bytes // 4 // 1280
    while sum(entry.size_bytes for entry in found) < gigabytes * 1e9:
        layer = f"layers.{len(found) // 5}"
        found.append(
            Entry(f"{layer}.conv.weight", "float32", (1280, columns, 1, 1), 5120 * columns)
        )
        found += [
            Entry(f"{layer}.bn.{name}", "float32", (1280,), 5120)
            for name in ("weight", "bias", "running_mean", "running_var")
        ]
    return found


def write_source(path: Path, entries: list[Entry]) -> None:
    """Write a checkpoint of random numbers, in the page cache and on the disk."""
    generator = np.random.default_rng(0)
    block = generator.standard_normal(max(e.size_bytes for e in entries) // 4).astype(np.float32)

    def tensors() -> Iterator[tuple[Entry, Iterator[memoryview]]]:
        for number, entry in enumerate(entries):
            block[:8] = number
            yield entry, iter([bytes_of(block[: entry.size_bytes // 4])])

    with path.open("wb") as file:
        FORMATS[path.suffix][0](file, entries, tensors(), WriteOptions())
        file.flush()
        os.fsync(file.fileno())


def measured(*arguments: object) -> dict[str, Any]:
    """What one process took."""
    done = subprocess.run(
        [sys.executable, str(HERE / "one_conversion.py"), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if not lines:
        raise SystemExit(f"{arguments} failed:\n{done.stdout}\n{done.stderr[-4000:]}")
    result: dict[str, Any] = json.loads(lines[-1].removeprefix("RESULT "))
    return result


def removed(path: Path) -> Path:
    """The path, with nothing there."""
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    return path


def make_resident(gigabytes: float) -> None:
    """Touch free memory: a virtual machine's host takes it back, and gives it slowly.

    Without this the same copy took from 0.25 to 2.8 s.
    """
    with mmap.mmap(-1, int(gigabytes * 1e9)) as free:
        for place in range(0, len(free), mmap.PAGESIZE):
            free[place] = 1


def rates(folder: Path, gigabytes: float, rounds: int) -> list[str]:
    """Both directions and a copy in turn; ratios are of medians."""
    source, port, back = (folder / name for name in ("a.pth", "a.ckpt", "b.pth"))
    write_source(source, entries_of(gigabytes))
    runs: dict[str, list[dict[str, Any]]] = {}
    conversion = ("--without-watching", "--to")
    for _ in range(rounds):
        for name, what, given, target, options in (
            ("copy of the .pth", "copy", source, folder / "copy", ()),
            (".pth → .ckpt", "convert", source, port, (*conversion, "mindspore")),
            ("copy of the .ckpt", "copy", port, folder / "copy", ()),
            (".ckpt → .pth", "convert", port, back, (*conversion, "torch")),
        ):
            removed(target)
            make_resident(3 * gigabytes)
            runs.setdefault(name, []).append(measured(what, given, target, *options))
    rows, copied = [], 1.0
    for name, found in runs.items():
        seconds = statistics.median(run["seconds"] for run in found)
        processor = statistics.median(run["processor_s"] for run in found)
        peak = max(run["peak_bytes"] for run in found) / 1e6
        copied = seconds if name.startswith("copy") else copied
        rows.append(
            f"| {name} | {seconds:.2f} | {processor:.2f} | {seconds / copied:.2f} | {peak:.0f} |"
        )
    same = same_tensors(source, back)
    rows.append(f"\nThere and back: {'every bit is the same' if same else 'DIFFERENT'}.")
    return rows


def same_tensors(first: Path, second: Path) -> bool:
    """Whether two checkpoints hold the same names and bits."""
    with open_source(first) as here, open_source(second) as there:
        return set(here.names()) == set(there.names()) and all(
            _same(here.raw(name), there.raw(name)) for name in here.names()
        )


def _same(first: RawTensor, second: RawTensor) -> bool:
    is_like = (first.dtype, first.bits.shape) == (second.dtype, second.bits.shape)
    return is_like and are_same_bytes(bytes_of(first.bits), bytes_of(second.bits))


def memory_row(name: str, run: dict[str, Any]) -> str:
    """One row of the table of memory."""
    beyond = max(run["peak_bytes"], run["mapped_peak_bytes"]) - run["largest_bytes"]
    verdict = "yes" if beyond <= ALLOWED_BYTES else "NO"
    return (
        f"| {name} | {run['largest_bytes'] / 1e6:.0f} | {run['peak_bytes'] / 1e6:.0f} "
        f"| {run['mapped_peak_bytes'] / 1e6:.0f} | {verdict} |"
    )


def memory(folder: Path, gigabytes: float) -> Iterator[str]:
    """Peaks of conversions with one tensor that is half of the file, and of a sharded one."""
    source = folder / "large.pth"
    write_source(source, entries_of(gigabytes, int(gigabytes * 5e8)))
    for suffix in (".ckpt", ".safetensors", ".npz"):
        target = removed(folder / f"large{suffix}")
        run = measured("convert", source, target, "--to", "mindspore")
        yield memory_row(f".pth → {suffix}, large tensors", run)
        removed(target)
    removed(source)


def sharded(folder: Path, gigabytes: float) -> Iterator[str]:
    """A folder of shards of about 2 GB each, made and converted."""
    from isograd.weights.shards import INDEX, index_text, shard_name, shards_of

    source = folder / "sharded"
    source.mkdir()
    shards = shards_of(entries_of(gigabytes), int(2e9))
    for number, shard in enumerate(shards):
        write_source(source / shard_name(number, len(shards)), shard)
    (source / INDEX).write_text(index_text(shards), encoding="utf-8")
    target = folder / "converted"
    run = measured("convert", source, target, "--to", "mindspore", "--shard-size", int(2e9))
    yield memory_row(
        f"{gigabytes:g} GB in {len(shards)} shards → shards, {run['seconds']:.1f} s", run
    )


def round_trips(folder: Path) -> str:
    """All pairs of formats, there and back, of a small checkpoint."""
    entries = entries_of(0.02, 1 << 20)
    total = 0
    for first in FORMAT_NAMES:
        source = folder / f"pair{first}"
        write_source(source, entries)
        for second in FORMAT_NAMES:
            there, back = folder / f"there{second}", folder / f"back{first}"
            measured("convert", source, removed(there), "--to", "mindspore")
            measured("convert", there, removed(back), "--to", "torch")
            if not same_tensors(source, back):
                return f"{first} → {second} → {first} DIFFERS"
            total += 1
    return f"all {total} pairs of formats keep every bit there and back"


def main() -> None:
    """Measure, and print tables in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--sharded-gigabytes", type=float, default=8.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    free = shutil.disk_usage(arguments.folder or tempfile.gettempdir()).free / 1e9
    needed = max(5 * arguments.gigabytes, 2.2 * arguments.sharded_gigabytes)
    if free < needed:
        raise SystemExit(f"{needed:.0f} GB are needed and {free:.0f} GB are free; use --folder")
    print(
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, "
        f"load {os.getloadavg()[0]:.1f}, Python {platform.python_version()}, numpy {np.__version__}"
    )
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        print(f"\n| {arguments.gigabytes:g} GB, float32 | s | processor s | ratio | peak MB |")
        print("|---|---|---|---|---|")
        print("\n".join(rates(folder, arguments.gigabytes, arguments.rounds)), flush=True)
        for path in folder.iterdir():
            removed(path)
        print("\n| conversion | largest tensor MB | peak MB | peak with maps MB | within 300 MB |")
        print("|---|---|---|---|---|")
        for row in memory(folder, arguments.gigabytes):
            print(row, flush=True)
        for row in sharded(folder, arguments.sharded_gigabytes):
            print(row, flush=True)
        print(f"\n{round_trips(folder)}")


if __name__ == "__main__":
    main()

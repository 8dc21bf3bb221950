"""How fast records are read, beside MindSpore, and how much memory an inventory needs.

python benchmarks/data/rates.py [--sample]: a TFRecord of 1 GB (64 MB) with checksums, a MindRecord
of 400 MB (40 MB) against MindSpore's FileReader, interleaved; an inventory of 1,000,000 (20,000)
small images with duplicates.  Times are the least of three; memory is the peak beyond the start.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import google_crc32c
import numpy as np

from isograd.data.sources.example_proto import encode_example
from isograd.data.sources.open import open_samples
from isograd.data.sources.tfrecord import masked

MB = 1e6


def timed(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def drain(path: Path) -> int:
    return sum(1 for _ in open_samples(str(path)).samples())


def write_tfrecord(path: Path, size: float) -> float:
    rng = np.random.default_rng(0)
    with path.open("wb") as file:
        while file.tell() < size:
            record = encode_example({"image": [rng.bytes(100_000)], "label": np.asarray([3])})
            head = struct.pack("<Q", len(record))
            file.write(head + struct.pack("<I", masked(google_crc32c.value(head))))
            file.write(record + struct.pack("<I", masked(google_crc32c.value(record))))
    return path.stat().st_size


def tfrecord(folder: Path, size: float) -> dict[str, float]:
    import mindspore.dataset as ds

    path = folder / "x.tfrecord"
    total = write_tfrecord(path, size)

    def theirs() -> int:
        dataset = ds.TFRecordDataset([str(path)], shuffle=False, num_parallel_workers=1)
        return sum(1 for _ in dataset.create_dict_iterator(1, output_numpy=True))

    ours_s, theirs_s = [], []
    for _ in range(3):
        ours_s.append(timed(lambda: drain(path)))
        theirs_s.append(timed(theirs))
    path.unlink()
    return {
        "MB": total / MB,
        "isograd, checked, MB/s": total / MB / min(ours_s),
        "MindSpore, unchecked, MB/s": total / MB / min(theirs_s),
    }


def mindrecord(folder: Path, size: float) -> dict[str, float]:
    from mindspore.mindrecord import FileReader, FileWriter

    path = folder / "x.mindrecord"
    rng = np.random.default_rng(0)
    writer = FileWriter(str(path))
    schema = {
        "label": {"type": "int32"},
        "data": {"type": "bytes"},
        "v": {"type": "float32", "shape": [-1]},
    }
    writer.add_schema(schema, "x")
    count = int(size / 20_000)
    for start in range(0, count, 500):
        rows = range(start, min(count, start + 500))
        writer.write_raw_data(
            [{"label": n, "data": rng.bytes(19_000), "v": np.ones(250, np.float32)} for n in rows]
        )
    writer.commit()

    def theirs() -> int:
        reader = FileReader(str(path))
        found = sum(1 for _ in reader.get_next())
        reader.close()
        return found

    ours_s, theirs_s = [], []
    for _ in range(3):
        ours_s.append(timed(lambda: drain(path)))
        theirs_s.append(timed(theirs))
    return {
        "rows": count,
        "isograd, MB/s": size / MB / min(ours_s),
        "FileReader, MB/s": size / MB / min(theirs_s),
        "ratio": min(theirs_s) / min(ours_s),
    }


_INVENTORY = """
import sys, time
from isograd.data.sources.open import open_samples
from isograd.data.inventory.run import inventory
source = open_samples(sys.argv[1])
next(iter(source.samples()))
def peak():
    return int(open("/proc/self/status").read().partition("VmHWM:")[2].split()[0])
before = peak()
started = time.perf_counter()
found = inventory(source)
print(found.samples, time.perf_counter() - started,
      (peak() - before) / 1e3,
      sum(f.code == "data.duplicate" for f in found.findings))
"""


def images(folder: Path, count: int) -> dict[str, float]:
    """CIFAR's layout, whose pixels need no decoder: the memory is that of the inventory alone."""
    rng = np.random.default_rng(0)
    place = folder / "cifar"
    place.mkdir()
    with (place / "data_batch_1.bin").open("wb") as file:
        for start in range(0, count, 1000):
            size = min(1000, count - start)
            rows = rng.integers(0, 256, (size, 3073)).astype(np.uint8)
            rows[:, 0] %= 10
            rows[size // 2] = rows[0]
            file.write(rows.tobytes())
    done = subprocess.run(
        [sys.executable, "-c", _INVENTORY, str(place)], capture_output=True, text=True, check=True
    )
    samples, elapsed, memory, found = done.stdout.split()
    return {
        "images": int(samples),
        "images/s": int(samples) / float(elapsed),
        "MB beyond start": float(memory),
        "duplicates found": int(found),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sample", action="store_true")
    is_sample = parser.parse_args().sample
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        result = {
            "inventory": images(folder, 20_000 if is_sample else 1_000_000),
            "MindRecord": mindrecord(folder, (40 if is_sample else 400) * MB),
            "TFRecord": tfrecord(folder, (64 if is_sample else 1000) * MB),
            "peak MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
        }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()

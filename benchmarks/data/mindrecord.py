"""MindRecord files that MindSpore wrote, each value read by isograd and compared.

python benchmarks/data/mindrecord.py [--sample] [--out FILE]: 20 files (5) of every field type, 1 to
8 shards, empty fields, and records of 1 byte to 100 MB (1 MB).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from isograd.data.sources.base import Sample
from isograd.data.sources.open import open_samples

Row = dict[str, Any]
SCALARS = {"int32": np.int32, "int64": np.int64, "float32": np.float32, "float64": np.float64}
EXTREMES = {
    "int32": (0, -1, 127, -128, 128, 32768, -32769, 2**31 - 1, -(2**31)),
    "int64": (0, -1, 255, 65536, 2**31, -(2**31) - 1, 2**63 - 1, -(2**63)),
    "float32": (0.0, -0.0, 1e-45, 3.4e38, -1.5, float("inf"), float("-inf"), float("nan")),
    "float64": (0.0, -0.0, 5e-324, 1.7e308, 0.1, float("inf"), float("-inf"), float("nan")),
}


@dataclass(frozen=True)
class Case:
    """name, schema, number of shards and of rows; row: makes a row of its number."""

    name: str
    schema: dict[str, dict[str, Any]]
    shards: int
    rows: int
    largest_bytes: int = 0

    def make(self, number: int) -> Row:
        """One row; the same for the same number."""
        rng = np.random.default_rng(number)
        return {name: self._value(field, number, rng) for name, field in self.schema.items()}

    def _value(self, field: dict[str, Any], number: int, rng: np.random.Generator) -> Any:
        kind = field["type"]
        if kind in ("bytes", "string"):
            return self._text(kind, number, rng)
        extremes = EXTREMES[kind]
        if "shape" not in field:
            # MindSpore's writer aborts on scalars that are no finite normal numbers.
            extremes = tuple(n for n in extremes if n == 0 or 1e-30 < abs(n) < 1e300)
            return SCALARS[kind](extremes[number % len(extremes)])
        shape = [1 + number % 7 if extent == -1 else extent for extent in field["shape"]]
        count = int(np.prod(shape))
        chosen = [extremes[(number + at) % len(extremes)] for at in range(count)]
        return np.asarray(chosen, dtype=SCALARS[kind]).reshape(shape)

    def _text(self, kind: str, number: int, rng: np.random.Generator) -> Any:
        if kind == "string":
            return ("", "a", "é – 日本 \U0001f600", "x" * 1000)[number % 4]
        if self.largest_bytes:
            length = max(1, self.largest_bytes >> (4 * number))
        else:
            # MindSpore refuses empty bytes where they are the only such field.
            alone = sum(one["type"] == "bytes" for one in self.schema.values()) == 1
            length = (1 if alone else 0, 1, 7, 300)[number % 4]
        return rng.bytes(length)


def _scalars() -> dict[str, dict[str, Any]]:
    return {f"s_{kind}": {"type": kind} for kind in SCALARS}


def _arrays(shape: list[int]) -> dict[str, dict[str, Any]]:
    return {f"a_{kind}": {"type": kind, "shape": shape} for kind in SCALARS}


_BYTES, _STRING = {"type": "bytes"}, {"type": "string"}


def cases(largest_bytes: int) -> tuple[Case, ...]:
    """The 20 files."""
    single = [Case(f"{kind} alone", {"x": {"type": kind}}, 1, 40) for kind in SCALARS]
    arrays = [
        Case(f"{kind} arrays", {"x": {"type": kind, "shape": [-1]}}, 1, 60) for kind in SCALARS
    ]
    everything = {**_scalars(), **_arrays([-1]), "b": _BYTES, "c": _BYTES, "t": _STRING}
    return (
        *single,
        *arrays,
        Case("strings", {"t": _STRING}, 1, 50),
        Case("bytes alone", {"b": _BYTES}, 1, 50),
        Case("two of bytes, some empty", {"b": _BYTES, "c": _BYTES}, 1, 50),
        Case("fixed shape", _arrays([2, 3]), 1, 30),
        Case("all scalars, 2 shards", _scalars(), 2, 101),
        Case("everything, 1 shard", everything, 1, 200),
        Case("everything, 3 shards", everything, 3, 200),
        Case("everything, 4 shards", everything, 4, 199),
        Case("everything, 8 shards", everything, 8, 203),
        Case("array and bytes", {"x": {"type": "int64", "shape": [-1]}, "b": _BYTES}, 2, 77),
        Case("1 byte to the largest", {"b": _BYTES, "n": {"type": "int32"}}, 1, 7, largest_bytes),
        Case("the largest among two", {"b": _BYTES, "c": _BYTES}, 2, 4, largest_bytes // 2),
    )


def write(case: Case, folder: Path) -> Path:
    """The file or the shards of a case, by MindSpore."""
    from mindspore.mindrecord import FileWriter

    path = folder / "x.mindrecord"
    writer = FileWriter(str(path), shard_num=case.shards, overwrite=True)
    if case.largest_bytes > 30_000_000:
        writer.set_page_size(1 << 28)  # a record must fit into a page
    writer.add_schema(case.schema, "x")
    for start in range(0, case.rows, 50):
        rows = range(start, min(start + 50, case.rows))
        writer.write_raw_data([case.make(number) for number in rows])
    writer.commit()
    return path if case.shards == 1 else folder


def key(row: Row) -> tuple[tuple[str, str, bytes], ...]:
    """A row as bytes that are equal for equal values, whatever scalar type holds them."""
    found = []
    for name, value in sorted(row.items()):
        if isinstance(value, str):
            found.append((name, "text", value.encode()))
        elif isinstance(value, (bytes, bytearray, memoryview)):
            found.append((name, "bytes", bytes(value)))
        else:
            array = np.asarray(value)
            found.append((name, f"{array.dtype}{array.shape}", array.tobytes()))
    return tuple(found)


def judged(case: Case) -> dict[str, Any]:
    """How many of the written rows isograd reads with every value equal."""
    folder = Path(tempfile.mkdtemp(prefix="mindrecord-"))
    try:
        path = write(case, folder)
        wanted: dict[Any, int] = {}
        for number in range(case.rows):
            one = key(case.make(number))
            wanted[one] = wanted.get(one, 0) + 1
        read = equal = 0
        example = ""
        for sample in open_samples(str(path)).samples():
            read += 1
            assert isinstance(sample, Sample), sample
            found = key(dict(sample.fields))
            if wanted.get(found, 0):
                wanted[found] -= 1
                equal += 1
            elif not example:
                example = str([part[:2] for part in found])[:300]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return {
        "case": case.name,
        "shards": case.shards,
        "rows": case.rows,
        "read": read,
        "equal": equal,
        "example": example,
    }


def main() -> None:
    """Write, read, compare, and print one line per file and a summary."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sample", action="store_true", help="every fourth file, 1 MB at most")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    rows = []
    for case in cases(1_000_000 if given.sample else 100_000_000)[:: 4 if given.sample else 1]:
        rows.append(judged(case))
        print(json.dumps(rows[-1], ensure_ascii=False), flush=True)
    call = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(call, cwd=Path(__file__).parent, capture_output=True, text=True)
    summary = {
        "files": len(rows),
        "equal files": sum(row["rows"] == row["read"] == row["equal"] for row in rows),
        "rows": sum(row["rows"] for row in rows),
        "commit": commit.stdout.strip(),
        "cores": os.cpu_count(),
        "date": time.strftime("%Y-%m-%d"),
    }
    print(json.dumps(summary))
    if given.out is not None:
        given.out.write_text("".join(json.dumps(row) + "\n" for row in [*rows, summary]))


if __name__ == "__main__":
    main()

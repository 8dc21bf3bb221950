"""Run statements that change tensors in place in torch and in their ports, and compare.

python benchmarks/convert/in_place/run.py [FILE]

Each line of statements.txt is the body of a function of a tensor x of shape (3, 4), as in
tests/convert/test_in_place.py, whose machinery this borrows.  Compared are x afterwards, which the
caller holds, and what the function returns.  Told is a line with a finding to finish.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT), str(HERE.parent)]

import tables  # noqa: E402
from tests.convert import test_in_place as table  # noqa: E402


def main() -> int:
    """Print what differs and the counts; 0 if nothing is silently wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?", type=Path, default=HERE / "statements.txt")
    statements = parser.parse_args().file.read_text(encoding="utf-8").strip().splitlines()
    with tempfile.TemporaryDirectory() as folder:
        expected, found, told = table.both(Path(folder), statements)
    counts = dict.fromkeys(("same", "told", "silently wrong", "raises unmarked"), 0)
    for statement, one, other, is_told in zip(statements, expected, found, told, strict=True):
        if isinstance(one, str):
            print(f"torch refuses {statement}: {one[:90]}")
            continue
        kind = "same" if _same(one, other) else "silently wrong"
        if isinstance(other, str):
            kind = "raises unmarked"
        if is_told:
            kind = "told"
        counts[kind] += 1
        if kind not in ("same", "told"):
            print(f"{kind}: {statement}\n    torch {str(one)[:150]}\n    port  {str(other)[:150]}")
    print(", ".join(f"{count} {kind}" for kind, count in counts.items()), tables.machine())
    return int(counts["silently wrong"] > 0)


def _same(expected: list[object], found: object) -> bool:
    if not isinstance(found, list):
        return False
    pairs = zip(expected, found, strict=True)
    return all(np.shape(a) == np.shape(b) and np.allclose(a, b, 1e-5, 1e-6) for a, b in pairs)


if __name__ == "__main__":
    sys.exit(main())

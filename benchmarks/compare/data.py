"""Pairs of folders to compare: tensors with noise between them, many tiny ones, and hard links."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

#: Of the difference between the two sides, against the elements.
NOISE = 1e-6


def make_pairs(folder: Path, count: int, total_bytes: int) -> None:
    """Two folders `a` and `b` with equally large float32 tensors that differ by noise."""
    elements = total_bytes // (2 * count * 4)
    draw = np.random.default_rng(0)
    for side in ("a", "b"):
        (folder / side).mkdir(parents=True)
    for number in range(count):
        values = draw.standard_normal(elements, dtype="f4")
        noise = np.float32(NOISE) * draw.standard_normal(elements, dtype="f4")
        np.save(folder / "a" / f"t{number:05}.npy", values)
        np.save(folder / "b" / f"t{number:05}.npy", values + noise)


def make_tiny(folder: Path, count: int) -> None:
    """Two folders with tiny tensors, half of which differ by noise."""
    draw = np.random.default_rng(1)
    for side in ("a", "b"):
        (folder / side).mkdir(parents=True)
    for number in range(count):
        values = draw.standard_normal((8, 8 + number % 5), dtype="f4")
        np.save(folder / "a" / f"t{number:06}.npy", values)
        if number % 2:
            values = values * np.float32(1 + NOISE)
        np.save(folder / "b" / f"t{number:06}.npy", values)


def link_pairs(source: Path, target: Path, total_bytes: int) -> int:
    """Two folders of hard links to the files of `source` until they are this large; their bytes.

    The files' pages are the same, so that what does not fit the page cache still comes from it.
    """
    files = sorted((source / "a").iterdir())
    for side in ("a", "b"):
        (target / side).mkdir(parents=True)
    size, number = 0, 0
    while size < total_bytes:
        name = files[number % len(files)].name
        for side in ("a", "b"):
            file = source / side / name
            os.link(file, target / side / f"t{number:06}.npy")
            size += file.stat().st_size
        number += 1
    return size

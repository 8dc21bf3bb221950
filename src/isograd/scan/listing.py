"""The lines of a scanned file, as its uses count them."""

from __future__ import annotations

from pathlib import Path

from isograd.scan import sources
from isograd.scan.model import Problem


def read_lines(root: Path, file: str) -> dict[int, list[str]]:
    """Lines by notebook cell (0 for a plain file); empty where the file has gone."""
    path = root / file if root.is_dir() else root
    problems: list[Problem] = []
    raw = sources.read_bytes(path, file, problems)
    if raw is None:
        return {}
    if path.suffix != ".ipynb":
        return {0: sources.decode(raw, file, problems).split("\n")}
    source = sources.notebook(raw, file, problems)
    if source is None:
        return {}
    cells: dict[int, list[str]] = {}
    for (cell, _), line in zip(source.cells, source.text.split("\n"), strict=False):
        cells.setdefault(cell, []).append(line)
    return cells

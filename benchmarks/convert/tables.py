"""The rows of the benchmark as tables for people."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

_HERE = Path(__file__).resolve().parent


def of_texts(converted: list[Any]) -> str:
    """What was converted, as text."""
    lines = [
        "| corpus | files | do not parse | comments | lost | findings to finish |",
        "|---|---|---|---|---|---|",
    ]
    for one in converted:
        left = sum(map(len, one.by_file.values()))
        lines.append(
            f"| {one.corpus} | {one.files} | {len(one.unparsed)} | {one.comments:,} | "
            f"{len(one.lost)} | {left:,} |"
        )
        if one.problem:
            lines.append(f"\n{one.corpus}: exit status {one.status}: {one.problem}")
    return "\n".join(lines) + "\n" if converted else ""


def of_rows(rows: list[Any]) -> str:
    """Shares by corpus and way, and every builder that is not right."""
    lines = [
        "| corpus, way | builders | no finding in its files | import | weights by name | "
        "equivalent | right with no hand edit | silently wrong |",
        "|---|---|---|---|---|---|---|---|",
    ]
    groups: dict[tuple[str, str], list[Any]] = {}
    for row in rows:
        groups.setdefault((row.corpus, row.way), []).append(row)
    for (corpus, way), group in groups.items():
        counted = [row for row in group if row.outcome != "not exported"]
        cells = [
            len(counted),
            sum(not row.left for row in counted),
            sum(row.imported for row in counted),
            sum(row.paired and row.by_name for row in counted),
            sum(row.outcome == "equivalent" for row in counted),
            f"{sum(row.right for row in counted)} ({_share(counted)})",
            sum(row.silent for row in counted),
        ]
        lines.append(f"| {corpus}, {way} | " + " | ".join(map(str, cells)) + " |")
    wrong = [row for row in rows if not row.right]
    if wrong:
        lines += ["", "Not right:", ""]
        kinds = Counter(row.outcome for row in wrong)
        lines.append(", ".join(f"{count} {kind}" for kind, count in kinds.most_common()) + ".")
        lines += [
            f"- {row.way} {row.builder}: {row.outcome}. {row.problem or '; '.join(row.left[:2])}"
            for row in wrong
        ]
    return "\n".join(lines) + "\n"


def _share(rows: list[Any]) -> str:
    return f"{100 * sum(row.right for row in rows) / len(rows):.0f} %" if rows else "none"


def of_speed(speed: dict[str, float]) -> str:
    """Lines a second and memory."""
    return (
        f"{speed['files']:,.0f} files, {speed['lines']:,.0f} lines: {speed['lines_per_s']:,.0f} "
        f"lines/s of process time on one core, {speed['wall_s']:.1f} s, {speed['peak_mb']:.0f} MB "
        "at most"
    )


def machine() -> dict[str, Any]:
    """What a reader needs to judge the figures."""
    versions = {name: _version(name) for name in ("isograd", "torch", "mindspore", "numpy")}
    command = ["git", "-C", str(_HERE), "rev-parse", "HEAD"]
    commit = subprocess.run(command, capture_output=True, text=True, check=False)
    return {
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": versions,
        "commit": commit.stdout.strip(),
    }


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None

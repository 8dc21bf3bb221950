"""What earlier runs found, in a file of the repository: all builders take longer than one session.

A line for each builder and way as it was finished, with its commit: an answer holds for that
commit, and a later line for the same builder stands before it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LOG = Path(__file__).resolve().parent / "measured.jsonl"


@dataclass(frozen=True)
class Measured:
    """One finished builder."""

    corpus: str
    builder: str
    way: str
    outcome: str
    right: bool
    silent: bool
    seeds: int
    seconds: float
    commit: str
    versions: str


def append(path: Path, row: Any, machine: dict[str, Any]) -> None:
    """Write a finished row of the benchmark behind the others."""
    versions = machine["versions"]
    kept = Measured(
        row.corpus,
        row.builder,
        row.way,
        row.outcome,
        row.right,
        row.silent,
        row.seeds,
        row.seconds,
        machine["commit"][:7],
        f"torch {versions['torch']}, mindspore {versions['mindspore']}",
    )
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(vars(kept)) + "\n")


def load(path: Path) -> dict[tuple[str, str, str], Measured]:
    """The last line of each builder and way, by corpus, builder and way."""
    if not path.is_file():
        return {}
    lines = path.read_text(encoding="utf-8").splitlines()
    found = [Measured(**json.loads(line)) for line in lines if line.strip()]
    return {(one.corpus, one.builder, one.way): one for one in found}


def table(path: Path, corpora: Iterable[Any], ways: Iterable[str], seeds: int) -> str:
    """For each corpus and way: builders, measured ones, on all seeds, right ones, and commits."""
    log = load(path)
    lines = [
        f"| corpus, way | builders | measured | on {seeds} seeds | right on them | "
        "silently wrong | commits |",
        "|---|---|---|---|---|---|---|",
    ]
    for corpus in corpora:
        for way in ways:
            keys = [(corpus.name, subject.builder, way) for subject in corpus.subjects]
            found = [log[key] for key in keys if key in log]
            full = [one for one in found if one.seeds >= seeds]
            commits = ", ".join(dict.fromkeys(one.commit for one in found))
            cells = [len(keys), len(found), len(full), sum(one.right for one in full)]
            cells += [sum(one.silent for one in found)]
            shown = " | ".join(map(str, cells))
            lines.append(f"| {corpus.name}, {way} | {shown} | {commits} |")
    return "\n".join(lines) + "\n"

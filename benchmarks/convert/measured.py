"""What earlier runs found, in a file of the repository: all builders take longer than one session.

A line for each builder and way as it was finished, with its commit: an answer holds for that
commit, and a later line for the same builder stands before it.  A line that begins at a later
seed goes on where an earlier line has stopped, and is as good as the worse of the two.  Who asks
for several seeds is told the last line that has as many, unless a later one is not right.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

LOG = Path(__file__).resolve().parent / "measured.jsonl"


@dataclass(frozen=True)
class Measured:
    """One finished builder: seeds first_seed to seeds - 1."""

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
    first_seed: int = 0

    def after(self, earlier: Measured | None) -> Measured | None:
        """Both as one; None where seeds between them were not measured."""
        if self.first_seed == 0:
            return self
        if earlier is None or earlier.seeds < self.first_seed:
            return earlier
        return replace(
            self,
            outcome=self.outcome if earlier.right else earlier.outcome,
            right=self.right and earlier.right,
            silent=self.silent or earlier.silent,
            seconds=self.seconds + earlier.seconds,
            first_seed=0,
        )


def append(path: Path, row: Any, first_seed: int, machine: dict[str, Any]) -> None:
    """Write a finished row of the benchmark behind the others."""
    versions = machine["versions"]
    kept = Measured(
        row.corpus,
        row.builder,
        row.way,
        row.outcome,
        row.right,
        row.silent,
        first_seed + row.seeds,
        row.seconds,
        machine["commit"][:7],
        f"torch {versions['torch']}, mindspore {versions['mindspore']}",
        first_seed,
    )
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(vars(kept)) + "\n")


def load(path: Path, seeds: int = 1) -> dict[tuple[str, str, str], Measured]:
    """What the lines of each builder and way come to on as many seeds, by corpus, builder, way."""
    if not path.is_file():
        return {}
    found: dict[tuple[str, str, str], Measured] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip():
            one = Measured(**json.loads(line))
            key = (one.corpus, one.builder, one.way)
            before = found.get(key)
            known = one.after(before)
            if known is None:
                continue
            is_on_fewer = before is not None and known.seeds < seeds <= before.seeds
            if not (is_on_fewer and known.right):
                found[key] = known
    return found


def table(path: Path, corpora: Iterable[Any], ways: Iterable[str], seeds: int) -> str:
    """For each corpus and way: builders, measured ones, on all seeds, right ones, and commits."""
    log = load(path, seeds)
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

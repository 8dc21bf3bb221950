"""How much of two lists of APIs the knowledge covers, and what it holds."""

from __future__ import annotations

import csv
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from isograd.knowledge.entry import Entry
from isograd.knowledge.store import Knowledge

_PREFIXES = {"Tensor.": "torch.Tensor.", "F.": "torch.nn.functional.", "nn.": "torch.nn."}


@dataclass(frozen=True)
class Figures:
    """What the entries hold."""

    entries: int
    names: int
    executed: int
    forward: int
    gradient: int
    disagreeing: tuple[str, ...]
    by_status: dict[str, int]


@dataclass(frozen=True)
class Share:
    """How many names of a list have an entry, how many an executed one that agrees."""

    names: int
    known: int
    agreeing: int
    unknown: tuple[str, ...]


def figures(knowledge: Knowledge) -> Figures:
    """Count the entries and their verdicts."""
    verdicts = [entry.verified for entry in knowledge.entries if entry.verified is not None]
    return Figures(
        entries=len(knowledge.entries),
        names=len({n for entry in knowledge.entries for n in (entry.api, *entry.aliases)}),
        executed=len(verdicts),
        forward=sum(verdict.forward is True for verdict in verdicts),
        gradient=sum(verdict.gradient is True for verdict in verdicts),
        disagreeing=tuple(
            entry.api for entry in knowledge.entries if entry.verified and not agrees(entry)
        ),
        by_status=dict(Counter(entry.status.value for entry in knowledge.entries)),
    )


def agrees(entry: Entry) -> bool:
    """Whether an entry was executed and nothing disagreed."""
    verdict = entry.verified
    return verdict is not None and verdict.forward is True and verdict.gradient is not False


def share(knowledge: Knowledge, names: list[str]) -> Share:
    """How far the knowledge covers a list of names."""
    found = {name: knowledge.find(name) for name in dict.fromkeys(names)}
    return Share(
        names=len(found),
        known=sum(entry is not None for entry in found.values()),
        agreeing=sum(entry is not None and agrees(entry) for entry in found.values()),
        unknown=tuple(name for name, entry in found.items() if entry is None),
    )


def execution_names(path: Path, most_used: bool) -> list[str]:
    """The APIs of api-execution.json: all, or those with a rank of use."""
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    names = []
    for row in rows:
        name = row["api"].partition("(")[0]
        if name.startswith("op:") or (most_used and row["rank"] is None):
            continue
        prefix = next((p for p in _PREFIXES if name.startswith(p)), "")
        names.append(_PREFIXES.get(prefix, "") + name[len(prefix) :])
    return names


def mapping_names(path: Path) -> list[str]:
    """The torch names of the official mapping table."""
    with path.open(encoding="utf-8", newline="") as file:
        return [row["torch"] for row in csv.DictReader(file)]

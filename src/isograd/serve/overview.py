"""The first page: every run and report, with what a person looks for first."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from isograd.errors import IsogradError
from isograd.report.document import Cell, Column, Document, Outcome, Section, Styled, Table, Tone
from isograd.runs.reader import Run
from isograd.serve.catalogue import Catalogue
from isograd.serve.changes import changed_at
from isograd.serve.model import Item, Kind

_TITLES = {
    Kind.VERIFY: "Verifications",
    Kind.STUDY: "Studies",
    Kind.TUNE: "Reports of tune",
    Kind.CHECKPOINT: "Checkpoints",
    Kind.EVENTS: "Event files",
    Kind.TRACE: "Profiles and traces",
    Kind.DATASET: "Data sets",
    Kind.RECORDING: "Recordings",
    Kind.SOURCE: "Source files",
}
_TONES = {"complete": Tone.GOOD, "running": Tone.INFO, "failed": Tone.BAD, "crashed": Tone.BAD}
#: Scalars that the table of runs shows, the most common first.
_MOST_SCALARS = 4
_MOST_ROWS = 5_000
#: Who asks while the runs are read waits for them: two readers would take twice the time.
_READING = threading.Lock()


def overview(catalogue: Catalogue, query: str = "") -> Document:
    """The document of the first page; query: only what has this text in its name."""
    wanted = query.lower()
    items = [one for one in catalogue.items() if wanted in f"{one.kind.value}/{one.name}".lower()]
    runs = [one for one in items if one.kind is Kind.RUN]
    sections: list[Section] = [_runs(runs)] if runs else []
    for kind in Kind:
        found = [one for one in items if one.kind is kind]
        # Source files are there for the findings that name them, and for a search.
        if found and kind is not Kind.RUN and (kind is not Kind.SOURCE or query):
            sections.append(_table(_TITLES.get(kind, f"Reports of {kind.value}"), found))
    folders = ", ".join(str(folder) for folder in catalogue.folders)
    others = sum(one.kind not in (Kind.RUN, Kind.SOURCE) for one in items)
    word = f"{len(runs):,} runs, {others:,} files and reports below {folders}"
    notes = () if catalogue.is_complete else ("Too many files: not all folders were looked at.",)
    return Document(
        title="isograd serve",
        outcome=Outcome("overview", f"{word}.", Tone.PLAIN),
        sections=sections,
        notes=notes,
    )


def _runs(runs: Sequence[Item]) -> Section:
    with _READING:
        facts = [_facts(run, changed_at(run)) for run in runs[:_MOST_ROWS]]
    counts: dict[str, int] = {}
    for one in facts:
        for name in one["last"]:
            counts[name] = counts.get(name, 0) + 1
    scalars = sorted(counts, key=lambda name: -counts[name])[:_MOST_SCALARS]
    columns = [
        Column("run", is_code=True), Column("state"), Column("framework"),
        Column("steps", is_number=True, format=",d"), Column("alerts", is_number=True, format=",d"),
        *(Column(name, is_number=True, format=".5g") for name in scalars),
        Column("started"),
    ]  # fmt: skip
    rows: list[list[Cell]] = [
        [
            Styled(run.name, link=run.address),
            Styled(one["state"], _TONES.get(one["state"], Tone.PLAIN)),
            one["framework"],
            one["steps"],
            Styled(one["alerts"], Tone.BAD if one["alerts"] else Tone.PLAIN),
            *(one["last"].get(name) for name in scalars),
            one["started"],
        ]
        for run, one in zip(runs, facts, strict=False)
    ]
    return Table("Runs", columns=columns, rows=rows, more=len(runs) - len(rows))


@lru_cache(maxsize=10_000)
def _facts(item: Item, changed: float) -> dict[str, Any]:
    """What the table says of one run; read again when the run has changed."""
    try:
        run = Run(item.path)
        row = run.scalars.last_row()
        alerts = sum(1 for one in run.alerts() if one.get("severity") == "alert")
    except IsogradError as error:
        return {"state": "unreadable", "framework": error.what, "steps": 0, "alerts": 0,
                "last": {}, "started": ""}  # fmt: skip
    information = run.information
    return {
        "state": information.state.value,
        "framework": information.framework,
        "steps": 0 if row is None else row[0] + 1,
        "alerts": alerts,
        "last": {} if row is None else row[1],
        "started": information.started[:19].replace("T", " "),
    }


def _table(title: str, items: Sequence[Item]) -> Section:
    columns = [
        Column("name", is_code=True),
        Column("size", unit="MB", is_number=True, format=",.2f"),
        Column("changed"),
    ]
    rows = [
        [
            Styled(one.name, link=one.address),
            one.size_bytes / 1e6 if one.size_bytes else None,
            time.strftime("%Y-%m-%d %H:%M", time.localtime(one.changed)),
        ]
        for one in items[:_MOST_ROWS]
    ]
    return Table(title, columns=columns, rows=rows, more=max(0, len(items) - _MOST_ROWS))

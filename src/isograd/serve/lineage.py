"""The page of hyper-parameters and lineage: what every training was made with, and its result."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from isograd.errors import IsogradError
from isograd.report.document import Cell, Column, Document, Outcome, Section, Styled, Table, Tone
from isograd.runs.reader import Run
from isograd.serve.catalogue import Catalogue
from isograd.serve.model import Item, Kind

_MOST_RUNS, _MOST_TRIALS, _MOST_COLUMNS = 2_000, 5_000, 24
_OPTION = re.compile(r"--?([A-Za-z][\w.-]*)(?:=(.*))?\Z", re.DOTALL)
_FRAMEWORKS = ("torch", "mindspore")


def lineage_document(catalogue: Catalogue) -> Document:
    """Runs with what they came from, trials of studies, and MindInsight's lineage files."""
    sections: list[Section] = []
    runs = catalogue.of_kind(Kind.RUN)
    if runs:
        sections.append(_runs(runs))
    for item in catalogue.of_kind(Kind.STUDY):
        sections += _trials(item)
    known = _lineage_files(catalogue)
    if known:
        sections.append(_table("Trainings of MindInsight's lineage files", known))
    rows = sum(len(one.rows) + one.more for one in sections if isinstance(one, Table))
    return Document(
        title="Hyper-parameters and lineage",
        outcome=Outcome("lineage", f"{rows:,} trainings.", Tone.PLAIN),
        sections=sections,
    )


def options_of(command: Sequence[str]) -> dict[str, Cell]:
    """What a command line sets: `--lr 0.1`, `--lr=0.1`, and True for a word alone."""
    found: dict[str, Cell] = {}
    words = list(command[1:])
    while words:
        match = _OPTION.match(words.pop(0))
        if match is None:
            continue
        value: str | None = match[2]
        if (
            value is None
            and words
            and (not words[0].startswith("-") or _number(words[0]) is not None)
        ):
            value = words.pop(0)
        number = None if value is None else _number(value)
        found[match[1]] = True if value is None else (value if number is None else number)
    return found


def _is_value(word: str) -> bool:
    return not word.startswith("-") or _number(word) is not None


def _number(text: str) -> int | float | None:
    try:
        return int(text) if text.lstrip("+-").isdecimal() else float(text)
    except ValueError:
        return None


def _runs(items: Sequence[Item]) -> Table:
    rows: list[tuple[Cell, dict[str, Cell]]] = []
    for item in items[:_MOST_RUNS]:
        link = Styled(item.name, link=item.address)
        try:
            rows.append((link, _of_run(Run(item.path))))
        except IsogradError as error:
            rows.append((link, {"state": error.what}))
    return _table("Runs", rows, more=len(items) - len(rows))


def _of_run(run: Run) -> dict[str, Cell]:
    facts = run.information
    row = run.scalars.last_row()
    versions = [f"{one} {facts.versions[one]}" for one in _FRAMEWORKS if one in facts.versions]
    last = {} if row is None else row[1]
    return {
        "state": facts.state.value,
        "loss": last.get("loss"),
        **options_of(facts.command),
        "command": " ".join(facts.command),
        "commit": facts.git_commit or "",
        "seeds": ", ".join(f"{name} {seed}" for name, seed in facts.seeds.items()),
        "framework": facts.framework,
        "versions": ", ".join(versions),
        "device": facts.device,
        "started": facts.started[:19].replace("T", " "),
    }


def _trials(item: Item) -> list[Section]:
    from isograd.tune.results import reports_of_journal

    try:
        reports = reports_of_journal(item.path)
    except IsogradError:
        return []
    found: list[Section] = []
    for report in reports:
        rows: list[tuple[Cell, dict[str, Cell]]] = [
            (
                Styled(f"{report.study} {trial.number}", link=item.address),
                {
                    "state": trial.state.value,
                    **dict(zip(report.objectives, trial.values or (), strict=False)),
                    **trial.params,
                    "reason": trial.reason,
                },
            )
            for trial in report.trials[:_MOST_TRIALS]
        ]
        found.append(_table(f"Trials of {report.study}", rows, more=len(report.trials) - len(rows)))
    return found


def _lineage_files(catalogue: Catalogue) -> list[tuple[Cell, dict[str, Cell]]]:
    from isograd.tune.lineage import read_lineage

    return [
        (name, dict(values))
        for folder in catalogue.folders
        for name, values in read_lineage(folder)
    ]


def _table(title: str, rows: Sequence[tuple[Cell, Mapping[str, Cell]]], more: int = 0) -> Table:
    """Rows with a column for every name that any of them has and that says anything."""
    names = [
        name
        for name in dict.fromkeys(key for _, values in rows for key in values)
        if any(values.get(name) not in (None, "") for _, values in rows)
    ][:_MOST_COLUMNS]
    numbers = {name for name in names if _is_numeric(values.get(name) for _, values in rows)}
    columns = [
        Column("name", is_code=True),
        *(Column(one, is_number=one in numbers, format=".6g" * (one in numbers)) for one in names),
    ]
    cells = [[name, *(values.get(column) for column in names)] for name, values in rows]
    return Table(title, columns=columns, rows=cells, more=max(0, more))


def _is_numeric(values: Iterable[Cell]) -> bool:
    return all(
        one is None or (isinstance(one, (int, float)) and not isinstance(one, bool))
        for one in values
    )

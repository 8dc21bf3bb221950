"""Finds a trial's value where its script leaves it: run folder, event file, JSON, log, exit."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from isograd.compare.files.event_file import is_event_file, read_scalars
from isograd.errors import IsogradError
from isograd.runs.reader import Run, find_runs
from isograd.tune.study import Objective, Origin, Reduction

#: Steps with their values, in the order in which they were written.
Series = list[tuple[int, float]]
_NUMBER = r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:inf|nan)\w*)"
#: Bytes of a log or JSON file that are read, from its end.
_MOST_READ = 4 << 20
#: Files below a trial's folder that are looked at.
_MOST_FILES = 2_000
#: The file to which a trial's output goes.
LOG = "log.txt"


def value_of(objective: Objective, folder: Path, exit_status: int) -> float | None:
    """The trial's value; None where nothing in its folder holds it."""
    if objective.origin is Origin.EXIT:
        return float(exit_status)
    series = series_of(objective, folder)
    return reduced([value for _, value in series], objective.reduction) if series else None


def series_of(objective: Objective, folder: Path) -> Series:
    """All values that the trial has left so far, from the first place that holds any."""
    for origin, read in _READERS:
        if objective.origin in (Origin.AUTO, origin):
            found = read(objective, folder)
            if found:
                return found
    return []


def reduced(values: Sequence[float], reduction: Reduction) -> float:
    """The one number that counts of a series that is not empty."""
    if reduction is Reduction.LAST:
        return values[-1]
    if any(math.isnan(value) for value in values):
        return math.nan
    if reduction is Reduction.MEAN:
        return fmean(values)
    return min(values) if reduction is Reduction.LEAST else max(values)


def _of_run(objective: Objective, folder: Path) -> Series:
    place = folder / objective.file if objective.file else folder
    for run_folder in find_runs(place):
        try:
            steps, values = Run(run_folder).scalars.series(objective.name)
        except (IsogradError, KeyError):
            continue
        if len(steps):
            return [(int(step), float(value)) for step, value in zip(steps, values, strict=True)]
    return []


def _of_events(objective: Objective, folder: Path) -> Series:
    for path in _files(objective, folder, ()):
        if not is_event_file(path):
            continue
        try:
            scalars = read_scalars(path)
        except IsogradError:
            continue
        for tag, values in scalars.items():
            # MindSpore's collector writes the loss as `loss/auto`.
            if tag == objective.name or tag.split("/")[0] == objective.name:
                return values
    return []


def _of_json(objective: Objective, folder: Path) -> Series:
    for path in _files(objective, folder, (".json", ".jsonl", ".txt")):
        found = [
            value
            for document in _documents(tail(path))
            if (value := _by_key(document, objective.name)) is not None
        ]
        if found:
            return list(enumerate(found))
    return []


def _of_log(objective: Objective, folder: Path) -> Series:
    name = re.escape(objective.name)
    usual = rf"(?<![\w.]){name}[\"']?\s*(?:is|[:=])?\s*\[?{_NUMBER}"
    pattern = re.compile(objective.pattern or usual, re.IGNORECASE | re.MULTILINE)
    path = folder / (objective.file or LOG)
    numbers = (_number(match[1]) for match in pattern.finditer(tail(path)))
    return list(enumerate(number for number in numbers if number is not None))


def _number(text: str | None) -> float | None:
    try:
        return float(text or "")
    except ValueError:
        return None


_READERS = (
    (Origin.RUN, _of_run),
    (Origin.EVENTS, _of_events),
    (Origin.JSON, _of_json),
    (Origin.LOG, _of_log),
)


def _files(objective: Objective, folder: Path, suffixes: tuple[str, ...]) -> Iterable[Path]:
    """The file that the study names, or those in the trial's folder; links are not followed."""
    if objective.file:
        named = folder / objective.file
        return [named] if named.is_file() else sorted(folder.glob(objective.file))
    found = []
    for path in folder.rglob("*"):
        is_wanted = not suffixes or path.suffix in suffixes
        if is_wanted and path.is_file() and not path.is_symlink():
            found.append(path)
        if len(found) >= _MOST_FILES:
            break
    return sorted(found)


def tail(path: Path) -> str:
    """The end of a text file, at most 4 MiB; empty where it cannot be read."""
    try:
        with path.open("rb") as stream:
            stream.seek(max(0, path.stat().st_size - _MOST_READ))
            return stream.read(_MOST_READ).decode("utf-8", errors="replace")
    except OSError:
        return ""


def _documents(text: str) -> list[Any]:
    """The whole text as JSON, or each of its lines that is an object."""
    try:
        found = json.loads(text)
        return found if isinstance(found, list) else [found]
    except (ValueError, RecursionError):
        pass
    lines = []
    for line in text.splitlines():
        if line.lstrip().startswith("{"):
            try:
                lines.append(json.loads(line))
            except (ValueError, RecursionError):
                continue
    return lines


def _by_key(document: Any, name: str) -> float | None:
    """A number by its key, or by a dotted path of keys."""
    for part in [name] if isinstance(document, dict) and name in document else name.split("."):
        if not isinstance(document, dict):
            return None
        document = document.get(part)
    if isinstance(document, bool) or not isinstance(document, (int, float)):
        return None
    return float(document)

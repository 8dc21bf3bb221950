"""Earlier trials of MindOptimizer, from the lineage files that MindSpore's SummaryCollector writes.

Numbers of fields: MindInsight's `mindinsight_lineage.proto`; in MindSpore's own events the train
lineage is field 6, the evaluation 7 and what a user added 10.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from isograd.compare.files.event_file import fields, is_event_file, records
from isograd.errors import IsogradError
from isograd.tune.model import Choice

_TRAIN, _EVALUATION, _CUSTOM = 6, 7, 10
_HYPER_PARAMETERS, _ALGORITHM = 1, 3
_NAMES = {1: "optimizer", 2: "learning_rate", 3: "loss_function", 4: "epoch", 8: "batch_size"}
_LOSS = 2
_METRIC = 2
_MOST_FILES = 10_000
#: What lineage files end in.
SUFFIX = "_lineage"


def read_lineage(folder: Path) -> Iterator[tuple[str, dict[str, Choice]]]:
    """Each run below a folder with its hyper-parameters, loss and metrics by name."""
    runs: dict[Path, dict[str, Choice]] = {}
    for number, path in enumerate(sorted(folder.rglob(f"*{SUFFIX}"))):
        if number >= _MOST_FILES:
            return
        if path.is_file() and not path.is_symlink() and is_event_file(path):
            runs.setdefault(path.parent, {}).update(_of_file(path))
    for place, found in runs.items():
        yield place.name, found


def _of_file(path: Path) -> dict[str, Choice]:
    found: dict[str, Choice] = {}
    try:
        for event in records(path):
            for number, value in fields(event):
                if isinstance(value, bytes):
                    found.update(_of_event(number, value))
    except (OSError, ValueError, IndexError, IsogradError):
        return found  # what could be read before the damage
    return found


def _of_event(number: int, message: bytes) -> Mapping[str, Choice]:
    if number == _TRAIN:
        return _train(message)
    if number == _EVALUATION:
        return _evaluation(message)
    return _custom(message) if number == _CUSTOM else {}


def _train(message: bytes) -> dict[str, Choice]:
    found: dict[str, Choice] = {}
    for number, part in fields(message):
        if not isinstance(part, bytes):
            continue
        for inner, value in fields(part):
            if number == _HYPER_PARAMETERS and inner in _NAMES:
                found[_NAMES[inner]] = _plain(value)
            elif number == _ALGORITHM and inner == _LOSS and isinstance(value, float):
                found["loss"] = value
    return found


def _evaluation(message: bytes) -> dict[str, Choice]:
    for number, value in fields(message):
        if number == _METRIC and isinstance(value, bytes):
            try:
                metrics = json.loads(value)
            except (ValueError, RecursionError):
                return {}
            if isinstance(metrics, dict):
                return {str(k): v for k, v in metrics.items() if isinstance(v, (int, float))}
    return {}


def _custom(message: bytes) -> dict[str, Choice]:
    """The maps of UserDefinedInfo, which nest."""
    found: dict[str, Choice] = {}
    for number, part in fields(message):
        if not isinstance(part, bytes):
            continue
        if number == 1:
            found.update(_custom(part))
        elif number in (2, 3, 4, 5):
            entry = dict(fields(part))
            key, value = entry.get(1), entry.get(2)
            if isinstance(key, bytes) and number == 2 and isinstance(value, bytes):
                found.update(_custom(value))
            elif isinstance(key, bytes) and value is not None:
                found[key.decode("utf-8", errors="replace")] = _plain(value)
    return found


def _plain(value: int | float | bytes) -> Choice:
    return value.decode("utf-8", errors="replace") if isinstance(value, bytes) else value

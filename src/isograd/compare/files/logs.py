"""Losses out of logs: LossMonitor's and other trainers' text, CSV, JSON lines, summary files."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from isograd.compare.files.curve_model import LossLog
from isograd.compare.files.event_file import is_event_file, read_scalars
from isograd.errors import CheckpointError, UsageError

_NUMBER = r"([-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|\.\d+(?:e[-+]?\d+)?|nan|inf(?:inity)?)\b)"
_LOSS = re.compile(
    r"(?<![a-z0-9])((?:train(?:ing)?[_ ])?(?:total[_ ]|avg[_ ])?loss)"
    r"(?:\s+is\s*|[\"']?\]?\s*[:=]\s*|\s+)" + _NUMBER,
    re.IGNORECASE,
)
_STEP = re.compile(
    r"(?<![a-z0-9])(?:global[_ ])?(?:step|iter(?:ation)?|it|batch)[\"']?\s*[:=#]?\s*\[?\s*(\d+)",
    re.IGNORECASE,
)
_STEP_KEYS = ("global_step", "step", "iteration", "iter", "it", "batch")
_LOSS_KEYS = ("loss", "train_loss", "train/loss", "training_loss", "total_loss")
#: What of a text is looked at to tell whether it is a log, in bytes.
_HEAD = 1 << 16
#: Larger documents of JSON are no logs.
_LARGEST_DOCUMENT = 64 << 20
_ADVICE = "Give a log with losses, for example LossMonitor's output or a CSV with a column `loss`."

Series = dict[str, list[tuple[int | None, float]]]


def is_log(name: str) -> bool:
    """Whether a file holds losses as text or as events, or a folder such events."""
    if "://" in name:
        return False
    try:
        return _is_log(Path(name))
    except (OSError, ValueError):
        return False  # who opens it says why it cannot be read


def _is_log(path: Path) -> bool:
    if path.is_dir():
        return bool(_event_files(path))
    if not path.is_file():
        return False
    if is_event_file(path):
        return True
    with path.open("rb") as file:
        head = file.read(_HEAD)
    if b"\0" in head or not head:
        return False
    text = head.decode("utf-8", errors="replace")
    if len(head) == _HEAD and path.suffix == ".json" and path.stat().st_size < _LARGEST_DOCUMENT:
        text = path.read_text(encoding="utf-8", errors="replace")
    try:
        return bool(_text_series(text[: text.rfind("\n") + 1] or text)[1])
    except CheckpointError:
        return False


def _event_files(folder: Path) -> list[Path]:
    try:
        return [path for path in sorted(folder.iterdir()) if path.is_file() and _is_named(path)]
    except OSError:
        return []


def _is_named(path: Path) -> bool:
    return ("tfevents" in path.name or "summary" in path.name.lower()) and is_event_file(path)


def read_series(path: Path) -> tuple[str, Series]:
    """What the log is, and its series of losses by name; CheckpointError where there are none."""
    files = _event_files(path) if path.is_dir() else [path] if is_event_file(path) else []
    if files:
        found: Series = {}
        for file in files:
            for tag, values in read_scalars(file).items():
                found.setdefault(tag, []).extend(values)
        kind = "summary file"
    else:
        try:
            kind, found = _text_series(path.read_text(encoding="utf-8", errors="replace"))
        except OSError as error:
            raise CheckpointError(f"{path}: cannot be read ({error})", _ADVICE) from error
    found = {name: values for name, values in found.items() if values}
    if not found:
        raise CheckpointError(f"{path}: holds no losses", _ADVICE)
    return kind, found


def _text_series(text: str) -> tuple[str, Series]:
    first = next((line for line in text.splitlines() if line.strip()), "")
    if first.lstrip().startswith(("{", "[")):
        found = _json_document(text)
        if found:
            return "JSON", found
        found = _json_lines(text)
        if found:
            return "JSON lines", found
    cells = [cell.strip().strip("\"'").lower() for cell in re.split(r"[,;\t]", first)]
    if len(cells) > 1 and any("loss" in cell for cell in cells) and not _LOSS.search(first):
        return "CSV", _table(text)
    return "text", _lines(text)


def _json_document(text: str) -> Series:
    """A list of steps, an object that holds one (Trainer's `log_history`), or one of columns."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    for rows in (found, *(found.values() if isinstance(found, dict) else ())):
        if isinstance(rows, list) and rows and all(isinstance(row, dict) for row in rows):
            columns = _columns(rows)
            if columns:
                return columns
    if isinstance(found, dict):
        lists = {key: part for key, part in found.items() if isinstance(part, list)}
        if any("loss" in key.lower() for key in lists):
            length = max(map(len, lists.values()))
            return _columns(
                {key: part[place] for key, part in lists.items() if place < len(part)}
                for place in range(length)
            )
    return {}


def _json_lines(text: str) -> Series:
    rows = []
    for line in text.splitlines():
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict):
            rows.append(row)
    return _columns(rows)


def _table(text: str) -> Series:
    try:
        dialect: type[csv.Dialect] | csv.Dialect = csv.Sniffer().sniff(text[:4096], ",;\t")
    except csv.Error:
        dialect = csv.excel
    try:
        return _columns(list(csv.DictReader(io.StringIO(text), dialect=dialect)))
    except csv.Error:
        return {}


def _columns(rows: Iterable[Mapping[object, object]]) -> Series:
    """The columns with `loss` in their names, with the row's step."""
    found: Series = {}
    for row in rows:
        plain = {str(key).strip().lower(): value for key, value in row.items()}
        step = next((_number(plain[key]) for key in _STEP_KEYS if key in plain), None)
        for name, value in plain.items():
            loss = _number(value) if "loss" in name else None
            if loss is not None:
                found.setdefault(name, []).append((None if step is None else int(step), loss))
    return found


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def _lines(text: str) -> Series:
    found: Series = {}
    for line in text.splitlines():
        loss = _LOSS.search(line)
        if loss is None:
            continue
        step = _STEP.search(line)
        name = "_".join(loss[1].lower().split())
        found.setdefault(name, []).append((int(step[1]) if step else None, float(loss[2])))
    return found


def read_two_logs(first: Path, second: Path, series: str | None = None) -> tuple[LossLog, LossLog]:
    """Both logs with the series that they have in common, or the likeliest of each.

    series: the one that is wanted; UsageError where a log does not have it.
    """
    kind, mine = read_series(first)
    other_kind, its = read_series(second)
    if series is not None:
        for path, found in ((first, mine), (second, its)):
            if series not in found:
                raise UsageError(
                    f"{path} has no series {series!r}", f"It has: {', '.join(map(repr, found))}."
                )
        mine, its = {series: mine[series]}, {series: its[series]}
    common = [name for name in mine if name in its]
    name = other_name = _likeliest(common)
    if name is None or other_name is None:
        name, other_name = _likeliest(list(mine)), _likeliest(list(its))
    assert name is not None
    assert other_name is not None
    return _log(first, kind, name, mine[name]), _log(
        second, other_kind, other_name, its[other_name]
    )


def _likeliest(names: list[str]) -> str | None:
    """The name that most surely is the training loss."""
    for wanted in _LOSS_KEYS:
        for name in names:
            if name.lower() == wanted:
                return name
    return next((name for name in names if "loss" in name.lower()), names[0] if names else None)


def _log(path: Path, kind: str, series: str, values: list[tuple[int | None, float]]) -> LossLog:
    numbered = [step for step, _ in values if step is not None]
    has_steps = len(numbered) == len(values)
    steps = _running(numbered) if has_steps else list(range(1, len(values) + 1))
    return LossLog(
        str(path), kind, series, tuple(steps), tuple(loss for _, loss in values), has_steps
    )


def _running(steps: list[int]) -> list[int]:
    """Steps that count on where a log counts within epochs."""
    found: list[int] = []
    offset, before, start = 0, -1, steps[0] if steps else 0
    for step in steps:
        if step <= before:
            offset += before + (1 if start == 0 else 0)
        found.append(offset + step)
        before = step
    return found

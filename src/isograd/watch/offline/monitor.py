"""msprobe's training monitor, V2: CSV files of statistics per rank, metric and range of steps.

`<folder>/rank_<r>/{module,weight_grad,optimizer,param,cc}_step<first>-<last>.csv` with the columns
vpp_stage, step, module_name, scope, micro_step?, min, max, mean, norm, nans.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from isograd.errors import RunError
from isograd.watch.model import WatchReport
from isograd.watch.observation import COLUMNS, Look, Network, StepRecord, TensorTable
from isograd.watch.offline.judging import judged

_NAME = re.compile(r"(module|weight_grad|optimizer|param|cc)_step\d+-\d+\.csv")
_COLUMNS = {"step", "module_name", "scope", "norm"}
_ADVICE = "Give msprobe's output folder as it wrote it."


@dataclass(frozen=True)
class _Row:
    step: int
    name: str
    scope: str
    numbers: dict[str, float]


def monitor_files(folder: Path) -> list[Path]:
    """The monitor's files in a folder or its first rank's."""
    here = sorted(p for p in folder.iterdir() if _NAME.fullmatch(p.name))
    if here:
        return here
    ranks = sorted(p for p in folder.glob("rank_*") if p.is_dir() and not p.is_symlink())
    return sorted(p for p in ranks[0].iterdir() if _NAME.fullmatch(p.name)) if ranks else []


def judge_monitor(folder: Path, files: list[Path]) -> WatchReport:
    """Gradients and weights of a monitored training; RunError where a file is damaged."""
    gradients: dict[int, dict[str, _Row]] = {}
    weights: dict[int, dict[str, _Row]] = {}
    for path in files:
        for row in _rows(path):
            if path.name.startswith("weight_grad") and row.scope in ("reduced", "unreduced"):
                known = gradients.setdefault(row.step, {})
                if row.scope == "reduced" or row.name not in known:
                    known[row.name] = row
            elif path.name.startswith("param") and row.scope != "param_updated":
                weights.setdefault(row.step, {})[row.name] = row
    if not gradients and not weights:
        raise RunError(f"{folder}: holds neither gradients nor weights of msprobe's", _ADVICE)
    names = tuple(dict.fromkeys(n for by in (gradients, weights) for s in by.values() for n in s))
    count = len(names)
    network = Network(
        names,
        np.array([2 if name.endswith("weight") else 1 for name in names], dtype=np.int64),
        np.ones(count, dtype=bool),
        np.zeros(count, dtype=bool),
    )
    steps = sorted({*gradients, *weights})
    records = (_record(s, names, gradients.get(s, {}), weights.get(s, {})) for s in steps)
    return judged(folder, "msprobe's monitor", network, records)


def _record(
    step: int, names: tuple[str, ...], gradients: dict[str, _Row], weights: dict[str, _Row]
) -> StepRecord:
    norms = np.array([_number(gradients.get(name), "norm") for name in names])
    nans = np.array([_number(gradients.get(name), "nans") for name in names])
    absent = np.array([name not in gradients for name in names])
    bad = ~absent & (~np.isfinite(norms) | (nans > 0))
    return StepRecord(
        step,
        learning_rates=(),
        gradient_norms=np.where(bad, np.nan, norms) if gradients else None,
        gradient_absent=absent if gradients else None,
        gradient_nonfinite=bad if gradients else None,
        look=Look(weights=_table(names, weights)) if weights else None,
    )


def _table(names: tuple[str, ...], rows: dict[str, _Row]) -> TensorTable:
    values = np.full((len(names), len(COLUMNS)), np.nan)
    places = {
        "minimum": "min",
        "maximum": "max",
        "mean": "mean",
        "norm": "norm",
        "nan_count": "nans",
    }
    for at, name in enumerate(names):
        for column, ours in places.items():
            values[at, COLUMNS.index(column)] = _number(rows.get(name), ours)
    infinities = ~np.isfinite(values[:, COLUMNS.index("norm")]) & np.isin(names, list(rows))
    values[:, COLUMNS.index("infinity_count")] = infinities
    values[:, COLUMNS.index("nan_count")] = np.nan_to_num(values[:, COLUMNS.index("nan_count")])
    return TensorTable(names, values)


def _number(row: _Row | None, name: str) -> float:
    return float("nan") if row is None else row.numbers.get(name, float("nan"))


def _rows(path: Path) -> Iterator[_Row]:
    try:
        with path.open(encoding="utf-8", errors="replace", newline="") as stream:
            reader = csv.DictReader(stream)
            missing = _COLUMNS - set(reader.fieldnames or ())
            if missing:
                raise RunError(f"{path}: has no column {sorted(missing)[0]!r}", _ADVICE)
            for row in reader:
                found = _row(row)
                if found is not None:
                    yield found
    except (OSError, csv.Error) as error:
        raise RunError(f"{path}: cannot be read ({error})", _ADVICE) from error


def _row(row: dict[str, str]) -> _Row | None:
    """A row, or None where it is cut off, as the last one of a killed training is."""
    numbers: dict[str, float] = {}
    try:
        for name in ("min", "max", "mean", "norm", "nans"):
            text = row.get(name)
            if text:
                numbers[name] = float({"True": "1", "False": "0"}.get(text, text))
        return _Row(int(float(row["step"])), row["module_name"], row["scope"], numbers)
    except (ValueError, TypeError, KeyError, OverflowError):
        return None

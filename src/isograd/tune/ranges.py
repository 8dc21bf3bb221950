"""Ranges of hyper-parameters that can be drawn from, and near words for misspelt ones."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from pathlib import Path

from isograd.errors import UsageError
from isograd.tune.model import Choice
from isograd.tune.space import Kind, Parameter


def suggestion(word: str, known: Collection[str]) -> str:
    """`; did you mean …?` where a known word is near, else nothing."""
    near = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""


def range_parameter(
    path: Path,
    name: str,
    kind: Kind,
    bounds: tuple[float, float],
    *,
    step: float | None = None,
    is_log: bool = False,
    condition: Mapping[str, tuple[Choice, ...]] | None = None,
) -> Parameter:
    """A parameter with a range; UsageError where Optuna could not draw from it."""
    low, high = bounds
    problem = ""
    if high < low:
        problem = f"low {low:g} is above high {high:g}"
    elif is_log and low <= 0:
        problem = f"a logarithmic scale needs low above 0, not {low:g}"
    elif is_log and step is not None:
        problem = "log and step exclude each other"
    elif step is not None and not step > 0:
        problem = f"step {step:g} is not positive"
    elif kind is Kind.INT and not (low.is_integer() and high.is_integer()):
        problem = f"the bounds {low:g} and {high:g} of an int are no integers"
    if problem:
        raise UsageError(f"{path}: {name}: {problem}", "Mend the range.")
    return Parameter(name, kind, low, high, step, is_log, condition=condition)

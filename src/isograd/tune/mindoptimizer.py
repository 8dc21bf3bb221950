"""Reads the configuration of MindInsight's MindOptimizer as it is.

Its keys and their meaning are those of MindInsight 2.3's `OptimizerConfig`.  Ranges exclude their
upper bound there, and its search is linear.  Its goal is searched in the right direction here:
MindOptimizer 2.3.1 maximizes what it is asked to minimize.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from isograd.errors import UsageError
from isograd.tune.model import Direction
from isograd.tune.ranges import range_parameter, suggestion
from isograd.tune.space import Kind, Parameter
from isograd.tune.study import Objective, Origin, Sampler, Study

_KEYS = frozenset("summary_base_dir command tuner target parameters".split())
_PARAMETER_KEYS = frozenset("bounds choice type source decimal".split())
_ADVICE = "MindOptimizer's keys are summary_base_dir, command, tuner, target and parameters."


def read_mindoptimizer(text: str, path: Path) -> Study:
    """The study that a MindOptimizer configuration describes; UsageError names what is wrong."""
    found = _yaml(text, path)
    _require(path, "", found, _KEYS)
    for key in sorted(_KEYS - found.keys() - {"tuner"}):
        raise UsageError(f"{path}: {key} is missing", _ADVICE)
    home = path.resolve().parent
    return Study(
        name=path.stem,
        file=path,
        objectives=(_objective(path, found["target"]),),
        parameters=tuple(
            _parameter(path, str(name), what)
            for name, what in _mapping(path, "parameters", found["parameters"]).items()
        ),
        folder=home / str(found["summary_base_dir"]),
        working_folder=home,
        command=_verbatim(str(found["command"])),
        sampler=_sampler(path, found.get("tuner", {})),
        lineage=(home / str(found["summary_base_dir"]),),
    )


def _yaml(text: str, path: Path) -> Mapping[str, Any]:
    try:
        import yaml  # type: ignore[import-untyped]  # PyYAML ships no type information
    except ImportError as error:
        raise UsageError(
            "PyYAML is not installed, so a YAML study cannot be read",
            "Install the extra: pip install 'isograd[tune]'.",
        ) from error
    try:
        return _mapping(path, "the file", yaml.safe_load(text))
    except (yaml.YAMLError, RecursionError) as error:
        line = str(error).splitlines()[0]
        raise UsageError(f"{path}: is no YAML ({line})", "Mend the file.") from error


def _mapping(path: Path, what: str, found: Any) -> Mapping[str, Any]:
    if not isinstance(found, Mapping) or not found:
        raise UsageError(f"{path}: {what} is no mapping, or is empty", _ADVICE)
    return found


def _require(path: Path, where: str, table: Mapping[str, Any], keys: Collection[str]) -> None:
    for key in table:
        if key not in keys:
            place = f"{where}: {key}" if where else str(key)
            raise UsageError(f"{path}: {place} is not known{suggestion(str(key), keys)}", _ADVICE)


def _verbatim(command: str) -> str:
    """A command without placeholders: MindOptimizer passes parameters by the environment alone."""
    return command.replace("{", "{{").replace("}", "}}")


def _sampler(path: Path, tuner: Mapping[str, Any]) -> Sampler:
    name = tuner.get("name", "gp")
    if name != "gp":
        raise UsageError(f"{path}: tuner name {name!r} is not known", "MindOptimizer has gp alone.")
    return Sampler.TPE


def _objective(path: Path, target: Any) -> Objective:
    table = _mapping(path, "target", target)
    _require(path, "target", table, frozenset("group name goal".split()))
    if "name" not in table:
        raise UsageError(f"{path}: target has no name", "Name the value, such as loss.")
    goals = {one.value: one for one in Direction}
    # Without a goal: MindOptimizer's `organize_params_target` turns the sign for maximize alone.
    goal = table.get("goal", Direction.MINIMIZE.value)
    if goal not in goals:
        raise UsageError(
            f"{path}: target goal {goal!r} is not known{suggestion(str(goal), goals)}",
            "Give minimize or maximize.",
        )
    return Objective(str(table["name"]), goals[goal], Origin.AUTO)


def _parameter(path: Path, name: str, found: Any) -> Parameter:
    table = _mapping(path, f"parameters {name}", found)
    _require(path, f"parameters {name}", table, _PARAMETER_KEYS)
    if ("bounds" in table) == ("choice" in table):
        raise UsageError(f"{path}: {name} needs bounds or choice, and not both", _ADVICE)
    if "choice" in table:
        choices = table["choice"]
        if not isinstance(choices, list) or not choices:
            raise UsageError(f"{path}: {name}: choice is no list, or is empty", _ADVICE)
        return Parameter(name, Kind.CATEGORICAL, choices=tuple(choices))
    bounds = table["bounds"]
    numbers = isinstance(bounds, list) and all(isinstance(one, (int, float)) for one in bounds)
    if not numbers or len(bounds) != 2:
        raise UsageError(f"{path}: {name}: bounds {bounds!r} are no two numbers", _ADVICE)
    if table.get("type") not in ("int", "float"):
        raise UsageError(f"{path}: {name}: bounds need the type int or float", _ADVICE)
    return _range(path, name, Kind(table["type"]), float(bounds[0]), float(bounds[1]))


def _range(path: Path, name: str, kind: Kind, low: float, high: float) -> Parameter:
    if not low < high:
        raise UsageError(f"{path}: {name}: bounds are [low, high) with low < high", _ADVICE)
    if kind is Kind.INT:
        last = math.ceil(high) - 1
        return range_parameter(path, name, kind, (float(math.ceil(low)), float(last)))
    return range_parameter(path, name, kind, (low, math.nextafter(high, low)))

"""Reads a study file: isograd's own TOML, or MindOptimizer's YAML (`mindoptimizer.py`)."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

from isograd.errors import UsageError
from isograd.tune.mindoptimizer import read_mindoptimizer
from isograd.tune.model import Choice, Direction
from isograd.tune.ranges import range_parameter, suggestion
from isograd.tune.space import Kind, Parameter
from isograd.tune.study import Objective, Origin, Pruner, Reduction, Sampler, Study

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Word = TypeVar("Word", bound=Enum)
_LARGEST_FILE = 1 << 20
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
#: What a command's template may name beside the hyper-parameters.
PLACEHOLDERS = frozenset(("trial", "folder"))


def read_study(path: Path) -> Study:
    """Read a study file by its content; UsageError names the key that is wrong."""
    text = _text(path)
    if path.suffix in (".yaml", ".yml"):
        return checked(read_mindoptimizer(text, path))
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: is no TOML ({error})", "Mend the file.") from error
    return checked(_Reader(path, found).study())


def _text(path: Path) -> str:
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise UsageError(f"the study file {path} {what}", "Give a study in TOML or YAML.")
    try:
        with path.open("rb") as stream:
            content = stream.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error})", "Check its rights.") from error
    if len(content) > _LARGEST_FILE:
        raise UsageError(f"{path}: is larger than 1 MiB", "Give a study in TOML or YAML.")
    return content.decode("utf-8", errors="replace")


def checked(study: Study) -> Study:
    """The study, if its parts fit together; UsageError otherwise."""
    names = [parameter.name for parameter in study.parameters]
    for name in _PLACEHOLDER.findall(study.command):
        if name not in names and name not in PLACEHOLDERS:
            raise UsageError(
                f"{study.file}: the command names {{{name}}}, which is no hyper-parameter"
                + suggestion(name, [*names, *PLACEHOLDERS]),
                "Add it to [parameters], or write {{ and }} for braces.",
            )
    for parameter in study.parameters:
        earlier = names[: names.index(parameter.name)]
        for name in parameter.condition or {}:
            if name not in earlier:
                raise UsageError(
                    f"{study.file}: {parameter.name} depends on {name}, which does not come before "
                    "it" + suggestion(name, earlier),
                    f"Put {name} above {parameter.name} in [parameters].",
                )
    if study.sampler is Sampler.CMAES and len(study.objectives) > 1:
        raise UsageError(
            f"{study.file}: the sampler cmaes takes one objective", "Use tpe or nsga2 for several."
        )
    if study.pruner is not Pruner.NONE and len(study.objectives) > 1:
        raise UsageError(
            f"{study.file}: trials of several objectives cannot be pruned", "Leave out `pruner`."
        )
    return study


class _Reader:
    """One TOML file; every method reads one part of it."""

    def __init__(self, path: Path, found: Mapping[str, Any]) -> None:
        self._path = path
        self._found = found

    def study(self) -> Study:
        self._known("", self._found, ("study", "objective", "parameters", "history", "start"))
        head, what = self._table("study"), self._table("objective")
        self._known(
            "study",
            head,
            "name trials sampler pruner seed storage folder direction directions".split(),
        )
        self._known(
            "objective",
            what,
            "command function value values working_folder trial_limit_s watch environment".split(),
        )
        home = self._path.resolve().parent
        name = str(head.get("name", self._path.stem))
        command, function = str(what.get("command", "")), str(what.get("function", ""))
        if bool(command) == bool(function):
            raise self._error("[objective] needs `command` or `function`, and not both")
        return Study(
            name=name,
            file=self._path,
            objectives=self._objectives(head, what),
            parameters=self._parameters(is_optional=bool(function)),
            folder=home / str(head.get("folder", f"{self._path.stem}-trials")),
            working_folder=home / str(what.get("working_folder", ".")),
            command=command,
            function=function,
            trials=self._number(head, "trials", 30, least=1),
            sampler=self._word(Sampler, head, "sampler", Sampler.TPE),
            pruner=self._word(Pruner, head, "pruner", Pruner.NONE),
            seed=self._number(head, "seed", 0, least=0),
            storage=str(head.get("storage", "")),
            trial_limit_s=what.get("trial_limit_s"),
            is_watched=bool(what.get("watch", False)),
            lineage=tuple(home / str(one) for one in self._table("history").get("lineage", ())),
            environment={str(k): str(v) for k, v in what.get("environment", {}).items()},
            given=tuple(dict(one) for one in self._found.get("start", ())),
        )

    def _objectives(
        self, head: Mapping[str, Any], what: Mapping[str, Any]
    ) -> tuple[Objective, ...]:
        if "value" in what and "values" in what:
            raise self._error("[objective] has both `value` and `values`")
        listed = what.get("values", [what.get("value", {})])
        directions = head.get("directions", [head.get("direction", "minimize")] * len(listed))
        if len(directions) != len(listed):
            raise self._error(
                f"[study] directions names {len(directions)} directions for {len(listed)} values"
            )
        return tuple(
            self._objective(value if isinstance(value, Mapping) else {"name": value}, direction)
            for value, direction in zip(listed, directions, strict=True)
        )

    def _objective(self, value: Mapping[str, Any], direction: object) -> Objective:
        self._known("objective.value", value, "name from reduce file pattern".split())
        pattern = str(value.get("pattern", ""))
        try:
            groups = re.compile(pattern).groups if pattern else 1
        except re.error as error:
            raise self._error(f"pattern: {pattern!r} is no regular expression ({error})") from error
        if groups < 1:
            raise self._error(f"pattern: {pattern!r} has no group for the number")
        return Objective(
            name=str(value.get("name", "loss")),
            direction=self._word(Direction, {"direction": direction}, "direction", None),
            origin=self._word(Origin, value, "from", Origin.LOG if pattern else Origin.AUTO),
            reduction=self._word(Reduction, value, "reduce", Reduction.LAST),
            file=str(value.get("file", "")),
            pattern=pattern,
        )

    def _parameters(self, *, is_optional: bool) -> tuple[Parameter, ...]:
        table = self._table("parameters")
        if not table and not is_optional:
            raise self._error("[parameters] is missing or empty")
        return tuple(self._parameter(str(name), what) for name, what in table.items())

    def _parameter(self, name: str, what: Any) -> Parameter:
        if isinstance(what, list):
            what = {"choices": what}
        if not isinstance(what, Mapping):
            raise self._error(f"[parameters] {name}: give {{low, high}} or a list of choices")
        self._known(f"parameters.{name}", what, "low high step log type choices when".split())
        condition = {
            str(other): tuple(allowed) if isinstance(allowed, list) else (allowed,)
            for other, allowed in what.get("when", {}).items()
        }
        if "choices" in what:
            return Parameter(
                name,
                Kind.CATEGORICAL,
                choices=self._choices(name, what["choices"]),
                condition=condition or None,
            )
        low, high = (self._bound(name, what, key) for key in ("low", "high"))
        whole = isinstance(what["low"], int) and isinstance(what["high"], int)
        default = Kind.INT if whole else Kind.FLOAT
        return range_parameter(
            self._path,
            name,
            self._word(Kind, what, "type", default),
            (low, high),
            step=what.get("step"),
            is_log=bool(what.get("log", False)),
            condition=condition or None,
        )

    def _choices(self, name: str, listed: Any) -> tuple[Choice, ...]:
        if not isinstance(listed, list) or not listed:
            raise self._error(f"[parameters] {name}: choices is no list, or is empty")
        for one in listed:
            if not isinstance(one, (bool, int, float, str)):
                raise self._error(f"[parameters] {name}: {one!r} is no number, text or boolean")
        return tuple(listed)

    def _bound(self, name: str, what: Mapping[str, Any], key: str) -> float:
        value = what.get(key)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self._error(f"[parameters] {name}: {key} is missing or no number")
        return float(value)

    def _table(self, name: str) -> Mapping[str, Any]:
        found = self._found.get(name, {})
        if not isinstance(found, Mapping):
            raise self._error(f"[{name}] is no table")
        return found

    def _number(self, table: Mapping[str, Any], key: str, default: int, *, least: int) -> int:
        value = table.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise self._error(f"{key}: {value!r} is no integer of {least} or more")
        return value

    def _word(
        self, kind: type[Word], table: Mapping[str, Any], key: str, default: Word | None
    ) -> Word:
        value = table.get(key, default)
        known = [one.value for one in kind]
        if isinstance(value, kind):
            return value
        if value not in known:
            raise self._error(
                f"{key}: {value!r} is unknown{suggestion(str(value), known)} "
                f"(known: {', '.join(known)})"
            )
        return kind(value)

    def _known(self, where: str, table: Mapping[str, Any], keys: Collection[str]) -> None:
        for key in table:
            if key not in keys:
                place = f"[{where}] {key}" if where else key
                raise self._error(f"{place} is not known{suggestion(key, keys)}")

    def _error(self, what: str) -> UsageError:
        return UsageError(f"{self._path}: {what}", "docs/tune.md has the keys of a study file.")

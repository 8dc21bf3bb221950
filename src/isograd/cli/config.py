"""`[tool.isograd]` of the nearest pyproject.toml: what a project's own settings choose.

A file that lies in the project that is read is as hostile as its code: it chooses files and
findings, and never where something is written or what is run.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from isograd.errors import UsageError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

NAME = "pyproject.toml"
#: The keys of [tool.isograd], and those of [tool.isograd.VERB] besides.
_COMMON = ("select", "ignore", "exclude", "with-ignored")
_OF_VERBS = {"scan": ("fail-on",), "convert": ("target",)}


class ConfiguredCommand(click.Command):
    """A command whose options have the defaults of the nearest pyproject.toml."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        if self.name in _OF_VERBS or info_name in _OF_VERBS:
            settings = settings_of(info_name or "", args)
            names = {
                option.lstrip("-"): parameter.name
                for parameter in self.params
                for option in parameter.opts
            }
            extra["default_map"] = {names[key]: value for key, value in settings.items()}
        return super().make_context(info_name, args, parent, **extra)


def settings_of(verb: str, arguments: Sequence[str]) -> dict[str, Any]:
    """The settings for a verb: from the file above the first path that is named, else from here.

    Raises UsageError where the file has a section of isograd's that cannot be read.
    """
    named = next((Path(part) for part in arguments if _is_there(part)), Path())
    file = _find(named)
    if file is None:
        return {}
    text = file.read_text(encoding="utf-8", errors="replace")
    if "tool.isograd" not in text:
        return {}
    try:
        section = tomllib.loads(text)["tool"]["isograd"]
    except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise UsageError(f"{file} cannot be read: {error}", "Correct its TOML.") from error
    return _checked(file, verb, section)


def _is_there(part: str) -> bool:
    try:
        return not part.startswith("-") and Path(part).exists()
    except (OSError, ValueError):
        return False


def _find(path: Path) -> Path | None:
    """The pyproject.toml in the nearest folder at or above a path."""
    try:
        start = path.resolve()
        for folder in (start, *start.parents):
            if (folder / NAME).is_file():
                return folder / NAME
    except (OSError, RuntimeError):
        return None
    return None


def _checked(file: Path, verb: str, section: Any) -> dict[str, Any]:
    """The settings of a verb over those of all; UsageError for what is none."""
    if not isinstance(section, Mapping):
        raise UsageError(f"{file}: tool.isograd is no table", "Write it as [tool.isograd].")
    own = section.get(verb, {})
    if not isinstance(own, Mapping):
        raise UsageError(f"{file}: tool.isograd.{verb} is no table", "Write it as a table.")
    found: dict[str, Any] = {}
    known = (*_COMMON, *_OF_VERBS[verb])
    for part, values, allowed in (
        ("", {key: one for key, one in section.items() if key not in _OF_VERBS}, _COMMON),
        (f".{verb}", own, known),
    ):
        for key, value in values.items():
            if key not in allowed:
                near = difflib.get_close_matches(key, allowed, n=1)
                hint = f"Did you mean {near[0]}? " if near else ""
                raise UsageError(
                    f"{file}: [tool.isograd{part}] knows no {key}",
                    f"{hint}Known are: {', '.join(allowed)}.",
                )
            found[key] = value
    return found

"""Types of arguments: what a verb reads, which must be readable, and what it writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from isograd.errors import UsageError
from isograd.files import require_path

_CASE_ADVICE = "Give the path of a case file in TOML."


class Input(click.ParamType):  # type: ignore[type-arg]  # generic only in newer versions of click
    """A file or a folder that a verb reads: UsageError where it is not there or unreadable."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The path."""
        path = Path(value)
        require_path(path, "Correct the path.")
        return path


class CaseFiles(click.ParamType):  # type: ignore[type-arg]  # as above
    """A case file of `verify`, or a folder of them: UsageError where it is not there."""

    name = "case"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The path."""
        path = Path(value)
        require_path(path, _CASE_ADVICE, what="the case file ")
        return path


class CaseFile(CaseFiles):
    """A case file of `verify`: UsageError where it is a folder, too."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The path."""
        path = super().convert(value, param, ctx)
        if path.is_dir():
            raise UsageError(f"the case file {path} is a folder", _CASE_ADVICE)
        return path


#: The type of an argument that is read, and of an option that names a file to write.
INPUT = Input()
OUTPUT = click.Path(path_type=Path)
CASE = CaseFile()
CASES = CaseFiles()
SEED_HELP = "Seed of everything that is drawn at random."

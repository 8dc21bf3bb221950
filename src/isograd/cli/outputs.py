"""What the verbs on a case have in common: their options, their checks, and where reports go."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from isograd.errors import UsageError
from isograd.files import require_writable, write_text

if TYPE_CHECKING:
    from isograd.progress import Progress

STANDARD_OUTPUT = Path("-")
_FILE = click.Path(path_type=Path)
Command = TypeVar("Command", bound=Callable[..., object])


def on_a_case(command: Command) -> Command:
    """The argument CASE.toml and the options that every verb on a case has."""
    decorators = (
        click.argument("case", type=_FILE, metavar="CASE.toml"),
        click.option(
            "--json",
            "json_file",
            type=_FILE,
            metavar="FILE",
            help="Write the report as JSON; `-` is standard output and moves the text to standard "
            "error.",
        ),
        click.option(
            "--html",
            "html_file",
            type=_FILE,
            metavar="FILE",
            help="Write the report as one HTML page that needs no network.",
        ),
        click.option(
            "--seed",
            type=click.IntRange(min=0),
            default=0,
            show_default=True,
            help="Seed of everything that is drawn at random.",
        ),
        click.option(
            "--quiet", is_flag=True, help="Show no progress, and only the verdict's line."
        ),
    )
    for decorator in reversed(decorators):
        command = decorator(command)
    return command


def check_files(case: Path, json_file: Path | None, html_file: Path | None) -> None:
    """Raise UsageError for everything that can be known to fail before the work begins."""
    if not case.is_file():
        what = "is a folder" if case.is_dir() else "does not exist"
        raise UsageError(f"the case file {case} {what}", "Give the path of a case file in TOML.")
    if html_file == STANDARD_OUTPUT:
        raise UsageError("--html cannot write to standard output", "Give the name of a file.")
    seen = {case.resolve()}
    for path in (json_file, html_file):
        if path is None or path == STANDARD_OUTPUT:
            continue
        if path.resolve() in seen:
            raise UsageError(
                f"{path} would be overwritten: it is named twice", "Give each output its own file."
            )
        seen.add(path.resolve())
        require_writable(path)


@contextmanager
def progress_on_screen(quiet: bool) -> Iterator[Progress]:
    """A listener that draws on standard error, or says nothing."""
    if quiet:
        from isograd.progress import SilentProgress

        yield SilentProgress()
        return
    from isograd.report.progress import ReportingProgress

    with ReportingProgress(sys.stderr) as progress:
        yield progress


def write_json(json_file: Path, text: str) -> None:
    """Write to a file, or to standard output."""
    if json_file == STANDARD_OUTPUT:
        click.echo(text, nl=False)
    else:
        write_text(json_file, text)

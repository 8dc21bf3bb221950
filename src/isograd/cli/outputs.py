"""What verbs have in common: the options on a case, their checks, and where reports go."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from isograd.errors import UsageError
from isograd.files import require_path, require_writable, resolved, write_bytes, write_text

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
    advice = "Give the path of a case file in TOML."
    require_path(case, advice, what="the case file ")
    if case.is_dir():
        raise UsageError(f"the case file {case} is a folder", advice)
    check_outputs((case,), {"json": json_file, "html": html_file})


#: Reports that are no text for a terminal or a pipe.
_ONLY_FILES = ("html", "parquet")


def check_outputs(
    inputs: Iterable[Path],
    outputs: Mapping[str, Path | None],
    only_files: Iterable[str] = _ONLY_FILES,
) -> None:
    """Raise UsageError for outputs that cannot be written, before the work begins.

    outputs: by the name of the option, without its dashes.  only_files: those that are no text.
    """
    named = {name: file for name, file in outputs.items() if file is not None}
    for name in only_files:
        if named.get(name) == STANDARD_OUTPUT:
            raise UsageError(f"--{name} cannot write to standard output", "Give a file's name.")
    if list(named.values()).count(STANDARD_OUTPUT) > 1:
        raise UsageError("two reports go to standard output", "Give one of them a file.")
    seen = {resolved(path) for path in inputs}
    for file in named.values():
        if file == STANDARD_OUTPUT:
            continue
        if resolved(file) in seen:
            raise UsageError(
                f"{file} would be overwritten: it is named twice", "Give each output its own file."
            )
        seen.add(resolved(file))
        require_writable(file)


@contextmanager
def progress_on_screen(quiet: bool) -> Iterator[Progress]:
    """A listener that draws on standard error, or says nothing."""
    if quiet:
        from isograd.progress import SilentProgress

        yield SilentProgress()
        return
    from isograd.report.screen_progress import ScreenProgress

    with ScreenProgress(sys.stderr, "") as progress:
        yield progress


def files_of(*outputs: Path | None) -> tuple[Path, ...]:
    """The outputs that are files."""
    return tuple(file for file in outputs if file is not None and file != STANDARD_OUTPUT)


def write_json(json_file: Path, text: str) -> None:
    """Write to a file, or to standard output."""
    if json_file == STANDARD_OUTPUT:
        click.echo(text, nl=False)
    else:
        write_text(json_file, text)


def write_output(file: Path, content: str | bytes) -> None:
    """Write to a file whole or not at all, or to standard output."""
    if file == STANDARD_OUTPUT:
        click.echo(content, nl=False)
    elif isinstance(content, bytes):
        write_bytes(file, content)
    else:
        write_text(file, content)

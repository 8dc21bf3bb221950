"""Where reports go, and what is checked before the work begins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import click

from isograd.errors import UsageError
from isograd.files import require_writable, resolved, write_bytes, write_text

STANDARD_OUTPUT = Path("-")


def check_outputs(
    inputs: Iterable[Path],
    outputs: Mapping[str, Path | None],
    only_files: Iterable[str],
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


def write_output(file: Path, content: str | bytes) -> None:
    """Write to a file whole or not at all, or to standard output."""
    if file == STANDARD_OUTPUT:
        click.echo(content, nl=False)
    elif isinstance(content, bytes):
        write_bytes(file, content)
    else:
        write_text(file, content)

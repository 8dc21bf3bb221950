"""The options that choose files and findings, for every verb that reads a project."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., object])


def selection_options(command: Command) -> Command:
    """`--select`, `--ignore`, `--exclude` and `--with-ignored`."""
    decorators = (
        click.option(
            "--select",
            multiple=True,
            metavar="CODE",
            help="Report only these codes or APIs, as `torch.nn.*`; may be given several times.",
        ),
        click.option(
            "--ignore",
            multiple=True,
            metavar="CODE",
            help="Do not report these codes or APIs; may be given several times.",
        ),
        click.option(
            "--exclude",
            multiple=True,
            metavar="GLOB",
            help="Leave out files and folders by name or path; may be given several times.",
        ),
        click.option(
            "--with-ignored", is_flag=True, help="Read also what git ignores; it is skipped else."
        ),
    )
    for decorator in reversed(decorators):
        command = decorator(command)
    return command

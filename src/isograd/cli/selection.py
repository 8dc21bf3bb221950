"""The options that choose files and findings, for every verb that reads a project."""

from __future__ import annotations

import click

from isograd.cli.verb import stacked

#: `--select`, `--ignore`, `--exclude` and `--with-ignored`.
selection_options = stacked(
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

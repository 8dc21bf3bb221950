"""`isograd explain`: parse, and one call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from isograd.cli.verb import verb

if TYPE_CHECKING:
    from isograd.explain.run import Causes, Explanation
    from isograd.progress import Progress


@verb(document="isograd.explain.document:document")
@click.argument("cause", required=False)
def command(cause: str | None, progress: Progress) -> Explanation | Causes:
    """Explain a cause: what shows it and what to do.

    CAUSE is an id that a report names, such as batch_norm.eps; without one, all are listed. Shown
    are the hypotheses behind it, where they are tried, and two networks that differ in it.

    Exit status: 0 the cause is explained; 2 there is no such cause.
    """
    from isograd.explain.run import all_causes, explain

    return explain(cause) if cause is not None else all_causes()

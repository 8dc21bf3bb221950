"""Reads a run's folder, while it is written and after, where no framework is installed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from isograd.errors import RunError
from isograd.runs.information import FILE, RunInformation, RunState, read_information
from isograd.runs.table import Table
from isograd.runs.writer import ALERTS, SCALARS, STATISTICS

_LONGEST_LINE = 1 << 20
_MOST_ALERTS = 1_000_000
#: How far below a folder `find_runs` looks.
_DEPTH = 4


class Run:
    """A run as it stood when it was opened, each table when it was first asked for.

    `refresh` looks again.
    """

    def __init__(self, folder: Path) -> None:
        """Open a run; RunError where the folder holds none or is damaged."""
        self.folder = folder
        self.information: RunInformation
        self.refresh()

    def refresh(self) -> None:
        """Read what was written since."""
        self.information = read_information(self.folder)
        for name in ("scalars", "statistics"):
            self.__dict__.pop(name, None)

    @cached_property
    def scalars(self) -> Table:
        """Loss, learning rate and what else a step has one of."""
        return Table(self.folder / SCALARS)

    @cached_property
    def statistics(self) -> Table:
        """Numbers of parameters and modules."""
        return Table(self.folder / STATISTICS)

    @property
    def is_running(self) -> bool:
        """Whether the run is still being written, as far as this host can tell."""
        return self.information.state is RunState.RUNNING

    def alerts(self) -> Iterator[dict[str, Any]]:
        """The lines of `alerts.jsonl` in their order; a last line that is cut off is left out."""
        path = self.folder / ALERTS
        if not path.is_file() or path.is_symlink():
            return
        with path.open("rb") as stream:
            for number in range(1, _MOST_ALERTS):
                line = stream.readline(_LONGEST_LINE)
                if not line.endswith(b"\n"):
                    return
                try:
                    found = json.loads(line)
                except (ValueError, RecursionError) as error:
                    raise RunError(
                        f"{path}:{number}: is no JSON", "Remove the line; the others can be read."
                    ) from error
                if isinstance(found, dict):
                    yield found


def is_run(folder: Path) -> bool:
    """Whether a folder holds a run."""
    return (folder / FILE).is_file()


def find_runs(folder: Path, depth: int = _DEPTH) -> Iterator[Path]:
    """All folders of runs in a folder or up to `depth` levels below; links are not followed."""
    if is_run(folder):
        yield folder
        return
    if depth:
        try:
            entries = sorted(folder.iterdir())
        except OSError:
            return
        for entry in entries:
            if entry.is_dir() and not entry.is_symlink():
                yield from find_runs(entry, depth - 1)

"""Writes a run's folder while a training goes on, and never stands in the training's way.

An error of the disk ends the writing, with one warning: the training goes on, and what was written
before stays readable.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from isograd.errors import IsogradError
from isograd.files import prepare_folder
from isograd.runs.information import RunInformation, RunState, now, write_information
from isograd.runs.parquet import write_parquet
from isograd.runs.table import Table, TableWriter

SCALARS = "scalars"
STATISTICS = "statistics"
ALERTS = "alerts.jsonl"
PARQUET = "scalars.parquet"


class RunWriter:
    """Writes one run into a new folder.

    problem: why writing ended early, empty while all is well.
    """

    def __init__(self, folder: Path, information: RunInformation) -> None:
        """Make the folder; UsageError where it is not empty or cannot be made."""
        prepare_folder(folder)
        self.folder = folder
        self.information = information
        self.problem = ""
        self._scalars = TableWriter(folder / SCALARS, "float64")
        self._statistics = TableWriter(folder / STATISTICS, "float32")
        self._alerts: BinaryIO | None = None
        write_information(folder, information)

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Append numbers of a step: loss, learning rate, norms, …; kept as float64."""
        self._try(lambda: self._scalars.append(step, values))

    def statistics(self, step: int, values: Mapping[str, float]) -> None:
        """Append statistics of tensors at a step at which they were looked at; kept as float32."""
        self._try(lambda: self._statistics.append(step, values))

    def alert(self, record: Mapping[str, Any]) -> None:
        """Append a line to `alerts.jsonl`."""
        line = json.dumps(record, separators=(",", ":"), default=str) + "\n"
        self._try(lambda: self._append_alert(line.encode("utf-8", errors="backslashreplace")))

    def describe(self, **changes: Any) -> None:
        """Change fields of `run.json`, which is replaced atomically."""
        self.information = dataclasses.replace(self.information, **changes)
        self._try(lambda: write_information(self.folder, self.information))

    def close(self, state: RunState, reason: str = "") -> None:
        """Seal the tables, write the Parquet file where that is possible, and say how it ended."""
        self._try(self._scalars.close)
        self._try(self._statistics.close)
        self._try(lambda: write_parquet(Table(self.folder / SCALARS), self.folder / PARQUET))
        self._release()
        if self.problem:
            state, reason = RunState.FAILED, reason or self.problem
        ended = dataclasses.replace(self.information, state=state, reason=reason, ended=now())
        self.information = ended
        with contextlib.suppress(OSError, IsogradError):
            write_information(self.folder, ended)

    def _append_alert(self, line: bytes) -> None:
        if self._alerts is None:
            self._alerts = (self.folder / ALERTS).open("ab", buffering=0)
        at = self._alerts.tell()
        if self._alerts.write(line) < len(line):
            self._alerts.truncate(at)
            raise OSError(28, "no space left on device")

    def _try(self, act: Callable[[], object]) -> None:
        if self.problem:
            return
        try:
            act()
        except (OSError, IsogradError) as error:
            self.problem = str(error)
            self._release()
            warnings.warn(
                f"isograd stopped writing the run {self.folder}: {error}. "
                "The training goes on, and what was written before can be read.",
                RuntimeWarning,
                stacklevel=4,
            )

    def _release(self) -> None:
        self._scalars.abandon()
        self._statistics.abandon()
        if self._alerts is not None:
            self._alerts.close()
            self._alerts = None

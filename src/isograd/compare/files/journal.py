"""Finished pairs on disk, so that a comparison that was interrupted goes on where it stopped.

JSON lines: a header that says what was compared and how, then a line per pair.  Each line is one
append; a last line that was cut off is left out when the journal is read.
"""

from __future__ import annotations

import json
import math
import os
import threading
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from isograd.compare.files.differences import TensorDifference
from isograd.compare.files.model import TensorComparison
from isograd.compare.files.verdicts import TensorVerdict
from isograd.errors import UsageError

SCHEMA = "isograd/compare-journal/1"


class Journal:
    """Finished pairs of one comparison; `done` holds those that an earlier run finished."""

    def __init__(self, path: Path, header: dict[str, Any]) -> None:
        self._path = path
        self._lock = threading.Lock()
        self.done: dict[tuple[str, str], TensorComparison] = {}
        wanted = json.loads(json.dumps({"schema": SCHEMA, **header}))
        try:
            content = path.read_bytes() if path.exists() else b""
            whole = content[: content.rfind(b"\n") + 1]
            if whole:
                self._read(whole, wanted)
            if len(whole) != len(content):
                os.truncate(path, len(whole))
            self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        except OSError as error:
            raise UsageError(
                f"the journal {path} cannot be used: {error.strerror}", "Name a file of your own."
            ) from error
        if not whole:
            self._append(wanted)

    def _read(self, content: bytes, wanted: dict[str, Any]) -> None:
        try:
            header, *lines = [json.loads(line) for line in content.splitlines()]
            if header != wanted:
                raise UsageError(
                    f"the journal {self._path} belongs to another comparison",
                    "Name another file, or delete it where the sets have changed.",
                )
            for line in lines:
                found = comparison_of(line)
                self.done[found.reference, found.other] = found
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise UsageError(
                f"{self._path} is no journal of isograd: {error}", "Name another file."
            ) from error

    def add(self, comparison: TensorComparison) -> None:
        """Keep a finished pair."""
        self._append(asdict(comparison))

    def _append(self, value: dict[str, Any]) -> None:
        line = (json.dumps(_with_words(value)) + "\n").encode()
        with self._lock:
            os.write(self._descriptor, line)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def _with_words(value: Any) -> Any:
    """Infinities and NaN as words, which JSON has no numbers for."""
    if isinstance(value, dict):
        return {key: _with_words(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_words(part) for part in value]
    if isinstance(value, TensorVerdict):
        return value.value
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    return value


def _from_words(value: Any) -> Any:
    if isinstance(value, dict):
        return float(value["float"]) if set(value) == {"float"} else value
    return tuple(_from_words(part) for part in value) if isinstance(value, list) else value


def comparison_of(line: dict[str, Any]) -> TensorComparison:
    """A pair from its line."""
    value = {field.name: _from_words(line[field.name]) for field in fields(TensorComparison)}
    value["verdict"] = TensorVerdict(value["verdict"])
    if value["difference"] is not None:
        found = value["difference"]
        value["difference"] = TensorDifference(
            **{field.name: _from_words(found[field.name]) for field in fields(TensorDifference)}
        )
    return TensorComparison(**value)

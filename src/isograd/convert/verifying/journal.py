"""Remembers finished builders, so that an interrupted verification goes on where it stopped.

One JSON file per question in a folder.  The question is the builder, its inputs and seeds, and the
versions of isograd and both frameworks; an answer counts only while every file that either side
imported for it still has the content that it had.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from isograd.convert.verifying.results import BuilderResult
from isograd.errors import IsogradError
from isograd.files import write_text
from isograd.version import __version__

_FORMAT = 2


def usual_folder() -> Path:
    """Where verifications of ports are remembered: below XDG_CACHE_HOME, else ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "isograd" / "convert"


@dataclass(frozen=True)
class Journal:
    """Answers in a folder; None remembers nothing."""

    folder: Path | None

    def load(self, question: str) -> BuilderResult | None:
        """The answer to a question if it still holds."""
        if self.folder is None:
            return None
        try:
            value = json.loads(self._file(question).read_text(encoding="utf-8"))
            if value["format"] != _FORMAT or value["question"] != question:
                return None
            files = {str(path): str(digest) for path, digest in value["files"].items()}
            if not files or digests_of(files) != files:
                return None
            return replace(BuilderResult.from_json(value["answer"]), is_remembered=True)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def store(self, question: str, answer: BuilderResult, files: Iterable[str]) -> None:
        """Remember an answer; where the folder cannot be written nothing is remembered."""
        if self.folder is None:
            return
        value = {
            "format": _FORMAT,
            "question": question,
            "files": digests_of(files),
            "answer": answer.as_json(),
        }
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_text(self._file(question), json.dumps(value, indent=1) + "\n")
        except (OSError, IsogradError):
            return

    def _file(self, question: str) -> Path:
        assert self.folder is not None
        name = hashlib.sha256(question.encode(errors="replace")).hexdigest()
        return self.folder / f"{name[:32]}.json"


def versions() -> str:
    """The versions that an answer depends on."""
    found = [f"{name} {_version(name)}" for name in ("torch", "mindspore")]
    return ", ".join([f"isograd {__version__}", *found])


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "none"


def digests_of(files: Iterable[str]) -> dict[str, str]:
    """SHA-256 of every file's content; empty for a file that cannot be read."""
    return {file: _digest(file) for file in sorted(set(files))}


def _digest(file: str) -> str:
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()
    except OSError:
        return ""

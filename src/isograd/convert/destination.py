"""Where a port appears: whole, or not at all."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import TracebackType

from isograd.errors import UsageError

_ADVICE = "Give another name, or --force to replace it."


class Destination:
    """A folder (or the file of a single file) that is written aside and then put in its place.

    Use it as a context manager, which gives the folder to write into; `finish` puts it in place.
    Raises UsageError where it cannot be used.
    """

    def __init__(self, path: Path, out: Path, *, force: bool = False) -> None:
        self._source, self._force = path, force
        try:
            here, there = path.resolve(), out.resolve()
        except (OSError, RuntimeError) as error:
            what = f"{out} cannot be used: {error}"
            raise UsageError(what, "Give the name of a new folder.") from error
        self.is_file = path.is_file() and out.suffix == path.suffix and not out.is_dir()
        self.out = there
        folder = here if path.is_dir() else here.parent
        if there == here or (path.is_dir() and there.is_relative_to(folder)):
            raise UsageError(
                f"{out} lies in {path}, which is never written to", "Give a place outside of it."
            )
        if here.is_relative_to(there):
            raise UsageError(f"{out} holds {path}", "Give a folder outside the reference.")
        if not self.is_file and there.exists() and not (there.is_dir()):
            raise UsageError(f"{out} is a file", "Give the name of a new folder.")
        if there.exists() and not force:
            is_empty = there.is_dir() and not any(there.iterdir())
            if not is_empty:
                raise UsageError(f"{out} is there already", _ADVICE)
        self._partial = there.with_name(f".isograd-{os.getpid()}-{os.urandom(4).hex()}.partial")

    def __enter__(self) -> Path:
        try:
            self._partial.mkdir(parents=True)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise UsageError(
                f"{self.out} cannot be written: {reason}", "Give a folder in which you may write."
            ) from error
        return self._partial

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        shutil.rmtree(self._partial, ignore_errors=True)

    def finish(self) -> None:
        """Put what was written in its place."""
        if self.is_file:
            self._files()
            return
        old = None
        if self.out.exists():
            old = self.out.with_name(f"{self._partial.name}.old")
            self.out.rename(old)
        self._partial.rename(self.out)
        if old is not None:
            shutil.rmtree(old, ignore_errors=True)

    def _files(self) -> None:
        """The generated module first, so that the port never stands without it."""
        for part in sorted(
            self._partial.iterdir(), key=lambda item: item.name != "torch_semantics"
        ):
            target = self.out if part.name == self._source.name else self.out.parent / part.name
            part.replace(target)

"""Runs a training script unchanged under watch."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from isograd.runs.script import run_script
from isograd.watch.context import Watcher, watcher_for
from isograd.watch.model import WatchReport
from isograd.watch.read import read_run
from isograd.watch.session import Options, Session
from isograd.watch.settings import find_settings


def watch_script(
    script: Path, arguments: Sequence[str], out: Path, options: Options | None = None
) -> WatchReport:
    """Run a script of either framework and judge its training; what it prints is its own.

    Raises UsageError where there is no such script or the folder is not empty, RunError where the
    script never stepped an optimizer.
    """
    settings = find_settings(Path.cwd())
    chosen = options or Options(settings, action=settings.action)
    session = Session(out, chosen, script.stem)
    watchers: list[Watcher] = []

    def begin(framework: str) -> None:
        watcher = watcher_for(framework)(session, None, (), None)
        watcher.attach()
        watchers.append(watcher)

    error: BaseException | None = None
    try:
        end = run_script(script, arguments, begin)
        error = end.error or (SystemExit(end.status) if end.status else None)
        if end.trace:
            sys.stderr.write(end.trace)
    except BaseException as own:
        error = own
        raise
    finally:
        for watcher in reversed(watchers):
            watcher.detach(error)
        session.close(error)
    return read_run(out)

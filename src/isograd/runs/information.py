"""`run.json`: what ran, on what, and how it ended."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
import os
import platform
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from isograd.errors import RunError
from isograd.files import write_text

SCHEMA = "isograd/run/1"
FILE = "run.json"
#: A larger file is none of isograd's.
_LARGEST_BYTES = 1 << 20
_GIT_SECONDS = 2.0


class RunState(enum.Enum):
    """How a run stands. Only a reader says `crashed`: its process is gone and said no farewell."""

    RUNNING = "running"
    COMPLETE = "complete"
    FAILED = "failed"
    CRASHED = "crashed"


@dataclass(frozen=True)
class RunInformation:
    """What `run.json` holds.

    verb: what wrote the folder, as `watch` or `profile`.
    versions: by package; seeds: by library, as far as they were set.
    started, ended: times in UTC; reason: why the run failed.
    process, host: who writes, so that a reader can tell a crash from a run that goes on.
    details: what else the verb keeps about the run.
    """

    name: str
    verb: str
    framework: str
    versions: Mapping[str, str]
    device: str
    command: tuple[str, ...]
    git_commit: str | None
    seeds: Mapping[str, int]
    started: str
    ended: str | None = None
    state: RunState = RunState.RUNNING
    reason: str = ""
    process: int = 0
    host: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The object of `run.json`."""
        found = dataclasses.asdict(self)
        found["state"] = self.state.value
        return {"schema": SCHEMA, **found}


def describe_run(name: str, verb: str, framework: str = "", device: str = "") -> RunInformation:
    """What can be known of this process when a run starts; the framework may come later."""
    return RunInformation(
        name=name,
        verb=verb,
        framework=framework,
        versions=_versions(),
        device=device,
        command=tuple(sys.orig_argv),
        git_commit=_git_commit(Path.cwd()),
        seeds={},
        started=now(),
        process=os.getpid(),
        host=socket.gethostname(),
    )


def now() -> str:
    """The time in UTC, to the millisecond."""
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")


def _versions() -> dict[str, str]:
    from isograd.version import __version__

    found = {"python": platform.python_version(), "isograd": __version__}
    for name in ("numpy", "torch", "mindspore"):
        module = sys.modules.get(name)
        if module is not None:
            found[name] = str(getattr(module, "__version__", ""))
    return found


def _git_commit(folder: Path) -> str | None:
    try:
        found = subprocess.run(
            ["git", "rev-parse", "HEAD"],  # noqa: S607  # the user's own git, from the user's PATH
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=_GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    commit = found.stdout.strip()
    return commit if found.returncode == 0 and commit else None


def write_information(folder: Path, information: RunInformation) -> None:
    """Write `run.json`, atomically; UsageError where it cannot be written."""
    write_text(folder / FILE, json.dumps(information.to_json(), indent=1) + "\n")


def read_information(folder: Path) -> RunInformation:
    """Read `run.json`; RunError where it is missing or malformed."""
    path = folder / FILE
    advice = "Name a folder that `isograd watch`, `profile` or their callbacks wrote."
    try:
        if path.stat().st_size > _LARGEST_BYTES:
            raise RunError(f"{path}: is larger than {_LARGEST_BYTES:,} bytes", advice)
        data = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            raise RunError(f"{path}: is not of the schema {SCHEMA}", advice)
        found = _from_json(data)
    except FileNotFoundError as error:
        raise RunError(f"{folder}: holds no {FILE}, so it is no run", advice) from error
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise RunError(f"{path}: is malformed ({type(error).__name__}: {error})", advice) from error
    return dataclasses.replace(found, state=RunState.CRASHED) if _is_gone(found) else found


def _from_json(data: Mapping[str, Any]) -> RunInformation:
    text = {key: str(data[key]) for key in ("name", "verb", "framework", "device", "started")}
    commit, ended = data["git_commit"], data["ended"]
    return RunInformation(
        **text,
        versions={str(key): str(value) for key, value in data["versions"].items()},
        command=tuple(map(str, data["command"])),
        git_commit=None if commit is None else str(commit),
        seeds={str(key): int(value) for key, value in data["seeds"].items()},
        ended=None if ended is None else str(ended),
        state=RunState(data["state"]),
        reason=str(data["reason"]),
        process=int(data["process"]),
        host=str(data["host"]),
        details=dict(data["details"]),
    )


def _is_gone(information: RunInformation) -> bool:
    """Whether a run that says it is running has lost its process, as far as this host can tell."""
    if information.state is not RunState.RUNNING or information.host != socket.gethostname():
        return False
    try:
        os.kill(information.process, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False

"""The journal file of a study after a kill, a full disk or damage: what can go on, what cannot."""

from __future__ import annotations

import json
from pathlib import Path

from isograd.errors import UsageError

#: What is appended to a journal's name for the rests of its unfinished lines.
_REST = ".rest"


def check_journal(path: Path) -> None:
    """Raise UsageError that names the first damaged line; an unfinished last one is none."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if line.endswith(b"\n") and not _is_entry(line):
                keep = f"`head -n {number - 1} {path.name} > NEW` keeps the entries before it"
                raise UsageError(
                    f"{path}, line {number}: this is no entry of a journal: {_shown(line)}",
                    "Bring the file back from a backup, or name another storage"
                    + (f"; {keep}." if number > 1 else "."),
                )


def end_last_line(path: Path) -> str:
    """Make the journal end with a whole line, so that entries can follow; what was done, or "".

    A killed run may leave a part of an entry.  Nothing has been reported of it, so the study goes
    on without it; its bytes are kept in a file beside the journal.
    """
    from optuna.storages.journal import JournalFileSymlinkLock

    if not _unfinished(path):
        return ""
    lock = JournalFileSymlinkLock(str(path))
    lock.acquire()
    try:
        rest = _unfinished(path)  # another process may have been writing it
        if not rest:
            return ""
        if _is_entry(rest):
            with path.open("ab") as file:
                file.write(b"\n")
            return ""
        kept = path.with_name(path.name + _REST)
        with kept.open("ab") as file:
            file.write(rest + b"\n")
        with path.open("r+b") as file:
            file.truncate(path.stat().st_size - len(rest))
        return f"{path}: the last line was unfinished and is left out; {kept.name} keeps it"
    finally:
        lock.release()


def _unfinished(path: Path) -> bytes:
    """The bytes after the last line break."""
    if not path.is_file():
        return b""
    with path.open("rb") as file:
        if file.seek(0, 2) == 0:
            return b""
        file.seek(-1, 2)
        if file.read(1) == b"\n":
            return b""
        file.seek(0)
        return file.read().rpartition(b"\n")[2]


def _is_entry(line: bytes) -> bool:
    try:
        entry = json.loads(line)
    except ValueError:
        return False
    return isinstance(entry, dict) and isinstance(entry.get("op_code"), int)


def _shown(line: bytes) -> str:
    text = line.decode("utf-8", "replace").strip()
    return repr(text if len(text) <= 60 else f"{text[:60]}…")

"""Remembers the last scan of each path, so that an unchanged project is not read again.

One JSON file per scanned path in the user's cache folder (`XDG_CACHE_HOME`, else ~/.cache), written
atomically.  Its key covers the path, size and time of every file, isograd's own code, and the
knowledge; anything else than a file of this form with this key counts as no cache at all.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from isograd.errors import IsogradError
from isograd.files import cache_folder, write_text
from isograd.knowledge import store as knowledge_store
from isograd.scan.model import Answer, FileScan, Hazard, Problem, ScanReport, Use
from isograd.version import __version__

FORMAT = 3
#: Paths that are remembered; the oldest is forgotten first.
MOST_PATHS = 50
_OWN = Path(__file__).parent
_STATIC_GRAPH = _OWN.parent / "static_graph"
_WIDTH = 5


def folder() -> Path:
    """Where scans are remembered."""
    return cache_folder() / "scan"


def key_of(root: Path, files: list[Path], problems: list[Problem]) -> str | None:
    """What must be equal for a scan to be the same; None where a file cannot be looked at."""
    digest = hashlib.sha256(f"{FORMAT} {__version__} {root.resolve()}\n".encode(errors="replace"))
    own = [*sorted(_OWN.rglob("*.py")), *sorted(_OWN.glob("*.json"))]
    own += sorted(p for p in _STATIC_GRAPH.rglob("*") if p.suffix in (".py", ".toml", ".json"))
    knowledge = [knowledge_store.ENTRIES_FILE, knowledge_store.VERIFIED_FILE]
    given = os.environ.get(knowledge_store.VARIABLE)
    if given:
        knowledge.append(Path(given))
    try:
        for path in [*own, *(path for path in knowledge if path.exists()), *files]:
            status = path.stat()
            line = f"{path}\0{status.st_size}\0{status.st_mtime_ns}\0{status.st_ino}\0"
            line += f"{status.st_mode}\0{status.st_ctime_ns}\n"
            digest.update(line.encode(errors="surrogateescape"))
    except OSError:
        return None
    digest.update(repr(problems).encode(errors="replace"))
    return digest.hexdigest()


def _file_of(root: str) -> Path:
    name = hashlib.sha256(str(Path(root).resolve()).encode(errors="replace")).hexdigest()
    return folder() / f"{name[:32]}.json"


def load(key: str | None, root: Path) -> ScanReport | None:
    """The report that was stored under the key, or None."""
    if key is None:
        return None
    try:
        value = json.loads(_file_of(str(root)).read_text(encoding="utf-8"))
        if not isinstance(value, dict) or value.get("key") != key:
            return None
        return _report(value, str(root))
    except (OSError, ValueError, KeyError, IndexError, TypeError, RecursionError):
        return None


def store(key: str, report: ScanReport) -> None:
    """Remember a report; where the folder cannot be written nothing is remembered."""
    target = _file_of(report.path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_text(target, json.dumps(_value(key, report), separators=(",", ":")))
        _forget(target.parent)
    except (OSError, IsogradError):
        return


def _forget(where: Path) -> None:
    kept = sorted(where.glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in kept[MOST_PATHS:]:
        path.unlink(missing_ok=True)


def _value(key: str, report: ScanReport) -> dict[str, Any]:
    """Answers and texts once, uses as a flat list of numbers."""
    answers: dict[int, int] = {}
    answer_rows: list[list[Any]] = []
    texts: dict[str, int] = {}

    def text(value: str) -> int:
        return texts.setdefault(value, len(texts))

    files = []
    for scan in report.files:
        flat: list[int] = []
        for use in scan.uses:
            position = answers.get(id(use.answer))
            if position is None:
                position = answers[id(use.answer)] = len(answers)
                answer_rows.append(_answer_row(use.answer))
            flat += (use.line, use.column, text(use.how), position, use.cell)
        hazards = [
            [
                text(h.code),
                h.line,
                text(h.message),
                text(h.advice),
                text(h.device),
                h.cell,
                h.is_silent,
            ]
            for h in scan.hazards
        ]
        files.append([scan.file, scan.lines, flat, hazards, scan.ignores])
    return {
        "key": key,
        "answers": answer_rows,
        "files": files,
        "texts": list(texts),
        "problems": [
            [p.code, p.file, p.line, p.message, p.advice, p.cell] for p in report.problems
        ],
        "executed": [report.torch, report.mindspore, report.device],
    }


def _answer_row(answer: Answer) -> list[Any]:
    return [
        answer.api, answer.status, answer.target, answer.note, answer.effort, answer.way,
        answer.advice, answer.verified,
    ]  # fmt: skip


def _report(value: dict[str, Any], root: str) -> ScanReport:
    texts = value["texts"]
    answers = [
        replace(Answer(*row[:7]), verified=row[7] and tuple((a, b) for a, b in row[7]))
        for row in value["answers"]
    ]
    files = []
    for file, lines, flat, hazards, ignores in value["files"]:
        columns = (flat[i::_WIDTH] for i in range(_WIDTH))
        uses = tuple(
            Use(line, column, texts[how], answers[answer], cell)
            for line, column, how, answer, cell in zip(*columns, strict=True)
        )
        found = tuple(
            Hazard(texts[code], line, texts[message], texts[advice], texts[device], cell, silent)
            for code, line, message, advice, device, cell, silent in hazards
        )
        kept = tuple((cell, line, tuple(codes)) for cell, line, codes in ignores)
        files.append(FileScan(file, lines, uses, found, kept))
    return ScanReport(
        root,
        tuple(files),
        tuple(Problem(*row) for row in value["problems"]),
        torch=value["executed"][0],
        mindspore=value["executed"][1],
        device=value["executed"][2],
        is_cached=True,
    )

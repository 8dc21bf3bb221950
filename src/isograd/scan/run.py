"""A whole scan: find the files, read them in order, and put the answers together."""

from __future__ import annotations

import gc
import time
import traceback
from dataclasses import replace
from pathlib import Path

from isograd.collector import without_collector
from isograd.errors import UsageError
from isograd.files import require_path
from isograd.knowledge.store import Knowledge, load_knowledge
from isograd.progress import Progress
from isograd.scan import cache, sources
from isograd.scan.answers import Answers
from isograd.scan.model import FileScan, Problem, ScanReport
from isograd.scan.names import torch_names
from isograd.scan.project import ModuleIndex, reading_order
from isograd.scan.selection import EVERYTHING, Selection, Skipper, ignored_lines, select_findings
from isograd.scan.walker import scan_source

#: A notice of progress, and a look at the youngest garbage, each so many files.
_EVERY = 20
_SUFFIXES = (".py", ".pyi", ".pyw", ".ipynb")


def scan_path(
    path: Path,
    *,
    progress: Progress | None = None,
    knowledge: Knowledge | None = None,
    use_cache: bool = True,
    selection: Selection = EVERYTHING,
) -> ScanReport:
    """Scan a file or a folder without importing or running anything in it.

    knowledge: other than the shipped one; then nothing is cached.
    selection: which files are read and which findings reported.
    Raises UsageError where there is nothing to scan.
    """
    started = time.perf_counter()
    require_path(path, "Give a Python file, a notebook or a folder.", is_readable=False)
    if path.is_file() and not _may_be_code(path):
        what = f"{path} is no Python file and no notebook"
        raise UsageError(what, "Give a .py or .ipynb file, or a folder.")
    problems: list[Problem] = []
    skipper = Skipper.of(path, selection)
    files = list(sources.find_files(path, problems, skipper))
    if not files and not problems:
        raise UsageError(
            f"there is no Python file and no notebook in {path}",
            "Give a folder that holds the PyTorch project.",
        )
    key = None
    if use_cache and knowledge is None:
        key = cache.key_of(path, files, problems)
        kept = cache.load(key, path)
        if kept is not None:
            report = replace(kept, skipped=tuple(skipper.skipped))
            chosen = select_findings(report, selection)
            return replace(chosen, elapsed_s=time.perf_counter() - started)
    known = knowledge or load_knowledge()
    with without_collector():
        scans = _scan_files(path, files, Answers(known, torch_names()), problems, progress)
    report = ScanReport(
        str(path),
        tuple(scans),
        tuple(sorted(problems, key=lambda problem: (problem.file, problem.cell, problem.line))),
        *known.executed_on,
        skipped=tuple(skipper.skipped),
    )
    if key is not None:
        cache.store(key, report)
    chosen = select_findings(report, selection)
    return replace(chosen, elapsed_s=time.perf_counter() - started)


def _scan_files(
    root: Path,
    files: list[Path],
    answers: Answers,
    problems: list[Problem],
    progress: Progress | None,
) -> list[FileScan]:
    """One file after the other, imported ones first, so that only one tree is held at a time."""
    index = ModuleIndex(root, files)
    imports = {path: _imports(index, path) for path in files if path.suffix == ".py"}
    base = root if root.is_dir() else root.parent
    scans: list[FileScan] = []
    for done, path in enumerate(reading_order(files, imports)):
        file = path.relative_to(base).as_posix()
        if done % _EVERY == 0:
            gc.collect(0)
            if progress is not None:
                progress.advance(done, len(files), file)
        source = sources.read_source(path, file, problems)
        if source is None:
            continue
        try:
            found, summary = scan_source(
                source,
                index.seen_from(path),
                answers,
                name=index.names.get(path, ""),
                package=index.packages.get(path, ""),
            )
        except Exception as error:
            if not isinstance(error, RecursionError):
                problems.append(_own_fault(file, error))
                continue
            problems.append(
                Problem(
                    "too-deep",
                    file,
                    0,
                    "its expressions are nested too deeply to be read",
                    "Split the expression.",
                )
            )
            continue
        scans.append(_with_ignores(found, source))
        if path.suffix == ".py":
            index.keep(summary)
    return sorted(scans, key=lambda scan: scan.file)


def _with_ignores(scan: FileScan, source: sources.Source) -> FileScan:
    """The scan with the comments `# isograd: ignore` of its file."""
    lines = ignored_lines(source.text)
    if not lines:
        return scan
    return replace(
        scan, ignores=tuple((*source.place(line), codes) for line, codes in lines.items())
    )


def _own_fault(file: str, error: Exception) -> Problem:
    """A mistake of isograd's own costs one file, not the scan."""
    where = traceback.extract_tb(error.__traceback__)[-1]
    message = (
        f"isograd failed on it at {Path(where.filename).name}:{where.lineno} with "
        f"{type(error).__name__}: {error}"
    )
    return Problem("internal-error", file, 0, message, "Please report it with the file.")


def _imports(index: ModuleIndex, path: Path) -> list[Path]:
    try:
        if path.stat().st_size > sources.LARGEST_BYTES:
            return []
        text = path.read_bytes().decode("utf-8", errors="replace")
    except OSError:
        return []
    return index.imports(path, text)


def _may_be_code(path: Path) -> bool:
    """By its suffix; a script without one begins with the line that names Python."""
    if path.suffix.lower() in _SUFFIXES:
        return True
    try:
        with path.open("rb") as file:
            first = file.readline(200)
    except OSError:
        return True  # what cannot be read is a finding of the scan
    return first.startswith(b"#!") and b"python" in first

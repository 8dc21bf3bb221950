"""The second reading of one file: its port is written, and what is said of it put together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from isograd.convert.conversion import Run
from isograd.convert.engine import Engine, Port
from isograd.convert.model import FileConversion, Finding
from isograd.convert.output import place_of, write_file
from isograd.convert.reading import ReadFile, read_file
from isograd.scan.selection import ignored_lines, matches

_ADVICE = "Please report it with the file; convert it by hand."


@dataclass(frozen=True)
class Written:
    """What became of a file, the runtime functions of its port, and how many findings are ignored.

    A fork made it: what the whole conversion knows of it is in here.
    """

    conversion: FileConversion
    composites: frozenset[str] = frozenset()
    suppressed: int = 0


def own_fault(file: str, error: Exception) -> Finding:
    """A mistake of isograd's own costs one file, not the conversion."""
    message = f"isograd failed on it with {type(error).__name__}: {error}"
    return Finding(file, 0, 0, "internal-error", message, _ADVICE)


def convert_file(run: Run, engine: Engine, file: Path, folder: Path | None) -> Written:
    """Convert a file, and write it below a folder if there is one."""
    path, name = run.base / file, file.as_posix()
    failed = run.failed.get(path)
    try:
        read = run.kept.pop(path, None) or read_file(path, name)
    except OSError as error:
        reason = error.strerror or str(error)
        said = Finding(name, 0, 0, "unreadable", f"it cannot be read: {reason}", "Copy it by hand.")
        return Written(FileConversion(name, findings=(said,)))
    if read.source is None or failed is not None or path not in run.facts:
        said_here = failed or read.finding
        write_file(folder, file, read.raw, path)
        found = (said_here,) if said_here is not None else ()
        return Written(FileConversion(name, findings=found))
    try:
        source = run.rewritten.get(path, read.source)
        port = engine.convert(source, run.facts.pop(path), place_of(run, file))
        port = _with_training(run, name, port)
    except Exception as error:
        port = Port(read.source.text, (own_fault(name, error),))
    return _finished(run, file, read, port, folder)


def _with_training(run: Run, name: str, port: Port) -> Port:
    """A port whose findings stand at the reference's lines, with those about its training."""
    new = run.training.files.get(name)
    found = port.findings
    if new is not None:
        found = tuple(replace(f, line=new.origins[f.line - 1] if f.line else 0) for f in found)
    said = tuple(f for f in run.training.findings if f.file == name)
    return replace(port, findings=tuple(sorted({*found, *said})))


def _finished(run: Run, file: Path, read: ReadFile, port: Port, folder: Path | None) -> Written:
    assert read.source is not None
    is_changed = port.text != read.source.text
    write_file(folder, file, read.written(port.text), run.base / file)
    keeps = run.options.keep_texts and is_changed
    kept = _reported(run, port.findings, read.source.text)
    conversion = FileConversion(
        file.as_posix(),
        read.source.lines,
        port.uses,
        port.converted,
        is_changed,
        read.located(kept),
        port.runtime,
        read.source.text if keeps else None,
        port.text if keeps else None,
    )
    return Written(conversion, port.composites, len(port.findings) - len(kept))


def _reported(run: Run, findings: tuple[Finding, ...], text: str) -> tuple[Finding, ...]:
    """The findings that neither an option nor a comment at their line ignores."""
    selection, comments = run.options.selection, ignored_lines(text)
    if not (findings and (comments or selection.select or selection.ignore)):
        return findings
    return tuple(
        finding
        for finding in findings
        if selection.reports((finding.code, finding.api))
        and not matches(comments.get(finding.line, ()), (finding.code, finding.api))
    )

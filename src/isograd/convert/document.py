"""A conversion as a document: what is left to finish, the files, original and port side by side."""

from __future__ import annotations

import difflib
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from isograd.convert.model import ConvertReport, FileConversion, Finding, Level, RuntimeUse
from isograd.convert.notebooks import line_of
from isograd.findings import Finding as DrawnFinding
from isograd.findings import Level as DrawnLevel
from isograd.findings import Location
from isograd.report.document import (
    Cell,
    CodeMark,
    CodePair,
    Column,
    Document,
    Facts,
    FindingList,
    Lazy,
    Lines,
    Outcome,
    Section,
    Styled,
    Table,
    Tone,
)
from isograd.report.words import count_text, printable, seconds_text

if TYPE_CHECKING:
    from isograd.convert.graph.report import ExportReport
    from isograd.convert.verifying.results import BuilderResult

#: APIs that are listed by what they cost, and files with source in the page.
MOST_COSTS = 15
MOST_FILES = 200
_LONGEST_WHY = 160
_LEVELS = {Level.FINISH: DrawnLevel.ERROR, Level.LOOK: DrawnLevel.WARNING}
_TONES = {Level.FINISH: Tone.BAD, Level.LOOK: Tone.WARNING}


def document(report: ConvertReport | ExportReport) -> Document:
    """The conversion for a terminal; of a network's graph, or of source."""
    if not isinstance(report, ConvertReport):
        return _of_export(report)
    tone = Tone.WARNING if report.needs_action else Tone.GOOD
    path = Path(report.path)
    folder = path if path.is_dir() else path.parent
    return Document(
        title=f"isograd convert {report.path}" + (f" -o {report.out}" if report.out else ""),
        subtitle=f"{_head(report)}; {_knowledge(report)}",
        outcome=Outcome("converted", sentence(report), tone),
        sections=[*_costs(report), *_files(report), *_runtime(report), *_findings(report)],
        notes=_notes(report),
        root="" if folder == Path() else str(folder),
    )


def page(report: ConvertReport | ExportReport) -> Document:
    """The same with original and port side by side; it needs a report that keeps the texts."""
    plain = document(report)
    if not isinstance(report, ConvertReport):
        return plain
    shown = [file for file in _worst_first(report) if file.original is not None][:MOST_FILES]
    anchors = {file.file: f"file-{position}" for position, file in enumerate(shown)}
    pairs = [
        replace(_side_by_side(file), anchor=anchors[file.file], is_folded=position > 0)
        for position, file in enumerate(shown)
    ]
    names = [(file, ", ".join(names)) for file, names in report.compositions]
    generated = [Facts("Generated modules", names)] if names else []
    sections = [*_costs(report), *_files(report, anchors), *_runtime(report)]
    sections += [*_findings(report), *generated, *pairs]
    return replace(plain, sections=sections)


def diff_text(report: ConvertReport) -> str:
    """The edits of all files as one unified diff."""
    parts = []
    for file in report.files:
        if file.original is None or file.port is None:
            continue
        name = printable(file.file)
        lines = difflib.unified_diff(
            _lines(file.original), _lines(file.port), f"a/{name}", f"b/{name}", n=3
        )
        parts += [line if line.endswith("\n") else f"{line}\n" for line in lines]
    return "".join(parts)


def _lines(text: str) -> list[str]:
    return [f"{printable(line)}\n" for line in text.replace("\r\n", "\n").split("\n")]


def sentence(report: ConvertReport) -> str:
    """The whole answer in one sentence."""
    left = [finding for finding in report.findings if finding.level is Level.FINISH]
    looks = len(report.findings) - len(left)
    if not report.uses and not report.findings:
        return "No use of torch was found: nothing was changed."
    rest = "nothing is left to finish"
    if left:
        places = count_text(len(left), "place")
        rest = f"{places} in {count_text(len({f.file for f in left}), 'file')} left to finish"
    look = f"; {count_text(looks, 'place')} to look at" if looks else ""
    builders = "".join(f"; {_builder_text(result)}" for result in report.builders)
    if not report.uses:
        return f"No use of torch was converted; {rest}{look}{builders}."
    changed = sum(file.is_changed for file in report.files)
    return (
        f"{report.converted / report.uses:.1%} of {count_text(report.uses, 'use')} converted in "
        f"{count_text(changed, 'file')}; {rest}{look}{builders}."
    )


def _head(report: ConvertReport) -> str:
    nowhere = "" if report.out else "written nowhere, "
    return (
        f"{nowhere}{count_text(len(report.files), 'file')}, {count_text(report.lines, 'line')}, "
        f"{seconds_text(report.elapsed_s)} s"
    )


def _knowledge(report: ConvertReport) -> str:
    verified = "mint was not executed here; " if report.target == "mint" else ""
    if not report.mindspore:
        return f"{verified}the knowledge behind this conversion was not executed on any device"
    return (
        f"{verified}executed on torch {report.torch} and MindSpore {report.mindspore}, "
        f"{report.device}"
    )


def _notes(report: ConvertReport) -> list[str]:
    notes = [
        f"{file} was generated: {count_text(len(names), 'runtime function')}"
        for file, names in report.compositions
    ]
    if report.suppressed:
        notes.append(f"{count_text(report.suppressed, 'finding')} ignored by comments or options")
    if report.skipped:
        first = ", ".join(report.skipped[:3]) + (" …" if len(report.skipped) > 3 else "")
        notes.append(
            f"{count_text(len(report.skipped), 'path')} not carried over because git "
            f"ignores it or --exclude names it: {first}"
        )
    return notes


def _costs(report: ConvertReport) -> list[Section]:
    """What is left to finish, by what it is about, the most frequent first."""
    found: dict[str, list[Finding]] = defaultdict(list)
    for finding in report.findings:
        if finding.level is Level.FINISH:
            found[finding.api or finding.code].append(finding)
    order = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    rows = [(name, len(findings), _why(findings[0])) for name, findings in order]
    if not rows:
        return []
    columns = (Column("API", is_code=True), Column("places", is_number=True), Column("why"))
    return [Table("What is left costs most here", columns, rows)]


def _why(finding: Finding) -> str:
    why = ". ".join(part.rstrip(".") for part in (finding.message, finding.advice) if part)
    return _cut(why)


def _cut(why: str) -> str:
    return why if len(why) <= _LONGEST_WHY else f"{why[: _LONGEST_WHY - 1]}…"


def _worst_first(report: ConvertReport) -> list[FileConversion]:
    files = [file for file in report.files if file.uses or file.findings]
    return sorted(files, key=lambda file: (-len(file.findings), file.file))


def _files(report: ConvertReport, anchors: dict[str, str] | None = None) -> list[Section]:
    known = anchors or {}
    files = _worst_first(report)

    def row(file: FileConversion) -> tuple[Cell, ...]:
        name = Styled(file.file, link=known.get(file.file, ""))
        return (name, file.uses, file.converted, len(file.findings))

    columns = [Column("file", is_code=True)]
    columns += [Column(name, is_number=True) for name in ("uses", "converted", "findings")]
    return [Table("Files", columns, Lazy(files, row))] if files else []


def _runtime(report: ConvertReport) -> list[Section]:
    """What of the port is the runtime's, and why it is not MindSpore's own."""

    def row(use: RuntimeUse) -> tuple[Cell, ...]:
        return (use.name, use.uses, f"{use.file}:{use.line}", _cut(use.why))

    uses = report.runtime
    columns = [Column("runtime function", is_code=True), Column("uses", is_number=True)]
    columns += [Column("first in the port", is_code=True), Column("why")]
    return [Table("Runtime functions", columns, Lazy(uses, row))] if uses else []


def _findings(report: ConvertReport) -> list[Section]:
    """Every place: first those to finish, then those to look at."""
    order = list(Level)
    findings = sorted(report.findings, key=lambda finding: order.index(finding.level))
    return [FindingList("Findings", Lazy(findings, _drawn))] if findings else []


def _drawn(finding: Finding) -> DrawnFinding:
    where = Location(finding.file, finding.line or None, finding.column or None, cell=finding.cell)
    return DrawnFinding(
        finding.code,
        _LEVELS[finding.level],
        finding.message,
        location=where,
        advice=finding.advice,
    )


def _side_by_side(file: FileConversion) -> CodePair:
    marks = [
        CodeMark(
            line_of(finding, file.original or ""),
            tone=_TONES[finding.level],
            label=finding.code,
            text=" ".join(part for part in (finding.message, finding.advice) if part),
        )
        for finding in file.findings
    ]
    return CodePair(file.file, file.original or "", file.port or "", marks)


def _builder_text(result: BuilderResult) -> str:
    """One builder: how it was verified, and what was found first."""
    seeds = ", ".join(str(seed.seed) for seed in result.seeds)
    elapsed_s = sum(seed.elapsed_s for seed in result.seeds)
    known = "as before" if result.is_remembered else f"{seconds_text(elapsed_s)} s"
    given = " ".join(result.inputs) or "unknown inputs"
    text = f"{result.builder}: {result.outcome.value} (input {given}; seed {seeds}; {known})"
    if result.first_problem:
        text += f": {result.first_problem}"
    if result.outcome.value == "incomplete" and not result.paired:
        text += " (some weights have no partner; `isograd verify` with a rename takes them)"
    return f"{text}; compiled: {result.compiled}" if result.compiled else text


def _of_export(report: ExportReport) -> Document:
    conversion = report.conversion
    names = [str(path) for path in conversion.files]
    done = "Nothing was written"
    if names:
        classes = "class" if conversion.classes == 1 else "classes"
        done = f"{count_text(conversion.operators, 'operator')} in {conversion.classes:,} {classes}"
    findings = [
        DrawnFinding(
            finding.code,
            DrawnLevel.ERROR if finding.needs_a_person else DrawnLevel.WARNING,
            finding.message,
            location=Location(module=finding.module or None),
            advice=finding.advice,
        )
        for finding in conversion.findings
    ]
    sections: list[Section] = [Lines("Written", names)] if names else []
    sections += [FindingList("Findings", findings)] if findings else []
    builders = "".join(f"; {_builder_text(result)}" for result in report.builders)
    tone = Tone.WARNING if report.needs_action else Tone.GOOD
    return Document(
        title=f"isograd convert {report.path} --from-export {conversion.builder.text}",
        outcome=Outcome("converted", f"{done}{builders}.", tone),
        sections=sections,
    )

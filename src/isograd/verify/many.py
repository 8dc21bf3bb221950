"""Several cases in one call: each is verified, and a table says what came of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isograd.errors import CaseError, IsogradError, UsageError
from isograd.model import Verdict, VerifyReport
from isograd.report.base import Report
from isograd.report.document import Column, Document, Lines, Outcome, Section, Styled, Table, Tone
from isograd.verify.case import read_case
from isograd.verify.document import VERDICT_TONES
from isograd.verify.document import document as one_document
from isograd.verify.session import StartWorker
from isograd.verify.wording import verdict_sentence
from isograd.worker.warm import WarmWorkers

#: Verifies a case with workers that are started so.
_Verify = Callable[[Path, StartWorker], VerifyReport]
SCHEMA = "isograd/verify-cases/1"


@dataclass(frozen=True)
class CaseResult:
    """One case: its report, or why it could not be verified."""

    case: str
    report: VerifyReport | None
    problem: str
    elapsed_s: float


@dataclass(frozen=True)
class CasesReport(Report):
    """What came of several cases, in their order."""

    results: tuple[CaseResult, ...]

    @property
    def needs_action(self) -> bool:
        """Whether a port is anything but equivalent, or could not be verified."""
        return any(one.report is None or one.report.needs_action for one in self.results)

    def to_data(self) -> dict[str, Any]:
        """What `--json` writes: each case with its own report by schema isograd/verify/1."""
        return {
            "schema": SCHEMA,
            "cases": [
                {
                    "case": one.case,
                    "verdict": None if one.report is None else one.report.verdict,
                    "problem": one.problem or None,
                    "seconds": one.elapsed_s,
                    "report": None if one.report is None else one.report.to_data(),
                }
                for one in self.results
            ],
        }


def expanded(paths: Sequence[Path]) -> list[Path]:
    """The case files among these; of a folder those directly in it, in the order of their names.

    Raises `UsageError` where a folder holds no case.
    """
    found: list[Path] = []
    for path in paths:
        if not path.is_dir():
            found.append(path)
            continue
        cases = [file for file in sorted(path.glob("*.toml")) if _is_case(file)]
        if not cases:
            raise UsageError(f"the folder {path} holds no case", "Name a folder with case files.")
        found += cases
    return list(dict.fromkeys(found))


def _is_case(path: Path) -> bool:
    """Whether a file is meant as a case: also one with a mistake, which is then reported."""
    try:
        read_case(path)
    except CaseError:
        return b"[reference]" in path.read_bytes()
    return True


def verify_each(paths: Sequence[Path], verify: _Verify) -> CasesReport:
    """Verify case after case; one that cannot be verified does not end the others.

    The cases share the imports of their frameworks, and nothing else.
    """
    with WarmWorkers() as warm:
        return CasesReport(tuple(_results(paths, lambda path: verify(path, warm.worker))))


def _results(paths: Sequence[Path], verify: Callable[[Path], VerifyReport]) -> Iterator[CaseResult]:
    for path in paths:
        begin = time.monotonic()
        report, problem = None, ""
        try:
            report = verify(path)
        except IsogradError as error:
            problem = str(error)
        yield CaseResult(str(path), report, problem, time.monotonic() - begin)


def document(report: VerifyReport | CasesReport) -> Document:
    """Draw one case as a report, and several as a table."""
    if isinstance(report, VerifyReport):
        return one_document(report)
    columns = (
        Column("case", is_code=True),
        Column("verdict"),
        Column("first difference", is_code=True),
        Column("seconds", "s", is_number=True, format=".1f"),
    )
    rows = [_row(one) for one in report.results]
    sections: list[Section] = [Table("Cases", columns, rows)]
    for one in report.results:
        if one.problem:
            sections.append(Lines(f"{one.case} could not be verified", (one.problem,)))
        elif one.report is not None and one.report.needs_action:
            sections.append(Lines(one.case, (verdict_sentence(one.report),)))
    count = sum(
        one.report is not None and one.report.verdict is Verdict.EQUIVALENT
        for one in report.results
    )
    total = len(report.results)
    sentence = f"{count} of {total} cases are equivalent."
    tone = Tone.GOOD if count == total else Tone.BAD
    word = "equivalent" if count == total else "not all equivalent"
    return Document("isograd verify", Outcome(word, sentence, tone), tuple(sections))


def _row(one: CaseResult) -> tuple[str | Styled, ...]:
    if one.report is None:
        return one.case, Styled("error", Tone.BAD), "", Styled(one.elapsed_s)
    verdict = one.report.verdict
    first = one.report.first_divergence
    where = "" if first is None else f"{first.module or 'the network'} ({first.stage.value})"
    return one.case, Styled(verdict.value, VERDICT_TONES[verdict]), where, Styled(one.elapsed_s)

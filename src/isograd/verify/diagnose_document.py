"""The evidence of `isograd diagnose` as a document."""

from __future__ import annotations

from collections.abc import Iterator

from isograd.model import (
    Attempt,
    CallDiagnosis,
    ComparedTensor,
    DiagnoseReport,
    ListedModule,
    ModuleList,
    StageDiagnosis,
)
from isograd.report.document import (
    Cell,
    Column,
    Document,
    Facts,
    FindingList,
    Group,
    Lazy,
    Lines,
    Medium,
    Outcome,
    Section,
    Styled,
    Table,
    Tone,
)
from isograd.report.finding_text import ANSWERS
from isograd.report.words import count_text
from isograd.verify import diagnose_wording as diagnosed
from isograd.verify.document import VERDICT_TONES, drawn, sides, what_ran

#: Tensors of a call and hypotheses of a stage that the text lists.
MOST_TENSORS = 12
MOST_ATTEMPTS = 12
#: Calls that are shown in full; what differs comes first.
MOST_CALLS = 4


def document(report: DiagnoseReport | ModuleList) -> Document:
    """One module alone, or the list of modules that can be asked for."""
    if isinstance(report, ModuleList):
        return _of_list(report)
    calls = sorted(report.calls, key=lambda call: (not call.stages, not call.differs))
    sections: list[Section] = [
        Facts("", list(sides(report)), medium=Medium.TEXT),
        *(_call(report, call) for call in calls[:MOST_CALLS]),
    ]
    if len(calls) > MOST_CALLS:
        rest = count_text(len(calls) - MOST_CALLS, "call")
        sections.append(Lines("", [Styled(f"and {rest} more in --json", Tone.FAINT)]))
    if report.findings:
        sections.append(FindingList("Findings", Lazy(report.findings, drawn)))
    sections.append(Facts("What ran", list(what_ran(report)), medium=Medium.PAGE))
    subject = diagnosed.subject_text(report)
    return Document(
        title=f"isograd diagnose {report.case}, seed {report.seed}: {subject}",
        outcome=Outcome(
            report.verdict.value, diagnosed.sentence(report), VERDICT_TONES[report.verdict]
        ),
        sections=sections,
        notes=report.notes,
    )


def _call(report: DiagnoseReport, call: CallDiagnosis) -> Group:
    """One call: what differs, what was tried, and what explains it."""
    differs = ": differs" if call.differs else ""
    sections: list[Section] = []
    lines: list[str | Styled] = []
    if call.failure:
        lines.append(Styled(f"could not be judged: {call.failure}", Tone.WARNING))
    if call.note:
        lines.append(call.note)
    if lines:
        sections.append(Lines("", lines))
    if call.tensors:
        sections.append(_tensors(call))
    for stage in call.stages:
        sections += _stage(report, stage)
    return Group(f"{diagnosed.call_title(report, call)}{differs}", sections)


def _tensors(call: CallDiagnosis) -> Table:
    columns = (
        Column("stage"),
        Column("tensor", is_code=True),
        Column("differing", is_number=True),
        Column("error", is_number=True),
        Column("noise", is_number=True),
    )
    tensors = diagnosed.shown_tensors(call, len(call.tensors))
    return Table("", columns, Lazy(tensors, _tensor), most=MOST_TENSORS)


def _tensor(tensor: ComparedTensor) -> tuple[Cell, ...]:
    tone = Tone.BAD if tensor.differs else Tone.FAINT
    cells = (tensor.stage.value, *diagnosed.tensor_cells(tensor))
    return tuple(Styled(cell, tone) for cell in cells)


def _stage(report: DiagnoseReport, stage: StageDiagnosis) -> Iterator[Section]:
    if stage.attempts:
        columns = (
            Column("id", is_code=True),
            Column("hypothesis"),
            Column("where", is_code=True),
            Column("alpha"),
            Column("residual", is_number=True),
            Column("accepted"),
        )
        rows = [_attempt(report, stage, attempt) for attempt in stage.attempts]
        yield Table(diagnosed.attempts_title(stage), columns, rows, most=MOST_ATTEMPTS)
    lines = diagnosed.outcome_lines(stage)
    yield Lines(
        "", [Styled(line, Tone.STRONG) if line.startswith(ANSWERS) else line for line in lines]
    )


def _attempt(report: DiagnoseReport, stage: StageDiagnosis, attempt: Attempt) -> tuple[Cell, ...]:
    tone = Tone.STRONG if attempt.is_named else Tone.PLAIN if attempt.accepted else Tone.FAINT
    cells = (
        attempt.id,
        attempt.text,
        diagnosed.attempt_place(report, attempt),
        diagnosed.alpha_text(attempt),
        diagnosed.residual_text(attempt),
        diagnosed.standing(attempt, stage),
    )
    return tuple(Styled(cell, tone) for cell in cells)


def _of_list(report: ModuleList) -> Document:
    columns = (Column("module", is_code=True), Column("kind"), Column("calls", is_number=True))

    def row(module: ListedModule) -> tuple[Cell, ...]:
        return (module.name, module.kind, module.calls)

    modules = count_text(len(report.modules), "module")
    return Document(
        title=f"isograd diagnose {report.case}",
        outcome=Outcome("listed", f"{modules}; give one to --module.", Tone.GOOD),
        sections=[Table("Modules", columns, Lazy(report.modules, row), most=len(report.modules))],
    )

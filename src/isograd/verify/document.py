"""A verification as a document: the stages, where it first differs and why, and what else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from isograd.findings import Finding as DrawnFinding
from isograd.findings import Level, Location
from isograd.model import (
    DiagnoseReport,
    Finding,
    LossCurves,
    Side,
    StageVerdict,
    Verdict,
    VerifyReport,
)
from isograd.report.document import (
    Axis,
    Cell,
    Chart,
    ChartKind,
    ChartMark,
    Column,
    Document,
    Facts,
    FindingList,
    Lazy,
    Lines,
    Medium,
    Outcome,
    Section,
    Series,
    Styled,
    Table,
    Tone,
    Tree,
)
from isograd.report.words import number_text, ratio_text, seconds_text
from isograd.verify import wording
from isograd.verify.first_screen import shown
from isograd.verify.module_tree import module_nodes

#: Steps of the loss curves that the page lists.
MOST_STEPS = 60
VERDICT_TONES = {
    Verdict.EQUIVALENT: Tone.GOOD,
    Verdict.DIVERGENT: Tone.BAD,
    Verdict.INCOMPLETE: Tone.WARNING,
}
_STAGE_TONES = {
    StageVerdict.EQUIVALENT: Tone.GOOD,
    StageVerdict.DIVERGENT: Tone.BAD,
    StageVerdict.SKIPPED: Tone.FAINT,
    StageVerdict.ERROR: Tone.WARNING,
}


def document(report: VerifyReport) -> Document:
    """The text is one screen, as `first_screen` divides it; the page has everything."""
    return Document(
        title=f"isograd verify {report.case}, seed {report.seed}",
        outcome=Outcome(
            report.verdict.value, wording.verdict_sentence(report), VERDICT_TONES[report.verdict]
        ),
        sections=list(_sections(report)),
    )


def _sections(report: VerifyReport) -> Iterator[Section]:
    fits = shown(report)
    yield Facts("", list(sides(report)), medium=Medium.TEXT)
    yield _stages(report)
    first = wording.first_finding(report)
    if first is not None:
        yield FindingList("First divergence", [drawn(first, is_first=True)])
    further = wording.further_findings(report)
    if further:
        title = wording.further_title(report)
        short = Lazy(further, _short)
        yield FindingList(title, short, medium=Medium.TEXT, most=fits.findings)
        yield FindingList(title, Lazy(further, drawn), medium=Medium.PAGE)
    initial = wording.initial_findings(report)
    if initial:
        yield Lines(wording.INITIAL_TITLE, Lazy(initial, wording.initial_line), most=fits.initial)
    if report.gaps:
        gaps = [f"{gap.stage.value}: {gap.what}: {gap.why}" for gap in report.gaps]
        yield Lines("Gaps: this could not be compared", gaps, most=fits.gaps)
    if report.modules or first is not None:
        yield Tree(
            "Modules of the reference",
            module_nodes(report),
            medium=Medium.PAGE,
            legend=("1 × the rounding noise", "10,000 ×"),
        )
    yield from _losses(report.losses, is_shown=fits.losses)
    yield Facts("What ran", list(what_ran(report)), medium=Medium.PAGE)
    if report.notes:
        yield Lines("Notes", report.notes, most=fits.notes)
    left_out = fits.left_out(report)
    if left_out:
        yield Lines("", [Styled(left_out, Tone.FAINT)], medium=Medium.TEXT)


def sides(report: VerifyReport | DiagnoseReport) -> Iterator[tuple[str, Cell]]:
    """What both sides ran on, and what was set for the run."""
    for name, side in (("reference", report.reference), ("port", report.port)):
        yield name, wording.side_text(side)
        if side is not None and side.changed:
            yield "", Styled(_changed(side), Tone.FAINT)


def _changed(side: Side) -> str:
    return f"set for the run: {'; '.join(side.changed)}"


def what_ran(report: VerifyReport | DiagnoseReport) -> Iterator[tuple[str, Cell]]:
    """Both sides with what was set for the run, the seed, the time and the thresholds."""
    yield from sides(report)
    yield "seed", report.seed
    yield "time", f"{seconds_text(report.elapsed_s)} s"
    for name, value in report.thresholds.items():
        yield name, number_text(value)


def _stages(report: VerifyReport) -> Table:
    columns = (
        Column("stage"),
        Column("verdict"),
        Column("checked", is_number=True),
        Column("seconds", is_number=True, format=".1f"),
        Column("detail", is_cut=True),
    )
    rows = [
        (
            result.stage.value,
            Styled(result.verdict.value, _STAGE_TONES[result.verdict]),
            result.checked,
            result.elapsed_s,
            result.detail,
        )
        for result in report.stages
    ]
    return Table("Stages", columns, rows)


def drawn(finding: Finding, *, is_first: bool = False) -> DrawnFinding:
    """A finding with all its lines."""
    return DrawnFinding(
        finding.code,
        Level.ERROR if finding.diverges else Level.NOTE,
        finding.message,
        finding.severity.value,
        _location(finding),
        tuple(wording.explanation(finding, is_first=is_first)),
    )


def _short(finding: Finding) -> DrawnFinding:
    """A finding in one line with its ratio, and its cause and fix in a second."""
    ratio = "" if finding.ratio is None else f", {ratio_text(finding.ratio)} × the noise"
    return replace(
        drawn(finding),
        message=f"{finding.message}{ratio}",
        evidence=tuple(wording.why_lines(finding)),
    )


def _location(finding: Finding) -> Location:
    mode = f", {finding.mode} mode" if finding.mode else ""
    return Location(
        module=wording.who(finding), stage=f"{finding.stage.value}{mode}", step=finding.step
    )


def _losses(losses: LossCurves | None, *, is_shown: bool) -> Iterator[Section]:
    """Both curves of training on their own; the text says it in one line."""
    if losses is None or not losses.reference:
        return
    if is_shown:
        yield Lines("", [wording.losses_sentence(losses)], medium=Medium.TEXT)
    steps = list(range(len(losses.reference)))
    out = losses.first_step_out
    yield Chart(
        "Loss, each side training on its own",
        ChartKind.LINE,
        Axis("step"),
        Axis("loss"),
        [Series("reference", steps, losses.reference), Series("port", steps, losses.port)],
        [] if out is None else [ChartMark(out, "the curves part")],
        medium=Medium.PAGE,
        note=wording.parting_text(losses),
    )
    columns = [
        Column("step", is_number=True),
        Column("reference", is_number=True, format=".6f"),
        Column("port", is_number=True, format=".6f"),
        Column("difference", "‰", is_number=True, format=".3f"),
    ]
    rows: list[tuple[Cell, ...]] = [
        (
            step,
            losses.reference[step],
            losses.port[step],
            Styled(
                losses.relative_permille[step],
                Tone.BAD if out is not None and step >= out else Tone.PLAIN,
            ),
        )
        for step in wording.shown_steps(losses, MOST_STEPS)
    ]
    yield Table("Losses", columns, rows, medium=Medium.PAGE, is_folded=True)

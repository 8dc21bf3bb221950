"""What `isograd weights` did, as a document: what needs a person first, then what was changed."""

from __future__ import annotations

from collections.abc import Iterable

from isograd.findings import Finding, Level, Location
from isograd.pairing.transforms import Chain, Identity, Reshape, Transform, Transpose
from isograd.report.document import Document, FindingList, Lines, Outcome, Section, Tone
from isograd.report.words import count_text
from isograd.weights.model import ConversionReport, Move


def document(report: ConversionReport) -> Document:
    """One conversion of a checkpoint."""
    plan = report.plan
    findings = list(_findings(report))
    sections: list[Section] = [FindingList("Found", findings)] if findings else []
    zeros = [f"{cast.name}: {cast.flushed:,} numbers" for cast in report.casts if cast.flushed]
    sections += named_lines(
        [
            ("Changed", [_move_text(move) for move in plan.moves if _is_changed(move)]),
            ("Left out", _left_out(report)),
            ("Tied", [f"{name} is {first}" for name, first in report.ties]),
            ("Became 0", zeros),
            ("Assumed", list(plan.notes)),
        ]
    )
    tone = Tone.WARNING if report.needs_action else Tone.GOOD
    word = "written" if report.is_written else "not written"
    return Document(
        title=f"isograd weights {report.source} ({report.source_kind})",
        outcome=Outcome(word, sentence(report), tone),
        sections=sections,
    )


def named_lines(lists: Iterable[tuple[str, list[str]]]) -> list[Lines]:
    """A section for each list that holds something."""
    return [Lines(title, lines) for title, lines in lists if lines]


def sentence(report: ConversionReport) -> str:
    """The last line: what was written, and whether it was read back."""
    if not report.is_written:
        return (
            f"{report.target}: nothing was written, because the network would not get "
            "all that it needs; see above. --partial writes what fits."
        )
    checked = "read back and equal" if report.verified else "not read back"
    return (
        f"{report.target}: {count_text(report.tensors, 'tensor')}, "
        f"{report.size_bytes:,} bytes in {report.elapsed_s:.2f} s, {checked}"
        + ("; see above what needs your attention." if report.needs_action else ".")
    )


def _findings(report: ConversionReport) -> Iterable[Finding]:
    """Everything that needs a person."""
    plan = report.plan

    def finding(code: str, level: Level, name: str, message: str, advice: str = "") -> Finding:
        where = Location(module=name) if name else Location()
        return Finding(f"weights.{code}", level, message, location=where, advice=advice)

    for name in plan.missing:
        yield finding("missing", Level.ERROR, name, "the network has it, the source does not")
    for dropped in plan.dropped:
        if dropped.needs_action:
            yield finding("left_over", Level.ERROR, dropped.name, dropped.reason)
    for conflict in plan.conflicts:
        yield finding("shape", Level.ERROR, "", f"shapes contradict: {conflict}")
    for cast in report.casts:
        if cast.overflowed:
            text = f"{cast.overflowed:,} numbers of {cast.source} are infinite in {cast.target}"
            yield finding("overflow", Level.ERROR, cast.name, text)
    for group in plan.ambiguous:
        yield finding("ambiguous", Level.WARNING, "", group, "Settle it with --rename.")


def _left_out(report: ConversionReport) -> list[str]:
    """What needs nobody's attention, one line for each reason."""
    reasons: dict[str, list[str]] = {}
    for dropped in report.plan.dropped:
        if not dropped.needs_action:
            reasons.setdefault(dropped.reason, []).append(dropped.name)
    return [
        f"{names[0]}: {reason}"
        if len(names) == 1
        else f"{count_text(len(names), 'tensor')} such as {names[0]}: {reason}"
        for reason, names in reasons.items()
    ]


def _is_changed(move: Move) -> bool:
    return move.source != move.target or not isinstance(move.transform, Identity)


def _move_text(move: Move) -> str:
    steps = [(move.fold or "").replace("_", " "), transform_text(move.transform)]
    changed = ", then ".join(step for step in steps if step)
    return f"{', '.join(move.source)} → {', '.join(move.target)}" + (f", {changed}" * bool(changed))


def transform_text(transform: Transform) -> str:
    """What a transform does to a shape, in words; nothing for one that does nothing."""
    if isinstance(transform, Identity):
        return ""
    if isinstance(transform, Reshape):
        return f"{transform.reference} becomes {transform.port}"
    if isinstance(transform, Transpose):
        return f"axes {transform.axes}"
    if isinstance(transform, Chain):
        return ", then ".join(transform_text(step) for step in transform.steps)
    return f"{type(transform).__name__.lower()} along axis {transform.axis}"

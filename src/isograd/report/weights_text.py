"""What `isograd weights` did, as text."""

from __future__ import annotations

from io import StringIO

from isograd.compare.pairing.transforms import Chain, Identity, Reshape, Transform, Transpose
from isograd.report.text import make_console, write_line, written
from isograd.report.wording import count_text, printable
from isograd.weights.model import ConversionReport, Move

#: Lines of each list; the JSON report has them all.
MOST_LINES = 12


def render_text(report: ConversionReport, *, width: int = 100, colour: bool = False) -> str:
    """The report as lines of text: what needs a person first, then what was changed."""
    stream = StringIO()
    console = make_console(stream, width, colour)
    write_line(console, f"{printable(report.source)} ({report.source_kind})", "bold")

    def section(title: str, lines: list[str], style: str = "") -> None:
        if not lines:
            return
        write_line(console, title, style or "bold")
        for line in lines[:MOST_LINES]:
            write_line(console, f"  {printable(line)}")
        if len(lines) > MOST_LINES:
            write_line(console, f"  and {len(lines) - MOST_LINES:,} more in --json", "dim")

    plan = report.plan
    section("Missing: the network has them, the source does not", list(plan.missing), "bold red")
    left = [f"{d.name}: {d.reason}" for d in plan.dropped if d.needs_action]
    section("Left over", left, "bold red")
    section("Shapes contradict", list(plan.conflicts), "bold red")
    section("Overflow", _overflows(report), "bold red")
    section("Ambiguous, settle with --rename", list(plan.ambiguous), "bold yellow")
    section("Changed", [_move_text(move) for move in plan.moves if _is_changed(move)])
    section("Left out", _left_out(report))
    section("Tied", [f"{name} is {first}" for name, first in report.ties])
    section("Became 0", [f"{c.name}: {c.flushed:,} numbers" for c in report.casts if c.flushed])
    section("Assumed", list(plan.notes))
    write_line(console, sentence(report), "bold yellow" if report.needs_action else "bold green")
    return written(stream)


def sentence(report: ConversionReport) -> str:
    """The last line: what was written, and whether it was read back."""
    if not report.is_written:
        return (
            f"{printable(report.target)}: nothing was written, because the network would not get "
            "all that it needs; see above. --partial writes what fits."
        )
    checked = "read back and equal" if report.verified else "not read back"
    return (
        f"{printable(report.target)}: {count_text(report.tensors, 'tensor')}, "
        f"{report.size_bytes:,} bytes in {report.elapsed_s:.2f} s, {checked}"
        + ("; see above what needs your attention." if report.needs_action else ".")
    )


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


def _overflows(report: ConversionReport) -> list[str]:
    return [
        f"{loss.name}: {loss.overflowed:,} numbers of {loss.source} are infinite in {loss.target}"
        for loss in report.casts
        if loss.overflowed
    ]


def _is_changed(move: Move) -> bool:
    return move.source != move.target or not isinstance(move.transform, Identity)


def _move_text(move: Move) -> str:
    changed = transform_text(move.transform)
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

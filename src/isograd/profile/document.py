"""The report as a document: answer, findings, phases, modules, operators, queues, timeline."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from isograd.findings import Finding, Level, Location
from isograd.profile.against import Against
from isograd.profile.analyse.analysis import Analysis
from isograd.profile.analyse.breakdown import Limit
from isograd.profile.model import Phase
from isograd.profile.report import ProfileReport
from isograd.profile.roofline import roofline, summary
from isograd.profile.rules.rule import ProfileFinding, milliseconds
from isograd.profile.timeline import timeline
from isograd.report.document import (
    Axis,
    Cell,
    Chart,
    ChartKind,
    Column,
    Document,
    Facts,
    FindingList,
    Lines,
    Medium,
    Outcome,
    Section,
    Series,
    Table,
    Tone,
)

MOST_ROWS = 10
MOST_ROWS_OF_PAGE = 300
MOST_STEPS = 400

_LIMITS = {
    Limit.DATA: "The step waits for its data",
    Limit.HOST: "The step waits for the host: Python and dispatch",
    Limit.COMPUTE: "Arithmetic takes most of the step",
    Limit.COMMUNICATION: "The step waits for messages between ranks",
    Limit.MEMORY: "Moving data takes most of the step",
    Limit.BALANCED: "Nothing alone limits the step",
}


def document(report: ProfileReport) -> Document:
    """One screen of text."""
    return _document(report, tuple(_sections(report, MOST_ROWS)))


def page(report: ProfileReport) -> Document:
    """The same with every table in full and charts."""
    analysis = report.analysis
    sections = [*_sections(report, MOST_ROWS_OF_PAGE), *_charts(analysis)]
    if len(analysis.operators) > MOST_ROWS:
        every = _operators(analysis, MOST_ROWS_OF_PAGE)
        sections += [
            replace(one, title=f"All {one.title[:1].lower()}{one.title[1:]}", is_folded=True)
            for one in every
        ]
    return _document(report, tuple(sections))


def _document(report: ProfileReport, sections: tuple[Section, ...]) -> Document:
    analysis = report.analysis
    profile = analysis.profile
    subtitle = ", ".join(
        part
        for part in (
            profile.framework,
            profile.device,
            f"{len(analysis.breakdown.step_s)} steps",
        )
        if part
    )
    return Document(
        title=f"isograd profile {profile.source}",
        outcome=_outcome(report),
        sections=sections,
        notes=(*analysis.notes, *(report.against.notes if report.against else ())),
        subtitle=subtitle,
    )


def _outcome(report: ProfileReport) -> Outcome:
    analysis = report.analysis
    if not len(analysis.breakdown.step_s):
        return Outcome("no steps", "No steps are marked, so nothing limits a step.", Tone.INFO)
    share = "" if analysis.limit is Limit.BALANCED else _share(analysis)
    sentence = f"{_LIMITS[analysis.limit]}{share}, in steps of {milliseconds(analysis.step_s)}."
    worst = next((one for one in report.findings if one.seconds > 0), None)
    if worst is not None:
        sentence += (
            f" Up to {milliseconds(worst.seconds)} ({worst.share:.0%}) could be won: {worst.code}."
        )
    else:
        sentence += " No time that could be won was found."
    tone = Tone.WARNING if report.needs_action else Tone.GOOD
    return Outcome(analysis.limit.value, sentence, tone)


def _share(analysis: Analysis) -> str:
    share = analysis.breakdown.share(analysis.limit)
    return f" ({share:.0%}, confidence {analysis.confidence:.0%})"


def _sections(report: ProfileReport, most: int) -> Iterator[Section]:
    analysis = report.analysis
    if report.against is not None:
        yield from _against(report.against, analysis, most)
    if report.findings:
        yield FindingList("What could be won", tuple(_finding(f) for f in report.findings))
    yield from _phases(report)
    yield from _what_if(analysis)
    yield from _operators(analysis, MOST_ROWS)
    yield from _modules(report, most)
    yield from _memory(analysis, most)
    yield from _pipeline(analysis)
    yield from _communication(analysis)
    yield from summary(analysis)
    yield from _facts(analysis, most)


def _finding(found: ProfileFinding) -> Finding:
    file, _, line = (found.where or "").rpartition(":")
    evidence = []
    if found.what_if is not None:
        low, high = (milliseconds(value) for value in found.what_if.interval)
        step = milliseconds(found.what_if.step_s)
        evidence.append(f"without it a step would take {step} ({low} to {high})")
    if found.tried is not None:
        same = {True: "equivalent", False: "not equivalent", None: "not compared"}
        evidence.append(
            f"tried: {found.tried.setting} takes {milliseconds(found.tried.step_s)}, "
            f"{same[found.tried.equivalent]}"
        )
    location = Location(
        file=file or (found.where or ""),
        line=int(line) if file and line.isdigit() else None,
        module=found.module,
    )
    return Finding(
        code=found.code,
        level=Level.NOTE if found.is_note else Level.WARNING,
        message=found.message,
        severity=f"{found.share:.0%} of the step" if found.share > 0 else "",
        location=location,
        evidence=tuple(evidence),
        advice=found.advice,
    )


def _phases(report: ProfileReport) -> Iterator[Section]:
    rows = [(one.phase.value, one.seconds * 1e3, one.share) for one in report.phases()]
    if rows:
        columns = (
            Column("phase"),
            Column("time", "ms", is_number=True, format=".2f"),
            Column("share", is_number=True, format=".1%", has_bar=True),
        )
        yield Table("Phases of a step", columns, rows, note=_jitter(report.analysis))
    breakdown = report.analysis.breakdown
    if len(breakdown.step_s):
        known = sorted(breakdown.known, key=lambda one: -breakdown.of(one))
        limits = [
            (one.value, breakdown.of(one) * 1e3, breakdown.share(one))
            for one in known
            if breakdown.of(one) > 0
        ]
        yield Table(
            "What the step waits for",
            (
                Column("limit"),
                Column("time", "ms", is_number=True, format=".2f"),
                Column("share", is_number=True, format=".1%", has_bar=True),
            ),
            limits,
        )


def _jitter(analysis: Analysis) -> str:
    jitter = analysis.jitter
    if jitter.spread != jitter.spread:
        return ""
    text = f"Steps spread by {jitter.spread:.1%} around the median."
    if jitter.slow:
        names = ", ".join(map(str, jitter.slow[:8]))
        text += f" {len(jitter.slow)} are slower than that: {names}."
    return text


def _what_if(analysis: Analysis) -> Iterator[Section]:
    """The step after the usual changes, by the dependencies of its tasks."""
    if not analysis.answers:
        return
    columns = (
        Column("what if"),
        Column("step then", "ms", is_number=True, format=".2f"),
        Column("of today", is_number=True, format=".0%", has_bar=True),
    )
    rows = [(one.name, one.step_s * 1e3, analysis.share(one.step_s)) for one in analysis.answers]
    yield Table("What a step would take", columns, rows)


def _operators(analysis: Analysis, most: int) -> Iterator[Section]:
    shown = analysis.operators[:most]
    if not shown:
        return
    has_device = any(one.device for one in shown)
    columns = (
        Column("operator", is_code=True, is_cut=True),
        *((Column("on"),) if has_device else ()),
        Column("shapes", is_code=True),
        Column("dtypes", is_code=True),
        Column("calls", is_number=True, format=",d"),
        Column("self", "ms", is_number=True, format=".3f"),
        Column("share", is_number=True, format=".1%", has_bar=True),
        Column("spread", is_number=True, format=".0%"),
        Column("where", is_code=True),
    )
    total = sum(one.self_s for one in analysis.operators)
    if analysis.is_per_step and analysis.step_s > 0:
        total = analysis.step_s
    rows = [
        (
            one.name,
            *(("device" if one.device else "host",) if has_device else ()),
            shortened(one.shapes),
            one.dtypes,
            one.calls,
            one.self_s * 1e3,
            one.self_s / total if total > 0 else 0.0,
            one.spread if one.spread == one.spread else None,
            one.where or one.module or "",
        )
        for one in shown
    ]
    more = len(analysis.operators) - len(shown)
    title = "Operators by shape and dtype, " + (
        "per step" if analysis.is_per_step else "in the whole recording"
    )
    yield Table(title, columns, rows, more=more)


#: Of the shapes of an operator that takes lists of tensors, so many characters are shown.
_MOST_SHAPES = 60


def shortened(shapes: str) -> str:
    """Shapes that fit into a column, cut after a tensor: `2048×2048, 2048, …`."""
    if len(shapes) <= _MOST_SHAPES:
        return shapes
    whole, comma, _ = shapes[:_MOST_SHAPES].rpartition(", ")
    return f"{whole}, …" if comma else f"{shapes[:_MOST_SHAPES]}…"


def _modules(report: ProfileReport, most: int) -> Iterator[Section]:
    if report.against is not None or not report.analysis.profile.modules:
        return
    modules = sorted(
        report.analysis.profile.modules, key=lambda one: -_sum(one.forward_s, one.backward_s)
    )
    columns = (
        Column("module", is_code=True),
        Column("kind", is_code=True),
        Column("forward", "ms", is_number=True, format=".3f"),
        Column("backward", "ms", is_number=True, format=".3f"),
    )
    rows = [
        (one.name or "(network)", one.kind, _ms(one.forward_s), _ms(one.backward_s))
        for one in modules[:most]
    ]
    yield Table("Modules, per step", columns, rows, more=max(len(modules) - most, 0))


def _sum(*values: float) -> float:
    return float(np.nansum(values))


def _ms(seconds: float) -> float | None:
    return seconds * 1e3 if seconds == seconds else None


def _memory(analysis: Analysis, most: int) -> Iterator[Section]:
    """Who had allocated what the device held at its peak."""
    peak = analysis.memory
    if peak is None or peak.peak_bytes <= 0:
        return
    rows: list[tuple[Cell, ...]] = [
        (
            _module_name(one.module),
            one.phase.value,
            one.operator,
            one.size_bytes / 1e6,
            one.size_bytes / peak.peak_bytes,
        )
        for one in peak.shares[:most]
    ]
    if peak.before_bytes:
        share = peak.before_bytes / peak.peak_bytes
        rows.append(("(held before)", "", "", peak.before_bytes / 1e6, share))
    module, phase = peak.at
    note = f"The peak of {peak.peak_bytes / 1e6:.1f} MB ({peak.device}) is reached"
    note += "" if phase is Phase.OTHER else f" in the {phase.value} phase"
    note += "." if module is None else f", by {_module_name(module)}."
    if peak.held:
        held = ", ".join(f"{name} {size / 1e6:.1f} MB" for name, size in peak.held.items())
        note += f" Held before: {held}."
    columns = (
        Column("module", is_code=True),
        Column("phase"),
        Column("most by", is_code=True),
        Column("held", "MB", is_number=True, format=".2f"),
        Column("share", is_number=True, format=".1%", has_bar=True),
    )
    more = max(len(peak.shares) - most, 0)
    yield Table("Memory at its peak, by module", columns, rows, note=note, more=more)


def _module_name(name: str | None) -> str:
    return "(outside of modules)" if name is None else name or "(network)"


def _pipeline(analysis: Analysis) -> Iterator[Section]:
    answer = analysis.pipeline
    if answer is None:
        return
    columns = (
        Column("operator", is_code=True),
        Column("workers", is_number=True),
        Column("queue filled", is_number=True, format=".0%", has_bar=True),
        Column("bottleneck"),
    )
    rows = [
        (
            queue.name,
            queue.workers,
            queue.fill if queue.fill == queue.fill else None,
            "yes" if queue.number == answer.bottleneck and queue.number >= 0 else "",
        )
        for queue in answer.queues
    ]
    note = "The pipeline is fast enough: " if answer.is_fine else "Found because "
    yield Table("Data pipeline", columns, rows, note=f"{note}{answer.reason}.")


def _communication(analysis: Analysis) -> Iterator[Section]:
    answer = analysis.communication
    if answer is None or answer.segments is None:
        return
    one = answer.segments
    pairs: list[tuple[str, Cell]] = [
        ("messages today", one.today_segments),
        ("exposed tail today", milliseconds(one.today_tail_s)),
        ("proposed segments", str(list(one.segments.indices))),
        ("exposed tail then", milliseconds(one.tail_s)),
        ("cost of a message", f"{one.model.a_s:.3g} s + {one.model.b_s_per_byte:.3g} s per byte"),
    ]
    yield Facts("AllReduce segments", pairs)


def _facts(analysis: Analysis, most: int) -> Iterator[Section]:
    pairs: list[tuple[str, Cell]] = []
    host = analysis.profile.host
    if host is not None:
        pairs += [(f"excluded: {name}", milliseconds(s)) for name, s in host.excluded.items()]
        if host.plain_step_s > 0 and host.profiled_step_s > 0:
            ratio = host.profiled_step_s / host.plain_step_s
            pairs.append(("cost of the framework's profiler", f"{ratio:.2f} × a plain step"))
    if pairs:
        yield Facts("Measured beside", pairs)
    refused = analysis.profile.refused
    if refused:
        shown = [f"{one.file}: {one.reason}" for one in refused[:most]]
        yield Lines(
            "Files that were not read", shown, more=max(len(refused) - most, 0), is_folded=True
        )


def _against(other: Against, analysis: Analysis, most: int) -> Iterator[Section]:
    word = {None: "no difference beyond the noise", True: "faster", False: "slower"}[other.faster]
    yield Lines(
        f"Beside {other.other.profile.source}",
        [
            f"{milliseconds(analysis.step_s)} against {milliseconds(other.other.step_s)} per step: "
            f"{other.ratio:.2f} ×, {word} (noise {milliseconds(other.noise_s)})."
        ],
    )
    columns = (
        Column("phase"),
        Column("here", "ms", is_number=True, format=".2f"),
        Column("there", "ms", is_number=True, format=".2f"),
        Column("ratio", is_number=True, format=".2f"),
    )
    rows = [
        (phase.value, _ms(a), _ms(b), a / b if b > 0 and a == a else None)
        for phase, a, b in other.phases
    ]
    yield Table("Phases of both", columns, rows)
    yield from _modules_of_both(other, most)
    for title, operators in (
        ("Operators here only", other.only_here),
        ("Operators there only", other.only_there),
    ):
        if operators:
            lines = [f"{name}: {milliseconds(seconds)}" for name, seconds in operators[:most]]
            yield Lines(title, lines, more=max(len(operators) - most, 0))


def _modules_of_both(other: Against, most: int) -> Iterator[Section]:
    rows = [
        (side.name or "(network)", side.other_name or "", _ms(side.seconds), _ms(side.other_s),
         side.ratio if side.ratio == side.ratio else None)
        for side in other.modules
    ]  # fmt: skip
    if rows:
        columns = (
            Column("module", is_code=True),
            Column("there", is_code=True),
            Column("here", "ms", is_number=True, format=".3f"),
            Column("there", "ms", is_number=True, format=".3f"),
            Column("ratio", is_number=True, format=".2f"),
        )
        yield Table(
            "Modules of both, worst first", columns, rows[:most], more=max(len(rows) - most, 0)
        )


def _charts(analysis: Analysis) -> Iterator[Section]:
    steps = analysis.steps
    if len(steps):
        stride = max(1, len(steps) // MOST_STEPS)
        x = [float(number) for number in steps.number[::stride]]
        phases = np.nan_to_num(steps.phases_s) * 1e3
        rest = np.maximum(steps.seconds * 1e3 - phases.sum(axis=1), 0.0)
        series = [
            Series(phase.value, x, list(map(float, phases[::stride, index])))
            for index, phase in enumerate(Phase)
            if phases[:, index].any()
        ]
        series.append(Series("rest", x, list(map(float, rest[::stride]))))
        yield Chart(
            "Steps by phase",
            ChartKind.STACKED_BARS,
            Axis("step"),
            Axis("time", "ms"),
            series,
            medium=Medium.PAGE,
        )
    yield from roofline(analysis)
    yield from timeline(analysis)

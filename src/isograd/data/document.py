"""A data report as a document: what text and HTML draw."""

from __future__ import annotations

from collections.abc import Sequence

from isograd.data.inventory.rules import RULES
from isograd.data.model import (
    Comparison,
    DataReport,
    FieldReport,
    LabelReport,
    SourceReport,
    Verdict,
)
from isograd.findings import Rule
from isograd.report.document import (
    Axis,
    Chart,
    ChartKind,
    Column,
    Document,
    Facts,
    FindingList,
    Group,
    Lines,
    Medium,
    Outcome,
    Picture,
    Pictures,
    Section,
    Series,
    Table,
    Tone,
)
from isograd.report.words import count_text

_TONES = {
    Verdict.SAME: Tone.GOOD,
    Verdict.SOUND: Tone.GOOD,
    Verdict.DIFFERS: Tone.BAD,
    Verdict.UNSOUND: Tone.BAD,
    Verdict.INCOMPLETE: Tone.WARNING,
}
_MOST_ROWS = 40
_MOST_PICTURES = 24
_MOST_LABELS = 60


def document(report: DataReport) -> Document:
    """Draw the report: the comparison first, then each source."""
    sections: list[Section] = []
    if report.comparison is not None:
        sections += _comparison(report.comparison)
    for source in report.sources:
        sections += _source(source, is_alone=len(report.sources) == 1)
    return Document(
        title="isograd data " + " ".join(source.path for source in report.sources),
        outcome=Outcome(report.verdict.value, _sentence(report), _TONES[report.verdict]),
        sections=tuple(sections),
        notes=_notes(report),
        subtitle=f"seed {report.seed}, {report.elapsed_s:.1f} s",
        rules=tuple(Rule(rule.code, rule.summary, rule.advice, "data.md") for rule in RULES),
    )


def _notes(report: DataReport) -> tuple[str, ...]:
    found = [note for source in report.sources for note in source.notes]
    if report.written:
        found.append(report.written)
    return tuple(dict.fromkeys(found))


def _sentence(report: DataReport) -> str:
    compared = report.comparison
    if compared is None:
        samples = sum(source.samples for source in report.sources)
        findings = sum(len(source.findings) for source in report.sources)
        what = {
            Verdict.SOUND: "Sound",
            Verdict.UNSOUND: "Unsound",
            Verdict.INCOMPLETE: "Incomplete",
        }[report.verdict]
        return f"{what}: {samples:,} samples, {findings:,} finding{'s' * (findings != 1)}."
    if report.verdict is Verdict.SAME:
        return (
            f"Same: both yield the same {compared.samples:,} samples, paired by "
            f"{compared.paired_by}, in {count_text(len(compared.fields), 'field')}."
        )
    if report.verdict is Verdict.INCOMPLETE:
        return f"Incomplete: {compared.gaps[0] if compared.gaps else 'nothing was compared'}."
    first = compared.differences[0].finding.message if compared.differences else "they differ"
    return f"Differs: {first}"


def _comparison(compared: Comparison) -> list[Section]:
    sections: list[Section] = []
    if compared.differences:
        findings = tuple(one.finding for one in compared.differences)
        sections.append(FindingList("Differences", findings))
    if compared.gaps:
        sections.append(Lines("Not compared", compared.gaps))
    if compared.steps:
        columns = (
            Column("field", is_code=True),
            Column("A", is_code=True),
            Column("B", is_code=True),
            Column("outcome"),
            Column("greatest difference", is_number=True, format=".3g"),
            Column("detail"),
        )
        rows = [
            (s.field, s.reference or "–", s.port or "–", s.outcome, s.greatest, s.detail)
            for s in compared.steps
        ]
        sections.append(
            Table("Transforms, each with the same input on both sides", columns=columns, rows=rows)
        )
    if compared.fields:
        columns_of_fields = (
            Column("field", is_code=True),
            Column("in B", is_code=True),
            Column("dtype"),
            Column("same", is_number=True, format=",d"),
            Column("differ", is_number=True, format=",d"),
            Column("greatest difference", is_number=True, format=".3g"),
            Column("allowed", is_number=True, format=".1e"),
            Column("at", is_code=True),
        )
        rows_of_fields = [
            (
                f.name,
                f.port_name,
                f.dtypes[0] if f.dtypes[0] == f.dtypes[1] else " / ".join(f.dtypes),
                f.same,
                f.differs,
                f.greatest,
                f.allowed,
                f.at,
            )
            for f in compared.fields
        ]
        sections.append(Table("Fields", columns=columns_of_fields, rows=rows_of_fields))
    return sections


def _source(source: SourceReport, *, is_alone: bool) -> list[Section]:
    sections: list[Section] = [
        Facts(
            "Source",
            pairs=(
                ("path", source.path),
                ("format", source.format),
                ("samples", source.samples),
                *((source.splits or {}).items()),
            ),
        )
    ]
    if source.findings:
        sections.append(FindingList("Findings", findings=source.findings))
    if source.fields:
        sections += _fields(source.fields)
    sections += [_labels(one) for one in source.labels[:3]]
    sections += _pictures(source)
    if is_alone:
        return sections
    return [Group(source.path, sections=tuple(sections), is_folded=True)]


def _fields(fields: Sequence[FieldReport]) -> list[Section]:
    columns = (
        Column("field", is_code=True),
        Column("kind"),
        Column("dtype", is_code=True),
        Column("shapes", is_code=True),
        Column("lengths"),
    )
    rows = [
        (f.name, f.kind, _counted(f.dtypes), _counted(f.shapes), _lengths(f))
        for f in fields[:_MOST_ROWS]
    ]
    sections: list[Section] = [
        Table("Fields", columns=columns, rows=rows, more=max(0, len(fields) - _MOST_ROWS))
    ]
    numbers = [
        (
            f.name + (f"[{s.channel}]" if s.channel else ""),
            s.count,
            s.minimum,
            s.maximum,
            s.mean,
            s.deviation,
            s.quantiles[2] if s.quantiles else None,
            s.nans + s.infinities,
        )
        for f in fields
        for s in f.statistics
    ]
    if numbers:
        names = ("minimum", "maximum", "mean", "deviation", "median")
        sections.append(
            Table(
                "Numbers",
                columns=(
                    Column("field or channel", is_code=True),
                    Column("elements", is_number=True, format=",d"),
                    *(Column(name, is_number=True, format=".5g") for name in names),
                    Column("not finite", is_number=True, format=",d"),
                ),
                rows=numbers[:_MOST_ROWS],
                more=max(0, len(numbers) - _MOST_ROWS),
            )
        )
    return sections


def _counted(found: dict[str, int]) -> str:
    shown = list(found)[:3]
    if len(found) == 1:
        return shown[0]
    return ", ".join(f"{name} × {found[name]:,}" for name in shown) + (
        f" and {len(found) - 3} more" if len(found) > 3 else ""
    )


def _lengths(field: FieldReport) -> str:
    if field.lengths is None:
        return ""
    low, mean, high = field.lengths
    return f"{low:,} to {high:,}, mean {mean:,.1f}"


def _labels(labels: LabelReport) -> Section:
    shown = list(labels.counts.items())[:_MOST_LABELS]
    names = [
        labels.names[label] if 0 <= label < len(labels.names) else str(label) for label, _ in shown
    ]
    return Chart(
        f"Labels of field {labels.field!r}",
        kind=ChartKind.BARS,
        x=Axis("label", categories=names),
        y=Axis("samples"),
        series=(
            Series(
                "samples",
                [float(n) for n in range(len(shown))],
                [float(count) for _, count in shown],
            ),
        ),
        more=max(0, len(labels.counts) - _MOST_LABELS),
    )


def _pictures(source: SourceReport) -> list[Section]:
    pictures = [
        Picture(f"{one.key} · {name}" + (f" · {one.label}" if one.label else ""), content)
        for one in source.shown
        for name, content in one.pictures.items()
    ]
    if not pictures:
        return []
    return [
        Pictures(
            "Samples",
            pictures=tuple(pictures[:_MOST_PICTURES]),
            more=max(0, len(pictures) - _MOST_PICTURES),
            medium=Medium.PAGE,
            note="A uniform choice by the seed; --view writes a page to look through them.",
        )
    ]

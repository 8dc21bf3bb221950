"""A comparison of two sets of tensors as a document: where it begins, then the worst."""

from __future__ import annotations

from collections.abc import Iterator

from isograd.compare.answer import Answer
from isograd.compare.charts import charts, pair_name
from isograd.compare.curves_document import answer_document, curves_document
from isograd.compare.files.curve_model import CurvesReport
from isograd.compare.files.differences import TensorDifference
from isograd.compare.files.model import FilesReport, TensorComparison
from isograd.compare.files.verdicts import TensorVerdict
from isograd.findings import Finding, Level, Location
from isograd.model import Verdict
from isograd.report.document import (
    Cell,
    Column,
    Document,
    FindingList,
    Group,
    Lazy,
    Lines,
    Outcome,
    Section,
    Styled,
    Table,
    Tone,
)

_TONES = {
    TensorVerdict.IDENTICAL: Tone.GOOD,
    TensorVerdict.CLOSE: Tone.GOOD,
    TensorVerdict.DIFFERS: Tone.BAD,
    TensorVerdict.SHAPE: Tone.BAD,
    TensorVerdict.FAILED: Tone.WARNING,
    TensorVerdict.MISSING: Tone.WARNING,
}
_VERDICT_TONES = {
    Verdict.EQUIVALENT: Tone.GOOD,
    Verdict.DIVERGENT: Tone.BAD,
    Verdict.INCOMPLETE: Tone.WARNING,
}


def document(report: FilesReport | CurvesReport | Answer) -> Document:
    """Any answer of `isograd compare`."""
    if isinstance(report, Answer):
        return answer_document(report)
    if isinstance(report, CurvesReport):
        return curves_document(report)
    tone = _VERDICT_TONES[report.verdict]
    if report.is_consecutive:
        tone = Tone.WARNING if report.needs_action else Tone.GOOD
    return Document(
        title=f"isograd compare {report.reference} {report.other}",
        subtitle=_effort(report),
        outcome=Outcome(report.verdict.value, sentence(report), tone),
        sections=list(_of_files(report)),
        notes=_notes(report),
    )


def _of_files(report: FilesReport) -> Iterator[Section]:
    if not report.is_consecutive:
        yield from _first(report)
    yield from _ranks(report)
    yield from _worst(report)
    yield from _unchanged(report)
    yield from _open(report)
    for within in report.between:
        title = f"Between the ranks of {within.reference}"
        yield Group(title, [*_ranks(within), Lines("", [sentence(within)])])
    yield from charts(report)


def sentence(report: FilesReport) -> str:
    """The verdict in one sentence with its counts."""
    total = len(report.comparisons)
    identical = report.count(TensorVerdict.IDENTICAL)
    if report.is_consecutive:
        changed = report.count(TensorVerdict.CLOSE) + report.count(TensorVerdict.DIFFERS)
        said = f"{changed:,} of {total:,} tensors changed, {identical:,} did not"
    else:
        close = report.count(TensorVerdict.CLOSE)
        said = f"{identical:,} of {total:,} tensors are identical, {close:,} within tolerance"
    parts = [said]
    words = {
        TensorVerdict.DIFFERS: "differ",
        TensorVerdict.SHAPE: "have other shapes",
        TensorVerdict.MISSING: "have no partner",
        TensorVerdict.FAILED: "could not be compared",
    }
    for verdict, word in words.items():
        number = report.count(verdict)
        if number and not (report.is_consecutive and verdict is TensorVerdict.DIFFERS):
            parts.append(f"{number:,} {word}")
    if report.is_consecutive:
        return f"{'Look at this' if report.needs_action else 'Healthy'}: {', '.join(parts)}."
    heads = {
        Verdict.EQUIVALENT: "The two sets agree",
        Verdict.DIVERGENT: "The two sets differ",
        Verdict.INCOMPLETE: "Not all could be compared",
    }
    return f"{heads[report.verdict]}: {', '.join(parts)}."


def _effort(report: FilesReport) -> str:
    rate = report.size_bytes / report.elapsed_s / 1e9 if report.elapsed_s > 0 else 0.0
    resumed = f", {report.resumed:,} pairs from the journal" if report.resumed else ""
    return (
        f"{len(report.comparisons):,} tensors, {report.size_bytes / 1e6:,.1f} MB in "
        f"{report.elapsed_s:.2f} s ({rate:.2f} GB/s){resumed}"
    )


def _notes(report: FilesReport) -> list[str]:
    found = list(report.notes)
    if report.alone_by_convention:
        found.append(
            f"{len(report.alone_by_convention):,} tensors exist in one framework only, by "
            f"convention: {', '.join(report.alone_by_convention[:3])} …"
        )
    if report.set_aside:
        found.append(
            f"{len(report.set_aside):,} tensors beside the network, such as {report.set_aside[0]}, "
            "are set aside; compare them with --with-states"
        )
    return found


def _first(report: FilesReport) -> Iterator[FindingList]:
    """Where the difference begins."""
    first = report.first_differing
    if first is None:
        return
    order = "execution order" if report.knows_order else "the order of the first file"
    evidence = list(_explanation(first))
    last = report.last_agreeing
    if last is not None:
        evidence.append(f"last that agrees before it: {pair_name(last)}")
        if report.knows_order:
            evidence.append("what runs between these two is where to look")
    finding = Finding(
        f"compare.{first.verdict.value}",
        Level.ERROR,
        "the first tensor that differs",
        location=Location(module=pair_name(first)),
        evidence=tuple(evidence),
    )
    yield FindingList(f"First that differs in {order}: {pair_name(first)}", [finding])


def _explanation(found: TensorComparison) -> Iterator[str]:
    """What is different in one pair, in lines."""
    difference = found.difference
    if found.detail:
        yield found.detail
    if difference is None:
        return
    total = difference.total
    share = 100.0 * difference.outside / total if total else 0.0
    yield (
        f"{difference.outside:,} / {total:,} elements ({share:.1f} %) beyond "
        f"{difference.relative:.3g} × |first| + {difference.absolute:.3g}"
    )
    if difference.greatest_absolute_index is not None:
        yield (
            f"greatest difference {difference.greatest_absolute:.3g} at "
            f"{_place(difference.greatest_absolute_index)}: {difference.reference_there} and "
            f"{difference.other_there}"
        )
    allowed = "" if found.allowed is None else f", allowed {found.allowed:.3g}"
    yield f"relative error {difference.relative_error:.3g}{allowed}"


def _worst(report: FilesReport) -> Iterator[Table]:
    """Pairs that are not identical, the worst first."""
    rest = [
        found
        for found in report.comparisons
        if found.verdict not in (TensorVerdict.IDENTICAL, TensorVerdict.MISSING)
    ]
    if not rest:
        return
    rest.sort(key=lambda found: found.severity, reverse=True)
    columns = (
        Column("tensor", is_code=True),
        Column("verdict"),
        Column("update ratio" if report.is_consecutive else "rel. error", "", True, ".3g"),
        Column("max abs", is_number=True, format=".3g"),
        Column("at", is_number=True, is_code=True),
        Column("cosine", is_number=True, format=".6f"),
        Column("outside", is_number=True),
        Column("ulps 50/99/100 %", is_number=True),
        Column("note", is_only_on_page=True),
    )
    title = "What changed" if report.is_consecutive else "What is not identical"
    yield Table(f"{title}, the worst first", columns, Lazy(rest, _row))


def _row(found: TensorComparison) -> tuple[Cell, ...]:
    difference = found.difference
    numbers: tuple[Cell, ...] = (None,) * 6
    if difference is not None:
        numbers = (
            difference.relative_error,
            difference.greatest_absolute,
            _place(difference.greatest_absolute_index),
            difference.cosine,
            difference.outside,
            _ulps(difference),
        )
    verdict = Styled(found.verdict.value, _TONES[found.verdict])
    return (pair_name(found), verdict, *numbers, found.detail)


def _place(index: tuple[int, ...] | None) -> str:
    """An index as Python writes it."""
    return "" if index is None else f"[{', '.join(map(str, index))}]"


def _ulps(difference: TensorDifference) -> str:
    """Ulps of half, of 99 % and of all elements; nothing where there are none."""
    if difference.ulps is None:
        return ""
    half, _, most, _, every = difference.ulps
    return " / ".join(
        f"{count:,}" if count < 10**6 else f"{count:.1e}" for count in (half, most, every)
    )


def _ranks(report: FilesReport) -> Iterator[Table]:
    ranks = report.ranks
    if len(ranks) < 2:
        return
    names = ("rank", "identical", "within", "differ", "open")
    columns = [Column(name, is_number=True) for name in names]
    columns.append(Column("worst error", is_number=True, format=".3g"))
    columns.append(Column("first that differs", is_code=True))
    rows: list[tuple[Cell, ...]] = [
        (
            rank.rank,
            rank.identical,
            rank.close,
            rank.differing,
            rank.open,
            rank.worst,
            Styled(rank.first_differing or "", Tone.BAD),
        )
        for rank in ranks
    ]
    yield Table("Ranks", columns, rows)


def _unchanged(report: FilesReport) -> Iterator[Lines]:
    """Between two states of one training: what did not move."""
    if not report.is_consecutive or not report.unchanged:
        return
    why = {True: " (trains by its file)", False: " (does not train)", None: ""}
    lines = [f"{pair_name(found)}{why[found.trainable]}" for found in report.unchanged]
    yield Lines(f"{len(lines):,} did not change: frozen or dead", lines)


def _open(report: FilesReport) -> Iterator[FindingList]:
    """What could not be compared."""
    for verdict, title in (
        (TensorVerdict.MISSING, "No partner"),
        (TensorVerdict.FAILED, "Could not be compared"),
    ):
        rows = [found for found in report.comparisons if found.verdict is verdict]
        if rows:
            yield FindingList(title, Lazy(rows, _open_finding))


def _open_finding(found: TensorComparison) -> Finding:
    code = f"compare.{found.verdict.value}"
    return Finding(code, Level.WARNING, found.detail, location=Location(module=found.name))

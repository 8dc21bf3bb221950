"""A comparison of two sets of tensors as a document: where it begins, then the worst."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from isograd.compare.curves_document import answer_document, curves_document
from isograd.compare.files.curve_model import CurvesReport
from isograd.compare.files.differences import TensorDifference
from isograd.compare.files.model import FilesReport, TensorComparison, TensorVerdict
from isograd.compare.parquet import Answer
from isograd.findings import Finding, Level, Location
from isograd.model import Verdict
from isograd.report.document import (
    Axis,
    Cell,
    Chart,
    ChartKind,
    Column,
    Document,
    FindingList,
    Group,
    HeatMap,
    Lazy,
    Lines,
    Medium,
    Mosaic,
    Outcome,
    Section,
    Series,
    Styled,
    Table,
    Tone,
)
from isograd.report.levels import LEVELS

#: Rows of the heat map, and histograms of single tensors.
MOST_LAYERS = 400
MOST_HISTOGRAMS = 40
#: Relative error of the first level of colour above "identical"; each further level is ten times.
_FIRST_LEVEL = -7
_MEASURES = (
    "relative error", "greatest ÷ size", "1 − cosine", "unequal", "outside", "ulps of 99 %",
)  # fmt: skip
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
    order = "execution order" if report.knows_order else "the order of the first file"
    cells = Lazy(report.comparisons, lambda found: (_hover(found), _level(found)))
    yield Mosaic(
        f"All tensors in {order}",
        cells,
        medium=Medium.PAGE,
        note="Green is identical; the redder, the greater the relative error (10⁻⁷ to 1 and more); "
        "grey has no partner, another shape, or could not be read.",
    )
    yield from _heat_map(report, order)
    yield from _histograms(report)


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


def _pair_name(found: TensorComparison) -> str:
    """Both names where they differ."""
    if found.reference and found.other and found.reference != found.other:
        return f"{found.reference} ↔ {found.other}"
    return found.name


def _first(report: FilesReport) -> Iterator[FindingList]:
    """Where the difference begins."""
    first = report.first_differing
    if first is None:
        return
    order = "execution order" if report.knows_order else "the order of the first file"
    evidence = list(_explanation(first))
    last = report.last_agreeing
    if last is not None:
        evidence.append(f"last that agrees before it: {_pair_name(last)}")
        if report.knows_order:
            evidence.append("what runs between these two is where to look")
    finding = Finding(
        f"compare.{first.verdict.value}",
        Level.ERROR,
        "the first tensor that differs",
        location=Location(module=_pair_name(first)),
        evidence=tuple(evidence),
    )
    yield FindingList(f"First that differs in {order}: {_pair_name(first)}", [finding])


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
    return (_pair_name(found), verdict, *numbers, found.detail)


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
    lines = [f"{_pair_name(found)}{why[found.trainable]}" for found in report.unchanged]
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


def _hover(found: TensorComparison) -> str:
    error = "" if found.difference is None else f" {found.difference.relative_error:.3g}"
    return f"{_pair_name(found)}: {found.verdict.value}{error}"


def _level(found: TensorComparison) -> int | None:
    """The colour of a tensor: 0 identical, 1 to 8 by its relative error, None without one."""
    difference = found.difference
    if difference is None:
        return None
    if difference.is_identical:
        return 0
    if difference.pattern_mismatches:
        return LEVELS
    return _decade(difference.relative_error, _FIRST_LEVEL) if difference.relative_error else 1


def _decade(value: float | None, first: int) -> int | None:
    """The level of a value: one for each power of ten from `first` on."""
    if value is None:
        return None
    if value <= 0.0:
        return 0
    if not math.isfinite(value):
        return LEVELS
    return min(LEVELS, max(1, math.floor(math.log10(value)) - first + 1))


def _heat_map(report: FilesReport, order: str) -> Iterator[HeatMap]:
    shown = [found for found in report.comparisons if found.difference is not None]
    if not shown:
        return
    values = [_measures(found) for found in shown[:MOST_LAYERS]]
    firsts = (_FIRST_LEVEL,) * (len(_MEASURES) - 1) + (0,)
    levels = [[_decade(one, first) for one, first in zip(row, firsts)] for row in values]  # noqa: B905
    yield HeatMap(
        f"Measures by layer, in {order}",
        [_pair_name(found) for found in shown[:MOST_LAYERS]],
        _MEASURES,
        values,
        levels=levels,
        medium=Medium.PAGE,
        more=max(0, len(shown) - MOST_LAYERS),
        note="Colours step by powers of ten. Size is the root mean square of the first set's "
        "elements; unequal and outside are shares of all elements.",
    )


def _measures(found: TensorComparison) -> tuple[float | None, ...]:
    """One row of the heat map: a number for each measure."""
    difference = found.difference
    assert difference is not None
    size = difference.reference_norm / math.sqrt(difference.finite) if difference.finite else 0.0
    typical = difference.greatest_absolute / size if size else math.inf
    total = max(1, difference.total)
    return (
        difference.relative_error,
        0.0 if difference.is_identical else typical,
        None if difference.cosine is None else 1.0 - difference.cosine,
        difference.unequal / total,
        difference.outside / total,
        None if difference.ulps is None else float(difference.ulps[2]),
    )


def _histograms(report: FilesReport) -> Iterator[Group]:
    counted = [
        (_pair_name(found), found.difference.histogram)
        for found in report.comparisons
        if found.difference is not None and found.difference.histogram
    ]
    if not counted:
        return
    sums: dict[int, int] = {}
    for _, histogram in counted:
        for power, count in histogram:
            sums[power] = sums.get(power, 0) + count
    charts = [_bars("all tensors that are not identical", sorted(sums.items()))]
    charts += [_bars(name, histogram) for name, histogram in counted[:MOST_HISTOGRAMS]]
    yield Group(
        "Absolute differences by powers of two",
        charts,
        medium=Medium.PAGE,
        more=max(0, len(counted) - MOST_HISTOGRAMS),
        note="A bar counts the elements that differ by 2ⁿ to 2ⁿ⁺¹; equal elements are left out.",
    )


def _bars(name: str, histogram: Sequence[tuple[int, int]]) -> Chart:
    powers = [float(power) for power, _ in histogram]
    counts = [float(count) for _, count in histogram]
    return Chart(
        name,
        ChartKind.BARS,
        Axis("difference", "powers of 2"),
        Axis("elements", is_log=True),
        [Series("elements", powers, counts)],
        is_small=True,
    )

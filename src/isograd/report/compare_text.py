"""A comparison of two sets of tensors as text: the worst first, then where it begins."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from isograd.compare.files.differences import TensorDifference
from isograd.compare.files.model import FilesReport, TensorComparison, TensorVerdict
from isograd.model import Verdict
from isograd.report.text import VERDICT_STYLES, make_console, write_line, written
from isograd.report.wording import printable

#: Rows of the table, and names in a list; --json and --csv have them all.
MOST_ROWS = 20
MOST_NAMES = 10

_STYLES = {
    TensorVerdict.IDENTICAL: "green",
    TensorVerdict.CLOSE: "green",
    TensorVerdict.DIFFERS: "bold red",
    TensorVerdict.SHAPE: "bold red",
    TensorVerdict.FAILED: "bold yellow",
    TensorVerdict.MISSING: "bold yellow",
}


def render_text(report: FilesReport, *, width: int = 100, colour: bool = False) -> str:
    """The report as lines of text; tables fit the width, in characters."""
    stream = StringIO()
    console = make_console(stream, width, colour)
    write_line(console, f"first   {printable(report.reference)}", "bold")
    write_line(console, f"second  {printable(report.other)}", "bold")
    write_line(console, effort(report), "dim")
    if report.is_consecutive:
        _steps(console, report)
    else:
        _worst(console, report)
        _first(console, report)
    _ranks(console, report)
    _open(console, report)
    for within in report.between:
        write_line(console, f"Between the ranks of {printable(within.reference)}", "bold")
        _ranks(console, within)
        write_line(console, f"  {sentence(within)}")
    for note in notes(report):
        write_line(console, f"Note: {printable(note)}", "dim")
    style = VERDICT_STYLES[report.verdict] if not report.is_consecutive else "bold"
    write_line(console, sentence(report), style)
    return written(stream)


def render_line(report: FilesReport) -> str:
    """Only the last line of the report."""
    return sentence(report) + "\n"


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


def worst(report: FilesReport) -> list[TensorComparison]:
    """Pairs that are not identical, the worst first."""
    rest = [
        found
        for found in report.comparisons
        if found.verdict not in (TensorVerdict.IDENTICAL, TensorVerdict.MISSING)
    ]
    return sorted(rest, key=lambda found: found.severity, reverse=True)


def number(value: float | None) -> str:
    """A number in few characters; nothing for None."""
    return "" if value is None else f"{value:.3g}"


def place(index: tuple[int, ...] | None) -> str:
    """An index as Python writes it."""
    return "" if index is None else f"[{', '.join(map(str, index))}]"


def pair_name(found: TensorComparison) -> str:
    """Both names where they differ."""
    if found.reference and found.other and found.reference != found.other:
        return f"{found.reference} ↔ {found.other}"
    return found.name


def explanation(found: TensorComparison) -> list[str]:
    """What is different in one pair, in lines."""
    difference = found.difference
    lines = [found.detail] if found.detail else []
    if difference is None:
        return lines
    total = difference.total
    share = 100.0 * difference.outside / total if total else 0.0
    lines.append(
        f"{difference.outside:,} / {total:,} elements ({share:.1f} %) beyond "
        f"{difference.relative:.3g} × |first| + {difference.absolute:.3g}"
    )
    if difference.greatest_absolute_index is not None:
        lines.append(
            f"greatest difference {number(difference.greatest_absolute)} at "
            f"{place(difference.greatest_absolute_index)}: {difference.reference_there} and "
            f"{difference.other_there}"
        )
    allowed = "" if found.allowed is None else f", allowed {number(found.allowed)}"
    lines.append(f"relative error {number(difference.relative_error)}{allowed}")
    return lines


def effort(report: FilesReport) -> str:
    """How much was compared, how fast."""
    rate = report.size_bytes / report.elapsed_s / 1e9 if report.elapsed_s > 0 else 0.0
    resumed = f", {report.resumed:,} pairs from the journal" if report.resumed else ""
    return (
        f"{len(report.comparisons):,} tensors, {report.size_bytes / 1e6:,.1f} MB in "
        f"{report.elapsed_s:.2f} s ({rate:.2f} GB/s){resumed}"
    )


def _worst(console: Console, report: FilesReport) -> None:
    rows = worst(report)
    if rows:
        _table(console, rows[:MOST_ROWS])
        _more(console, len(rows) - MOST_ROWS)


def _table(console: Console, rows: Sequence[TensorComparison], error: str = "rel. error") -> None:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    table.add_column("tensor", overflow="fold", ratio=1)
    table.add_column("verdict", no_wrap=True)
    for name in (error, "max abs", "at", "cosine", "outside", "ulps 50/99/100 %"):
        table.add_column(name, justify="right", no_wrap=True)
    for found in rows:
        difference = found.difference
        cells = [""] * 6
        if difference is not None:
            cosine = difference.cosine
            cells = [
                number(difference.relative_error),
                number(difference.greatest_absolute),
                place(difference.greatest_absolute_index),
                "" if cosine is None else f"{cosine:.6f}",
                f"{difference.outside:,}",
                ulps(difference),
            ]
        shown = Text(printable(pair_name(found)))
        table.add_row(shown, Text(found.verdict.value, style=_STYLES[found.verdict]), *cells)
    console.print(table)


def _first(console: Console, report: FilesReport) -> None:
    first = report.first_differing
    if first is None:
        return
    order = "execution order" if report.knows_order else "the order of the first file"
    write_line(console, f"First that differs in {order}: {printable(pair_name(first))}", "bold red")
    for line in explanation(first):
        write_line(console, f"  {printable(line)}")
    last = report.last_agreeing
    if last is not None:
        write_line(console, f"  last that agrees before it: {printable(pair_name(last))}")
        if report.knows_order:
            write_line(console, "  what runs between these two is where to look")
    console.print()


def _steps(console: Console, report: FilesReport) -> None:
    rows = worst(report)
    if rows:
        write_line(console, "What changed, the most first", "bold")
        _table(console, rows[:MOST_ROWS], "update ratio")
        _more(console, len(rows) - MOST_ROWS)
    unchanged = report.unchanged
    if unchanged:
        write_line(console, f"{len(unchanged):,} did not change: frozen or dead", "bold yellow")
        for found in unchanged[:MOST_NAMES]:
            why = {True: "trains by its file", False: "does not train", None: ""}[found.trainable]
            tail = f" ({why})" if why else ""
            write_line(console, f"  {printable(pair_name(found))}{tail}")
        _more(console, len(unchanged) - MOST_NAMES)
        console.print()


def _open(console: Console, report: FilesReport) -> None:
    for verdict, title in (
        (TensorVerdict.MISSING, "No partner"),
        (TensorVerdict.FAILED, "Could not be compared"),
    ):
        rows = [found for found in report.comparisons if found.verdict is verdict]
        if not rows:
            continue
        write_line(console, title, "bold yellow")
        for found in rows[:MOST_NAMES]:
            write_line(console, f"  {printable(found.name)}: {printable(found.detail)}")
        _more(console, len(rows) - MOST_NAMES)
        console.print()


def notes(report: FilesReport) -> list[str]:
    found = list(report.notes)
    if report.alone_by_convention:
        found.append(
            f"{len(report.alone_by_convention):,} tensors exist in one framework only, by "
            f"convention: {', '.join(report.alone_by_convention[:3])} …"
        )
    return found


def ulps(difference: TensorDifference) -> str:
    """Ulps of half, of 99 % and of all elements; nothing where there are none."""
    if difference.ulps is None:
        return ""
    half, _, most, _, every = difference.ulps
    return " / ".join(
        f"{count:,}" if count < 10**6 else f"{count:.1e}" for count in (half, most, every)
    )


def _ranks(console: Console, report: FilesReport) -> None:
    ranks = report.ranks
    if len(ranks) < 2:
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for name in ("rank", "identical", "within", "differ", "open", "worst error"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("first that differs", overflow="fold", ratio=1)
    for rank in ranks[:MOST_ROWS]:
        counts = (rank.rank, rank.identical, rank.close, rank.differing, rank.open)
        first = Text(printable(rank.first_differing or ""), style="red")
        table.add_row(*(f"{count:,}" for count in counts), number(rank.worst), first)
    console.print(table)
    _more(console, len(ranks) - MOST_ROWS)


def _more(console: Console, rest: int) -> None:
    if rest > 0:
        write_line(console, f"  and {rest:,} more in --json and --csv", "dim")

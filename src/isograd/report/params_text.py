"""The inventory of `isograd params` as text: what needs a person first."""

from __future__ import annotations

from io import StringIO

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from isograd.compare.pairing import ParameterPairing
from isograd.compare.pairing.transforms import Identity
from isograd.report.text import make_console, write_line, written
from isograd.report.weights_text import transform_text
from isograd.report.wording import count_text, printable
from isograd.weights.correspondence import ParamsReport
from isograd.weights.inventory import Inventory

#: Lines of each list; the JSON report has them all.
MOST_LINES = 20


def render_text(report: ParamsReport, *, width: int = 100, colour: bool = False) -> str:
    """The report as lines of text."""
    stream = StringIO()
    console = make_console(stream, width, colour)
    _lines(console, "Found", [f"{i.code}  {i.name}: {i.message}" for i in report.issues])
    for inventory in (report.first, report.second):
        if inventory is not None:
            _inventory(console, inventory, has_rows=report.second is None)
    if report.pairing is not None:
        for title, lines in pairing_sections(report.pairing):
            _lines(console, title, lines)
    _lines(console, "Changed most", changes_text(report))
    write_line(console, sentence(report), "bold yellow" if report.needs_action else "bold green")
    return written(stream)


def changes_text(report: ParamsReport) -> list[str]:
    """How far each tensor moved between the two files, the farthest first."""
    moved = [change for change in report.changes if not change.is_unchanged]
    return [
        f"{change.name}: {change.ratio:.3g} of its mean size"
        for change in sorted(moved, key=lambda change: -change.ratio)
    ]


def sentence(report: ParamsReport) -> str:
    """The last line: what there is, and whether it needs attention."""
    inventory = report.first
    text = f"{count_text(len(inventory.rows), 'tensor')}, {inventory.elements:,} numbers"
    if report.pairing is not None:
        left = len(report.pairing.unpaired_reference) + len(report.pairing.unpaired_port)
        text = f"{count_text(len(report.pairing.pairs), 'pair')}, {left:,} without a partner"
    return f"{text}: " + (
        "see above what needs your attention." if report.needs_action else "sound."
    )


def _inventory(console: Console, inventory: Inventory, *, has_rows: bool) -> None:
    write_line(console, f"{printable(inventory.path)} ({inventory.kind})", "bold")
    checked = ", checksums fit" if inventory.is_verified else ""
    write_line(
        console,
        f"  {count_text(len(inventory.rows), 'tensor')}, {inventory.elements:,} "
        f"numbers, {inventory.size_bytes:,} bytes{checked}",
    )
    write_line(console, f"  {training_text(inventory)}")
    dtypes = ", ".join(f"{share.name} {share.tensors:,}" for share in inventory.by_dtype)
    write_line(console, f"  {dtypes}")
    if has_rows:
        console.print(_rows(inventory))
        _more(console, len(inventory.rows) - MOST_LINES)
    total = max(1, inventory.size_bytes)
    shares = [
        f"{100 * share.size_bytes / total:5.1f} %  {share.name} "
        f"({count_text(share.tensors, 'tensor')})"
        for share in inventory.by_module
    ]
    _lines(console, "Share by module", shares)
    beside = [
        f"{share.name}: {count_text(share.tensors, 'tensor')}, {share.size_bytes:,} bytes"
        for share in inventory.by_part
    ]
    _lines(console, "Beside the network", beside)
    ties = [f"{r.info.name} is {r.info.tied_to}" for r in inventory.rows if r.info.tied_to]
    _lines(console, "Tied", ties)
    skipped = [f"{name}: {reason}" for name, reason in inventory.skipped.items()]
    _lines(console, "Skipped", skipped)


def training_text(inventory: Inventory) -> str:
    """How many numbers train, as far as that is known."""
    unknown = inventory.elements - inventory.trainable - inventory.frozen
    parts = [
        f"{inventory.trainable:,} numbers train" if inventory.trainable else "",
        f"{inventory.frozen:,} do not train (statistics, counters, states)"
        if inventory.frozen
        else "",
        f"of {unknown:,} the file does not say whether they train" if unknown else "",
    ]
    return "; ".join(part for part in parts if part) or "no numbers"


def _rows(inventory: Inventory) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for title in ("name", "dtype", "shape"):
        table.add_column(title)
    for title in ("min", "max", "rms"):
        table.add_column(title, justify="right")
    for row in inventory.rows[:MOST_LINES]:
        health = row.health
        numbers = (
            ("", "", "")
            if health is None
            else (f"{health.minimum:.3g}", f"{health.maximum:.3g}", f"{health.rms:.3g}")
        )
        shape = " × ".join(str(extent) for extent in row.info.shape) or "1 number"
        cells = (printable(row.info.name), row.info.dtype, shape, *numbers)
        table.add_row(*(Text(cell) for cell in cells))
    return table


def pairing_sections(pairing: ParameterPairing) -> list[tuple[str, list[str]]]:
    """What of a correspondence a person should see, each list with its title."""
    changed = [
        f"{', '.join(p.reference)} → {', '.join(p.port)}"
        + ("" if isinstance(p.transform, Identity) else f", {transform_text(p.transform)}")
        for p in pairing.pairs
        if p.reference != p.port or not isinstance(p.transform, Identity)
    ]
    doubts = [
        f"{', '.join(p.reference)} → {', '.join(p.port)} (or {', '.join(p.ambiguous_with)})"
        for group in pairing.ambiguous
        for p in group
    ]
    buffers = (*pairing.unpaired_buffers_reference, *pairing.unpaired_buffers_port)
    return [
        ("Called or stored otherwise", changed),
        ("Only in the first", list(pairing.unpaired_reference)),
        ("Only in the second", list(pairing.unpaired_port)),
        ("Shapes contradict", [f"{here} ≠ {there}" for here, there in pairing.shape_conflicts]),
        ("Ambiguous", doubts),
        ("Alone by convention", [*pairing.alone_by_convention, *buffers]),
    ]


def _lines(console: Console, title: str, lines: list[str]) -> None:
    if not lines:
        return
    write_line(console, title, "bold")
    for line in lines[:MOST_LINES]:
        write_line(console, f"  {printable(line)}")
    _more(console, len(lines) - MOST_LINES)


def _more(console: Console, number: int) -> None:
    if number > 0:
        write_line(console, f"  and {number:,} more in --json", "dim")

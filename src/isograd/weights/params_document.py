"""The inventory of `isograd params` as a document: what needs a person first."""

from __future__ import annotations

import math
from collections.abc import Iterator

from isograd.findings import Finding, Level, Location
from isograd.pairing import ParameterPairing
from isograd.pairing.transforms import Identity
from isograd.report.document import (
    Cell,
    Column,
    Document,
    FindingList,
    Group,
    Lazy,
    Lines,
    Medium,
    Outcome,
    Section,
    Table,
    Tone,
)
from isograd.report.words import count_text
from isograd.weights.correspondence import ParamsReport
from isograd.weights.document import named_lines, transform_text
from isograd.weights.health import Issue
from isograd.weights.inventory import Inventory, Row, Share

_COLUMNS = (
    Column("name", is_code=True),
    Column("dtype"),
    Column("shape"),
    Column("trains"),
    Column("min", is_number=True, format=".3g"),
    Column("max", is_number=True, format=".3g"),
    Column("rms", is_number=True, format=".3g"),
    Column("zeros", is_number=True, format=".1%"),
    Column("part"),
)


def document(report: ParamsReport) -> Document:
    """One inventory, or two with what of their correspondence a person should see."""
    inventories = [found for found in (report.first, report.second) if found is not None]
    sections: list[Section] = []
    if report.issues:
        sections.append(FindingList("Found", Lazy(report.issues, _finding)))
    if report.pairing is not None:
        sections += named_lines(_pairing(report.pairing))
    sections += named_lines([("Changed most", _changes(report))])
    sections += [_inventory(found, is_alone=report.second is None) for found in inventories]
    tone = Tone.WARNING if report.needs_action else Tone.GOOD
    return Document(
        title=" ".join(["isograd params", *(found.path for found in inventories)]),
        outcome=Outcome("found" if report.needs_action else "sound", sentence(report), tone),
        sections=sections,
    )


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


def _finding(issue: Issue) -> Finding:
    level = Level.WARNING if issue.needs_action else Level.NOTE
    return Finding(issue.code, level, issue.message, location=Location(module=issue.name))


def _changes(report: ParamsReport) -> list[str]:
    """How far each tensor moved between the two files, the farthest first."""
    moved = [change for change in report.changes if not change.is_unchanged]
    return [
        f"{change.name}: {change.ratio:.3g} of its mean size"
        for change in sorted(moved, key=lambda change: -change.ratio)
    ]


def _inventory(inventory: Inventory, *, is_alone: bool) -> Group:
    """One file; of two, the text leaves the tensors' table out."""
    checked = ", checksums fit" if inventory.is_verified else ""
    totals = (
        f"{count_text(len(inventory.rows), 'tensor')}, {inventory.elements:,} "
        f"numbers, {inventory.size_bytes:,} bytes{checked}"
    )
    dtypes = ", ".join(f"{share.name} {share.tensors:,}" for share in inventory.by_dtype)
    network = [row for row in inventory.rows if not row.info.part]
    beside = [row for row in inventory.rows if row.info.part]
    ties = [f"{row.info.name} is {row.info.tied_to}" for row in network if row.info.tied_to]
    skipped = [f"{name}: {reason}" for name, reason in inventory.skipped.items()]
    medium = Medium.BOTH if is_alone else Medium.PAGE
    tables: list[Section] = [Table("Tensors", _COLUMNS, Lazy(network, _row), medium=medium)]
    if beside:
        rows = Lazy(beside, _row)
        tables.append(Table("Tensors beside the network", _COLUMNS, rows, medium=Medium.PAGE))
    return Group(
        f"{inventory.path} ({inventory.kind})",
        [
            Lines("", [totals, training_text(inventory), dtypes]),
            *_shares("Share by module", inventory.by_module),
            *_shares("Beside the network", inventory.by_part),
            *tables,
            *named_lines([("Tied", ties), ("Skipped", skipped)]),
        ],
    )


def _shares(title: str, shares: tuple[Share, ...]) -> Iterator[Table]:
    total = sum(share.size_bytes for share in shares) or 1
    if shares:
        columns = (
            Column("name", is_code=True),
            Column("tensors", is_number=True),
            Column("size", "bytes", is_number=True),
            Column("share", is_number=True, format=".1%", has_bar=True),
        )
        rows = [
            (share.name, share.tensors, share.size_bytes, share.size_bytes / total)
            for share in shares
        ]
        yield Table(title, columns, rows)


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


def _row(row: Row) -> tuple[Cell, ...]:
    info, health = row.info, row.health
    shape = " × ".join(str(extent) for extent in info.shape) or "1 number"
    numbers: tuple[Cell, ...] = (None, None, None, None)
    if health is not None:
        zeros = health.zero / max(1, math.prod(info.shape)) if health.zero else None
        numbers = (health.minimum, health.maximum, health.rms, zeros)
    part = f"is {info.tied_to}" if info.tied_to else info.part
    return (info.name, info.dtype, shape, row.trainable, *numbers, part)


def _pairing(pairing: ParameterPairing) -> list[tuple[str, list[str]]]:
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

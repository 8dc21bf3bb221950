"""The inventory of `isograd params` as one HTML page, safe for any name."""

from __future__ import annotations

import math

from isograd.report import params_text
from isograd.report.html import page_template
from isograd.report.wording import count_text
from isograd.version import __version__
from isograd.weights.correspondence import ParamsReport
from isograd.weights.inventory import Inventory, Row

#: Rows of each table; the JSON and the CSV report have them all.
MOST_ROWS = 1000


def render_html(report: ParamsReport) -> str:
    """The report as the text of an HTML page."""
    inventories = [found for found in (report.first, report.second) if found is not None]
    sections = [] if report.pairing is None else params_text.pairing_sections(report.pairing)
    return page_template("params.html.jinja").render(
        version=__version__,
        paths=[inventory.path for inventory in inventories],
        needs_action=report.needs_action,
        sentence=params_text.sentence(report),
        issues=report.issues[:MOST_ROWS],
        issues_left=max(0, len(report.issues) - MOST_ROWS),
        files=[_file(inventory) for inventory in inventories],
        pairing=[
            (title, lines[:MOST_ROWS], max(0, len(lines) - MOST_ROWS))
            for title, lines in sections
            if lines
        ],
        changes=params_text.changes_text(report)[:MOST_ROWS],
    )


def _file(inventory: Inventory) -> dict[str, object]:
    total = max(1, inventory.size_bytes)
    largest = max((share.size_bytes for share in inventory.by_module), default=1) or 1
    return {
        "path": inventory.path,
        "kind": inventory.kind,
        "totals": (
            f"{count_text(len(inventory.rows), 'tensor')}, {inventory.elements:,} numbers, "
            f"{inventory.size_bytes:,} bytes"
        ),
        "training": params_text.training_text(inventory),
        "verified": inventory.is_verified,
        "shares": [
            {
                "name": share.name,
                "tensors": share.tensors,
                "percent": f"{100 * share.size_bytes / total:.1f} %",
                "width": f"{100 * share.size_bytes / largest:.1f}",
            }
            for share in (*inventory.by_module[:MOST_ROWS], *inventory.by_part)
        ],
        "rows": [_row(row) for row in inventory.rows[:MOST_ROWS]],
        "rows_left": max(0, len(inventory.rows) - MOST_ROWS),
        "skipped": list(inventory.skipped.items())[:MOST_ROWS],
    }


def _row(row: Row) -> dict[str, str]:
    info, health = row.info, row.health
    trains = {True: "yes", False: "no", None: ""}[row.trainable]
    cells = {
        "name": info.name,
        "part": info.part,
        "dtype": info.dtype,
        "shape": " × ".join(str(extent) for extent in info.shape) or "1 number",
        "trains": trains,
        "tied": info.tied_to or "",
        **dict.fromkeys(("minimum", "maximum", "rms", "zero"), ""),
    }
    if health is not None:
        count = max(1, math.prod(info.shape))
        cells |= {
            "minimum": f"{health.minimum:.3g}",
            "maximum": f"{health.maximum:.3g}",
            "rms": f"{health.rms:.3g}",
            "zero": f"{100 * health.zero / count:.1f} %" if health.zero else "",
        }
    return cells

"""A document as one HTML page that stands alone: no network, safe against any name.

A content security policy forbids the page everything but its own style and, by its hash, the one
script that it carries: it sorts and filters tables and draws charts, with uPlot where there is one.
jinja2 escapes every value; hidden characters are written as escapes.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from isograd import __version__
from isograd.report import document as d
from isograd.report.chart_data import chart_json
from isograd.report.excerpt import excerpt, side_by_side
from isograd.report.finding_text import ANSWERS, finding_lines, head_text
from isograd.report.graph_data import graph_json
from isograd.report.levels import LEVELS
from isograd.report.tree import tree_rows
from isograd.report.words import cell_text, more_text, printable

#: Entries of a section on a page; the JSON report has them all.
MOST_ENTRIES = 1000
MOST_CELLS = 5000
#: By which attribute a section holds its entries, and how many a page shows.
_ENTRIES = {
    "findings": MOST_ENTRIES,
    "lines": MOST_ENTRIES,
    "rows": MOST_ENTRIES,
    "cells": MOST_CELLS,
    "pictures": MOST_ENTRIES,
}
#: Kinds of pictures that a page may carry.
_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_SOUNDS = ("audio/wav", "audio/mpeg")


@dataclass(frozen=True)
class Shell:
    """What surrounds a page that is one of many.

    links: labels with relative addresses.  script: runs beside the page's own.  root: the way from
    the page to the first one, such as "../".  search: where a search is sent; empty for none.
    """

    links: tuple[tuple[str, str], ...] = ()
    script: str = ""
    root: str = ""
    search: str = ""


def render_html(document: d.Document, shell: Shell | None = None) -> str:
    """The document as the text of an HTML page, alone or among others."""
    sections = [one for one in document.sections if one.medium is not d.Medium.TEXT]
    script, style = _asset("page.js"), ""
    if shell is not None and shell.script:
        script = f"{script}\n{shell.script}"
    if any(_has(section, d.Graph) for section in sections):
        script = f"{script}\n{_asset('graph.js')}"
    if any(_has(section, d.Chart) for section in sections):
        script = f"{_asset('vendor/uplot.min.js')}\n{script}"
        style = _asset("vendor/uplot.min.css")
    return (
        _environment()
        .get_template("page.html.jinja")
        .render(
            document=document,
            sections=sections,
            script=Markup(script),  # noqa: S704 (our own file, no value in it)
            style=Markup(style),  # noqa: S704 (the same)
            shell=shell,
            policy=Markup(_policy(script, is_served=bool(shell and shell.script))),  # noqa: S704 (a hash and our own words)
            version=__version__,
        )
    )


def _policy(script: str, *, is_served: bool) -> str:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
        "img-src data:; media-src data:; base-uri 'none'; "
        + ("connect-src 'self'; form-action 'self'" if is_served else "form-action 'none'")
    )


def _has(section: d.Section, kind: type[d.Section]) -> bool:
    if isinstance(section, d.Group):
        return any(_has(inner, kind) for inner in section.sections)
    return isinstance(section, kind)


@lru_cache(maxsize=4)
def _asset(name: str) -> str:
    """A script or a style that is written into the page as it is."""
    text = (resources.files("isograd.report") / "templates" / name).read_text(encoding="utf-8")
    assert "</script" not in text
    assert "</style" not in text
    return text.rstrip("\n")


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("isograd.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    environment.globals.update(
        ANSWERS=ANSWERS,
        LEVELS=LEVELS,
        MOST=MOST_ENTRIES,
        MOST_CELLS=MOST_CELLS,
        cell=_cell,
        chart_json=chart_json,
        excerpt=excerpt,
        finding_lines=finding_lines,
        graph_json=graph_json,
        head_text=head_text,
        draw=_draw,
        entries_left=entries_left,
        framed=_framed,
        greatest=_greatest,
        level_class=lambda level: f"level-{'none' if level is None else level}",
        more_text=more_text,
        href=_href,
        picture_uri=_picture_uri,
        plain_column=d.Column(""),
        sort_key=_sort_key,
        shown=lambda sections: [one for one in sections if one.medium is not d.Medium.TEXT],
        side_by_side=side_by_side,
        tree_rows=tree_rows,
    )
    return environment


def _draw(section: d.Section, root: str) -> str:
    """A section's content by the macro of its class's name."""
    macros = _environment().get_template("sections.html.jinja").module
    return Markup(getattr(macros, type(section).__name__)(section, root))  # noqa: S704 (autoescaped)


def _framed(section: d.Section, heading: str, root: str) -> str:
    macros = _environment().get_template("sections.html.jinja").module
    return Markup(macros.framed(section, heading, root))  # type: ignore[attr-defined]  # noqa: S704


def entries_left(section: d.Section) -> int:
    """How many entries of a section are on no page."""
    for name, most in _ENTRIES.items():
        entries = getattr(section, name, None)
        if entries is not None:
            return section.more + max(0, len(entries) - most)
    return section.more


def _greatest(rows: Sequence[Sequence[d.Cell]], position: int) -> float:
    values = (row[position] for row in rows)
    plain = (value.value if isinstance(value, d.Styled) else value for value in values)
    return max((float(one) for one in plain if isinstance(one, (int, float))), default=0.0)


def _finalize(value: object) -> object:
    """Every string of a page on one line and without hidden characters."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return printable(value)
    return value


def _cell(cell: d.Cell, column: d.Column, greatest: float) -> dict[str, object]:
    """What a page needs of a cell: text, what it sorts by, tone, link, level, the bar's width."""
    styled = cell if isinstance(cell, d.Styled) else None
    value = styled.value if styled is not None else cell
    assert not isinstance(value, d.Styled)
    number = value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
    has_bar = column.has_bar and number is not None and greatest > 0
    width = max(0.0, min(100.0, 100.0 * (number or 0) / greatest)) if has_bar else 0.0
    return {
        "text": cell_text(value, column.format),
        "sort": "" if number is None else _sort_key(number),
        "tone": styled.tone.value if styled is not None else "",
        "link": styled.link if styled is not None else "",
        "level": styled.level if styled is not None else None,
        "width": f"{width:.1f}" if has_bar else "",
    }


#: Addresses that a link may have: of this site, or of a section of the page.
_ADDRESS = re.compile(r"[\w./%?=&~+-]*(#[\w.-]*)?\Z")


def _href(link: str) -> str:
    """Where a link leads: another page of the site if it has a "/", else a section of this page."""
    is_page = "/" in link and not link.startswith("/") and _ADDRESS.match(link)
    return link if is_page else f"#{link}"


def _sort_key(value: float) -> str:
    """A number as JavaScript reads it; nothing for NaN, which has no place in an order."""
    text = str(value) if isinstance(value, int) else repr(float(value))
    return {"inf": "Infinity", "-inf": "-Infinity", "nan": ""}.get(text, text)


def _picture_uri(picture: d.Picture) -> str:
    """The picture as a data URI; nothing for a kind that a browser might run."""
    if picture.kind not in (*_IMAGES, *_SOUNDS):
        return ""
    return f"data:{picture.kind};base64,{base64.b64encode(picture.content).decode('ascii')}"

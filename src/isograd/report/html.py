"""A report as one HTML page that stands alone: no network, no script, safe against any name.

The page forbids itself everything by a content security policy; jinja2 escapes every value, and
control and direction characters are written as escapes.
"""

from __future__ import annotations

from functools import lru_cache

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from isograd.model import LossCurves, VerifyReport
from isograd.report import wording
from isograd.report.module_tree import LEVELS, module_rows
from isograd.version import __version__

#: Findings and steps of the loss curves that the page shows; the JSON report has them all.
MOST_FINDINGS = 500
MOST_STEPS = 60
#: Size of the drawing of the loss curves, in CSS pixels.
CHART_WIDTH = 640
CHART_HEIGHT = 180


def render_html(report: VerifyReport) -> str:
    """The report as the text of an HTML page."""
    findings = wording.further_findings(report)
    return page_template("verify.html.jinja").render(
        report=report,
        version=__version__,
        wording=wording,
        levels=LEVELS,
        sentence=wording.verdict_sentence(report),
        first=wording.first_finding(report),
        groups=wording.by_stage(findings[:MOST_FINDINGS]),
        more=max(0, len(findings) - MOST_FINDINGS),
        rows=module_rows(report),
        steps=[] if report.losses is None else wording.shown_steps(report.losses, MOST_STEPS),
        chart_size=(CHART_WIDTH, CHART_HEIGHT),
        chart=None if report.losses is None else chart_lines(report.losses),
    )


def chart_lines(losses: LossCurves) -> dict[str, str] | None:
    """The points of both loss curves for an SVG polyline; None where there is nothing to draw."""
    curves = {"reference": losses.reference, "port": losses.port}
    finite = [value for curve in curves.values() for value in curve if _is_finite(value)]
    last = max((len(curve) for curve in curves.values()), default=0) - 1
    if not finite or last < 1:
        return None
    low, high = min(finite), max(finite)
    span = (high - low) or 1.0
    return {
        name: " ".join(
            f"{step / last * CHART_WIDTH:.1f},{(high - value) / span * CHART_HEIGHT:.1f}"
            for step, value in enumerate(curve)
            if _is_finite(value)
        )
        for name, curve in curves.items()
    }


def _is_finite(value: float) -> bool:
    return abs(value) < float("inf")


@lru_cache(maxsize=4)
def page_template(name: str) -> Template:
    """A page of the folder `templates`; every value is escaped and printable."""
    environment = Environment(
        loader=PackageLoader("isograd.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_printable,
    )
    return environment.get_template(name)


def _printable(value: object) -> object:
    """Every string of a page on one line and without hidden characters."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return wording.printable(value)
    return value

"""The evidence of `isograd diagnose` as one HTML page that stands alone."""

from __future__ import annotations

from isograd.model import DiagnoseReport
from isograd.report import diagnose_wording, wording
from isograd.report.html import page_template
from isograd.version import __version__

#: What the page shows of each list; the JSON report has them all.
MOST_TENSORS = 200
MOST_CALLS = 50


def render_html(report: DiagnoseReport) -> str:
    """The report as the text of an HTML page."""
    calls = sorted(report.calls, key=lambda call: (not call.stages, not call.differs))
    return page_template("diagnose.html.jinja").render(
        report=report,
        version=__version__,
        wording=wording,
        diagnosed=diagnose_wording,
        levels=-1,
        calls=calls[:MOST_CALLS],
        more_calls=max(0, len(calls) - MOST_CALLS),
        most_tensors=MOST_TENSORS,
    )

"""A fixture for pytest: a test fails as soon as a port is no longer equivalent.

    def test_the_port(isograd_equivalent):
        isograd_equivalent("case.toml")

pytest finds it by the entry point `pytest11`; nothing of isograd is imported before it is used.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

if TYPE_CHECKING:
    from isograd.model import VerifyReport

#: Characters in a line of the report.
_WIDTH = 100


class Equivalent(Protocol):
    """What the fixture `isograd_equivalent` gives to a test."""

    def __call__(self, case: str | Path, *, seed: int = 0) -> VerifyReport:
        """Verify a case and fail the test unless it is equivalent; the report."""
        ...


@pytest.fixture
def isograd_equivalent(request: pytest.FixtureRequest) -> Equivalent:
    """Verify a case of isograd; the test fails with the report unless the port is equivalent.

    The case's path is relative to the folder of the test's file.
    """

    def check(case: str | Path, *, seed: int = 0) -> VerifyReport:
        import isograd
        from isograd.model import Verdict
        from isograd.report.render_text import render_text
        from isograd.verify.document import document

        try:
            report = isograd.verify(request.path.parent / case, seed=seed)
        except isograd.IsogradError as error:
            pytest.fail(f"isograd could not verify {case}: {error}", pytrace=False)
        if report.verdict is not Verdict.EQUIVALENT:
            pytest.fail(render_text(document(report), width=_WIDTH), pytrace=False)
        return report

    return check

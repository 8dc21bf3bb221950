"""A fixture for pytest: a test fails as soon as a port is no longer equivalent.

    def test_the_port(isograd_equivalent):
        isograd_equivalent("case.toml")

pytest finds it by the entry point `pytest11`; nothing of isograd is imported before it is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

if TYPE_CHECKING:
    from isograd.model import VerifyReport
    from isograd.worker.warm import WarmWorkers

#: Characters in a line of the report.
_WIDTH = 100


class Equivalent(Protocol):
    """What the fixture `isograd_equivalent` gives to a test."""

    def __call__(self, case: str | Path, *, seed: int = 0) -> VerifyReport:
        """Verify a case and fail the test unless it is equivalent; the report."""
        ...


@pytest.fixture(scope="session")
def isograd_workers() -> Iterator[WarmWorkers]:
    """Import the frameworks once for all tests of the session; each case has its own processes."""
    from isograd.worker.warm import WarmWorkers

    with WarmWorkers() as warm:
        yield warm


@pytest.fixture
def isograd_equivalent(request: pytest.FixtureRequest, isograd_workers: WarmWorkers) -> Equivalent:
    """Verify a case of isograd; the test fails with the report unless the port is equivalent.

    The case's path is relative to the folder of the test's file.
    """

    def check(case: str | Path, *, seed: int = 0) -> VerifyReport:
        import isograd
        from isograd.model import Verdict
        from isograd.progress import SilentProgress
        from isograd.report.render_text import render_text
        from isograd.verify.document import document
        from isograd.verify.ladder import verify_case

        path, listener = request.path.parent / case, SilentProgress()
        try:
            report = verify_case(
                path, seed=seed, keep=None, progress=listener, start=isograd_workers.worker
            )
        except isograd.IsogradError as error:
            pytest.fail(f"isograd could not verify {case}: {error}", pytrace=False)
        if report.verdict is not Verdict.EQUIVALENT:
            pytest.fail(render_text(document(report), width=_WIDTH), pytrace=False)
        return report

    return check

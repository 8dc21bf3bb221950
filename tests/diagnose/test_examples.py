"""Every example of every hypothesis is diagnosed on the real frameworks."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.diagnose.example_case import verify_example

from isograd.diagnose.hypothesis import Example, FunctionHypothesis
from isograd.diagnose.library import all_hypotheses

_ALL = [
    pytest.param(one, example, id=f"{name}-{number}")
    for name, one in all_hypotheses().items()
    for number, example in enumerate(one.examples)
]


@pytest.mark.parametrize(("one", "example"), _ALL)
def test_example_is_named(one: FunctionHypothesis, example: Example, tmp_path: Path) -> None:
    report = verify_example(tmp_path, example)

    causes = [f.cause for f in report.findings if f.diverges]
    found = {c.id: c for c in causes if c is not None}
    assert one.id in found, [f.message for f in report.findings]
    assert set(found) <= {one.id, *example.also}
    cause = found[one.id]
    if example.port_value is not None:
        expected = example.port_value
        wanted = pytest.approx(expected, rel=1e-3) if isinstance(expected, float) else expected
        assert cause.port == wanted
    if example.proved:
        assert cause.proved


@pytest.mark.parametrize("one", list(all_hypotheses().values()), ids=lambda h: h.name)
def test_every_hypothesis_has_an_example(one: FunctionHypothesis) -> None:
    assert one.examples

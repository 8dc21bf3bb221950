"""Each pass changes its examples, leaves its counterexamples, and is documented."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.convert.support import port_of

from isograd.convert import passes
from isograd.convert.passes import PASSES, Pass
from isograd.convert.passes.documentation import passes_page
from isograd.convert.passes.example import Example


def _answer(code: str) -> tuple[str, list[tuple[str, str]]]:
    """The port with what is said of it."""
    text, findings = port_of(code)
    return text, [(one.code, one.message) for one in findings]


def _cases(kind: str) -> list[Any]:
    return [
        pytest.param(item, example, id=f"{type(item).__name__}: {example.name}")
        for item in PASSES
        for example in getattr(item, kind)
    ]


def _without(item: Pass, code: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The answer of a converter that lacks this pass."""
    monkeypatch.setattr(passes, "PASSES", tuple(one for one in PASSES if one is not item))
    return _answer(code)


@pytest.mark.parametrize(("item", "example"), _cases("examples"))
def test_a_pass_changes_its_example(
    item: Pass, example: Example, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = _answer(example.source)
    assert "internal-error" not in [code for code, _ in answer[1]]
    assert answer != _without(item, example.source, monkeypatch)


@pytest.mark.parametrize(("item", "example"), _cases("counterexamples"))
def test_a_pass_leaves_its_counterexample(
    item: Pass, example: Example, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _answer(example.source) == _without(item, example.source, monkeypatch)


@pytest.mark.parametrize("item", PASSES, ids=lambda item: type(item).__name__)
def test_every_pass_has_both_kinds_of_examples(item: Pass) -> None:
    assert item.examples
    assert item.counterexamples


def test_the_page_of_passes_is_up_to_date() -> None:
    page = Path(__file__).parents[2] / "docs" / "convert-rules.md"
    assert page.read_text(encoding="utf-8") == passes_page()

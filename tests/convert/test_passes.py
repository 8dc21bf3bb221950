"""Each pass changes its examples, leaves its counterexamples, and is documented."""

from __future__ import annotations

from graphlib import CycleError
from pathlib import Path
from typing import Any

import pytest
from tests.convert.support import port_of

from isograd.convert import passes
from isograd.convert.passes import Pass, all_passes
from isograd.convert.passes.documentation import passes_page
from isograd.convert.passes.example import Example
from isograd.convert.passes.order import Stage, ordered


def _answer(code: str) -> tuple[str, list[tuple[str, str]]]:
    """The port with what is said of it."""
    text, findings = port_of(code)
    return text, [(one.code, one.message) for one in findings]


def _cases(kind: str) -> list[Any]:
    return [
        pytest.param(item, example, id=f"{type(item).__name__}: {example.name}")
        for item in all_passes()
        for example in getattr(item, kind)
    ]


def _without(item: Pass, code: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The answer of a converter that lacks this pass."""
    others = tuple(one for one in all_passes() if one is not item)
    monkeypatch.setattr(passes, "all_passes", lambda: others)
    answer = _answer(code)
    monkeypatch.undo()
    return answer


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


@pytest.mark.parametrize("item", all_passes(), ids=lambda item: type(item).__name__)
def test_every_pass_has_both_kinds_of_examples(item: Pass) -> None:
    assert item.examples
    assert item.counterexamples


def test_every_order_that_the_passes_allow_writes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = [example.source for item in all_passes() for example in item.examples]
    expected = list(map(_answer, whole))
    classes = [type(item) for item in all_passes()]
    others = tuple(one() for one in ordered(reversed(classes)))
    assert [type(item) for item in others] != classes
    monkeypatch.setattr(passes, "all_passes", lambda: others)
    assert list(map(_answer, whole)) == expected


class Early:
    stage = Stage.EARLY


class General:
    stage = Stage.GENERAL


class First:
    before = ("Last",)


class Last:
    after = ()


def test_passes_are_ordered_by_stage_and_by_what_they_declare() -> None:
    assert ordered([General, Last, First, Early]) == (Early, First, Last, General)


@pytest.mark.parametrize(
    ("attribute", "names", "error"),
    [
        pytest.param("after", ("Missing",), ValueError, id="a name of no pass"),
        pytest.param("after", ("General",), ValueError, id="a pass of another stage"),
        pytest.param("before", ("First",), CycleError, id="a circle"),
    ],
)
def test_a_wrong_declaration_is_refused(
    attribute: str, names: tuple[str, ...], error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Last, attribute, names, raising=False)
    with pytest.raises(error):
        ordered([General, Last, First, Early])


def test_the_page_of_passes_is_up_to_date() -> None:
    page = Path(__file__).parents[2] / "docs" / "convert-rules.md"
    assert page.read_text(encoding="utf-8") == passes_page()

"""Every construct of the table: found by its rule, not found where it is written otherwise."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from isograd.static_graph.check.run import fingerprint
from isograd.static_graph.documentation import page
from isograd.static_graph.find import find
from isograd.static_graph.rewrite import is_mechanical, rewritten
from isograd.static_graph.rule import WAYS, Construct
from isograd.static_graph.scope import FileScope
from isograd.static_graph.table import HEADER, answers, constructs, rules, verified

WITH_RULE = [pytest.param(c, id=c.code) for c in constructs() if c.rule]
ALL = [pytest.param(c, id=c.code) for c in constructs()]
DOCS = Path(__file__).resolve().parent.parent.parent / "docs" / "compiled.md"


def test_the_table_is_as_large_as_it_says() -> None:
    assert len(constructs()) >= 150
    assert {c.rule for c in constructs() if c.rule} == set(rules())


@pytest.mark.parametrize("construct", WITH_RULE)
def test_a_construct_is_found_and_its_rewrite_is_not(construct: Construct) -> None:
    assert {o.code for o in find(HEADER + construct.example)} == {construct.rule}
    assert [o.code for o in find(HEADER + construct.counterexample)] == []


@pytest.mark.parametrize("construct", [p for p in ALL if not p.values[0].rule])  # type: ignore[union-attr]
def test_what_compiles_as_python_has_no_finding(construct: Construct) -> None:
    assert find(HEADER + construct.example) == []


@pytest.mark.parametrize("construct", ALL)
def test_every_construct_was_executed_as_it_is(construct: Construct) -> None:
    row = verified()[construct.code]
    assert row["of"] == fingerprint(construct)
    assert set(answers(construct.code)) == set(WAYS)


@pytest.mark.parametrize("construct", WITH_RULE)
def test_the_rewrite_compiles_as_python(construct: Construct) -> None:
    found = answers(construct.code, "counterexample")
    assert (found["jit"].verdict, found["graph"].verdict) == ("same", "same")
    own = answers(construct.code)
    assert {own["jit"].verdict, own["graph"].verdict} & {
        "refused",
        "differs",
        "gradient-lost",
        "gradient-differs",
    }


@pytest.mark.parametrize(
    "construct",
    [p for p in WITH_RULE if is_mechanical(p.values[0].rule)],  # type: ignore[union-attr]
)
def test_a_mechanical_rewrite_is_python_without_the_construct(construct: Construct) -> None:
    tree = ast.parse(HEADER + construct.example)
    file = FileScope(tree)
    occurrence = next(o for o in find(HEADER + construct.example) if o.code == construct.rule)
    function = file.method(occurrence.cls, occurrence.function)
    assert function is not None
    o = occurrence
    new = rewritten(file, o.cls, function, o.code, o.line, o.column)
    if new is None:
        pytest.skip("this variant of the rule has no mechanical rewrite")
    ast.parse(ast.unparse(new))
    assert ast.unparse(new) != ast.unparse(function)


def test_the_page_is_what_the_table_says() -> None:
    assert DOCS.read_text(encoding="utf-8") == page()


@pytest.mark.parametrize(
    ("body", "is_reported"),
    [
        pytest.param("y = self.fc(x); z = y; y += x; return z + y", True, id="two names"),
        pytest.param(
            "y = x; x = self.fc(x); x += self.fc(y); return x", False, id="a residual: x is new"
        ),
        pytest.param("y = self.fc(x); z = y; y += z; return y", False, id="read before it changes"),
        pytest.param(
            "y = self.fc(x); z = y; y = y * 2 if self.training else y; y += x; return z + y",
            False,
            id="a new value under the name",
        ),
    ],
)
def test_a_name_that_has_another_value_is_no_alias(body: str, is_reported: bool) -> None:
    text = (
        "from mindspore import nn\nclass Net(nn.Cell):\n"
        "    def __init__(self):\n        super().__init__()\n        self.fc = nn.Dense(4, 4)\n"
        f"    def construct(self, x):\n        {body}\n"
    )
    assert ("augmented.alias" in {o.code for o in find(text)}) is is_reported

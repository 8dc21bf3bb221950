"""Long lines are broken without a change of meaning; classes take what differs as arguments."""

from __future__ import annotations

import ast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from isograd.convert.graph.classes import _columns
from isograd.convert.graph.code import Hole, Holes, fill, ordered
from isograd.convert.graph.layout import WIDTH, double_quoted, laid_out

NAMES = st.from_regex(r"[a-z]{1,12}", fullmatch=True).map(lambda name: f"{name}_")
ATOMS = st.one_of(NAMES, st.integers(0, 10**6).map(str), st.sampled_from(["'a, (b'", '"]"']))
EXPRESSIONS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.builds(
            lambda name, parts: f"{name}({', '.join(parts)})", NAMES, st.lists(inner, max_size=6)
        ),
        st.lists(inner, min_size=2, max_size=6).map(lambda parts: f"({', '.join(parts)})"),
        st.lists(inner, max_size=6).map(lambda parts: f"[{', '.join(parts)}]"),
        inner.map(lambda part: f"({part},)"),
    ),
    max_leaves=40,
)


@given(EXPRESSIONS, st.integers(0, 3))
@example(f"((a_({', '.join(['b'] * 40)}),),)", 1)
@example(f"((a_({', '.join(['b'] * 40)})),)", 0)
def test_broken_lines_mean_the_same(expression: str, depth: int) -> None:
    line = f"out = {expression}"
    lines = laid_out(line, 4 * depth)
    text = "\n".join(lines)
    wrapped = f"if 1:\n{text}" if depth else text
    found = ast.parse(wrapped).body[0]
    found = found.body[0] if isinstance(found, ast.If) else found
    assert ast.dump(found) == ast.dump(ast.parse(line).body[0])
    assert all(line.startswith(" " * 4 * depth) for line in lines)


def test_long_call_fits_the_width() -> None:
    line = f"x = function({', '.join(f'argument_{i}={i}' for i in range(40))})"
    assert max(map(len, laid_out(line, 8))) <= WIDTH


@pytest.mark.parametrize(
    ("rows", "fixed", "arguments"),
    [
        ([["1", "2"]], {0: "1", 1: "2"}, 0),
        ([["1", "2"], ["1", "3"]], {0: "1"}, 1),
        ([["4", "4", "2"], ["8", "8", "2"]], {2: "2"}, 1),  # one argument fills both
        ([["4", "4"], ["8", "6"]], {}, 2),
    ],
)
def test_columns_that_are_equal_are_one_argument(
    rows: list[list[str]], fixed: dict[int, str], arguments: int
) -> None:
    found = _columns([[Hole(source, "size") for source in row] for row in rows])
    assert found.fixed == fixed
    assert len(found.arguments) == arguments
    assert len(set(found.named({"size"}))) == arguments


def test_holes_are_numbered_by_appearance() -> None:
    holes = Holes()
    first, second = holes.add("3", "a"), holes.add("5", "b")
    texts, found = ordered([f"f({second}, {first})", second], holes)
    assert texts == ["f(_hole_0_, _hole_1_)", "_hole_2_"]
    assert [hole.source for hole in found] == ["5", "3", "5"]
    assert fill(texts[0], lambda number: found[number].source) == "f(5, 3)"


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("x = ['a', 'b c']\n", 'x = ["a", "b c"]\n'),
        ("x = 'say \"a\"'\n", "x = 'say \"a\"'\n"),
        ('"""it\'s one\'s own"""\nx = \'\'\n', '"""it\'s one\'s own"""\nx = ""\n'),
        ("x = '\\\\'\n", "x = '\\\\'\n"),
    ],
)
def test_plain_strings_get_double_quotes(text: str, changed: str) -> None:
    assert double_quoted(text) == changed

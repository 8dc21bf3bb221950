"""Fields of named tuples that are given a list, which the static graph compares at run time."""

import ast

import pytest

from isograd.convert.analysis.records import fields_with_lists

MADE = "from collections import namedtuple\nBlock = namedtuple('Block', 'kernel, stride')\n"


@pytest.mark.parametrize(
    ("code", "fields"),
    [
        pytest.param("Block(3, stride=[2])", {"stride"}, id="by keyword"),
        pytest.param("Block([3, 3], 2)", {"kernel"}, id="by position"),
        pytest.param("made = Block(3, [int(s) for s in given])", {"stride"}, id="comprehension"),
        pytest.param("made = block._replace(kernel=[1])", {"kernel"}, id="replaced"),
        pytest.param("Block(3, (2,))", set(), id="tuple"),
        pytest.param("Other(stride=[2])", set(), id="what is no named tuple"),
        pytest.param(
            "class Part(typing.NamedTuple):\n    size: int\n    steps: list\nPart(1, [2])",
            {"steps"},
            id="by class",
        ),
        pytest.param(
            "Part = namedtuple('Part', ['size', 'steps'])\nPart([1], 2)", {"size"}, id="by list"
        ),
    ],
)
def test_fields_with_lists(code: str, fields: set[str]) -> None:
    assert fields_with_lists(ast.parse(f"import typing\n{MADE}{code}")) == fields

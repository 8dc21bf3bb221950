"""What may stand on the command line."""

from __future__ import annotations

import pytest

from isograd.convert.verifying import parse_builder, parse_input
from isograd.convert.verifying.run import text_of
from isograd.errors import UsageError


@pytest.mark.parametrize(
    ("text", "module", "name", "arguments"),
    [
        ("net:build", "net", "build", ()),
        ("a.b.c:make.it", "a.b.c", "make.it", ()),
        ("net:build()", "net", "build", ()),
        ("net:build(width=8, sizes=(1, 2))", "net", "build", (("width", 8), ("sizes", (1, 2)))),
        ("net:build(name='a:b(c)', on=None)", "net", "build", (("name", "a:b(c)"), ("on", None))),
    ],
)
def test_builder_is_read(text: str, module: str, name: str, arguments: object) -> None:
    found = parse_builder(text)
    assert (found.module, found.name, found.arguments) == (module, name, arguments)
    assert parse_builder(found.text) == found


@pytest.mark.parametrize(
    "text",
    [
        "net",
        "net.py:",
        ":build",
        "net:build(",
        "net:build(8)",
        "net:build(width=open('x'))",
        "net:build(**{'width': 8})",
        "net:build(width=8) + 1",
        "..net:build",
    ],
)
def test_wrong_builder_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="is not a builder"):
        parse_builder(text)


@pytest.mark.parametrize(
    ("text", "shape", "dtype", "high"),
    [
        ("2x3x64x64", (2, 3, 64, 64), "float32", None),
        ("5", (5,), "float32", None),
        ("2x16:int64", (2, 16), "int64", 10),
        ("2x16:int64<1000", (2, 16), "int64", 1000),
        ("2x4:bool", (2, 4), "bool", 2),
    ],
)
def test_input_is_read(text: str, shape: tuple[int, ...], dtype: str, high: int | None) -> None:
    found = parse_input(text)
    assert (found.shape, found.dtype, found.high) == (shape, dtype, high)
    assert parse_input(text_of(found)) == found


@pytest.mark.parametrize("text", ["", "2x", "2x3:complex", "2,3", "2x3<4", "-1x2", "2x3:float32<5"])
def test_wrong_input_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="is not an input"):
        parse_input(text)

"""The generated module: compositions of several files under one roof."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from isograd.convert.generated import RUNTIME
from isograd.convert.tree import read_tree

FILES = sorted(RUNTIME.glob("*.py"))
STEMS = {path.stem for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_name_of_a_function_hides_a_composition(path: Path) -> None:
    """`layers.dropout` becomes `dropout` there, which must not be an argument's name."""
    text = path.read_text(encoding="utf-8")
    tree = read_tree(ast.parse(text), {ast.Name, ast.Attribute})
    hidden = [
        ast.unparse(node)
        for node in tree.of(ast.Attribute)
        if isinstance(node.value, ast.Name)
        and node.value.id in STEMS
        and tree.binds(node.attr, node)
    ]
    assert hidden == []

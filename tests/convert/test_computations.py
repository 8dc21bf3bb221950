"""What may be written more than once, because it only computes."""

from __future__ import annotations

import ast

import pytest

from isograd.convert.analysis.computations import only_computes
from isograd.convert.tree import read_tree

_KINDS = (ast.Import, ast.ImportFrom, ast.Name)
_HEAD = "import math\nimport math as m\nfrom math import sqrt\nimport random as chance\n"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        pytest.param("0.02", True, id="number"),
        pytest.param("1 / n - 2", True, id="arithmetic"),
        pytest.param("math.sqrt(1 / fan_in)", True, id="function of math"),
        pytest.param("m.sqrt(2)", True, id="by another name"),
        pytest.param("chance.random()", False, id="draws anew"),
        pytest.param("draw()", False, id="unknown function"),
        pytest.param("self.scale", False, id="attribute, which may be a property"),
        pytest.param("math.sqrt(draw())", False, id="unknown function inside"),
    ],
)
def test_only_computes(code: str, expected: bool) -> None:
    module = ast.parse(_HEAD + code)
    statement = module.body[-1]
    assert isinstance(statement, ast.Expr)
    assert only_computes(statement.value, read_tree(module, _KINDS)) is expected


def test_a_name_that_is_bound_otherwise_is_not_the_module() -> None:
    module = ast.parse("import math\ndef f(math):\n    return math.sqrt(2)\n")
    function = module.body[-1]
    assert isinstance(function, ast.FunctionDef)
    answer = function.body[0]
    assert isinstance(answer, ast.Return)
    assert answer.value is not None
    assert not only_computes(answer.value, read_tree(module, _KINDS))

"""Which expressions are integers whatever runs."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from tests.convert.support import converted, run_both

from isograd.convert.analysis.integers import is_integer
from isograd.convert.tree import read_tree


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        pytest.param("3", True, id="literal"),
        pytest.param("x.shape[0] - 1", True, id="a size less one"),
        pytest.param("2 * x.size(1) // n.shape[2]", True, id="arithmetic of sizes"),
        pytest.param("x.shape[0] ** 2", True, id="a square"),
        pytest.param("int(scale * n) - 1", True, id="int() of anything"),
        pytest.param("high - low", False, id="two names, which may be fractions"),
        pytest.param("n // 2", False, id="a name, which may be a tensor"),
        pytest.param("2 ** -1", False, id="a power that is a fraction"),
        pytest.param("x.shape[0] / 2", False, id="a fraction"),
    ],
)
def test_is_integer(code: str, expected: bool) -> None:
    module = ast.parse(code)
    statement = module.body[0]
    assert isinstance(statement, ast.Expr)
    assert is_integer(statement.value, read_tree(module, ())) is expected


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        pytest.param("import torch", True, id="Python's own"),
        pytest.param("def len(x): return 0.5", False, id="a function of the file"),
        pytest.param("from mine import length as len", False, id="another file's"),
        pytest.param("len = sizes.get", False, id="a name that is bound"),
        pytest.param("class C:\n  def f(self, len): pass", False, id="an argument somewhere"),
    ],
)
def test_the_name_of_a_function_of_pythons_is_not_enough(before: str, expected: bool) -> None:
    module = ast.parse(f"{before}\nlen(x)")
    statement = module.body[-1]
    assert isinstance(statement, ast.Expr)
    tree = read_tree(module, (ast.Import, ast.ImportFrom))
    assert is_integer(statement.value, tree) is expected


RANGES = """
import torch

def ranges(n, k):
    found = [torch.arange(n, dtype=torch.int64), torch.arange(0, n, 2, dtype=torch.long)]
    found += [torch.arange(end=n, dtype=torch.int64), torch.arange(n + 0.5, dtype=torch.int64)]
    found += [torch.arange(-n, n, k, dtype=torch.int64, device="cpu")]
    found += [torch.arange(1, end=n, dtype=torch.int64), torch.arange(n), torch.arange(len("a"), n)]
    found += [torch.arange(start=-k, end=n, dtype=torch.int64)]
    found += [torch.arange(n, dtype=torch.float32)]
    return [part.tolist() for part in found]

def told():
    return [ranges(5, 2), ranges(5.5, 1.7), ranges(torch.tensor(4), 3), ranges(True, 1)]
"""


def test_ranges_of_whole_numbers_take_the_whole_part_of_each_end(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("mindspore")
    port, report = converted(tmp_path, {"net.py": RANGES})
    assert not report.needs_action
    text = (port / "net.py").read_text(encoding="utf-8")
    assert text.count("ops.arange(") == 7
    assert text.count("compat.arange(") == 3  # without a dtype, or with one of fractions
    of_torch, of_port = run_both(tmp_path, port, "import json, net; print(json.dumps(net.told()))")
    assert of_port == of_torch

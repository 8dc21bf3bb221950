"""A reader takes in a function at a glance and a file in one sitting."""

from __future__ import annotations

import ast
from itertools import chain
from pathlib import Path
from statistics import median

_SOURCE = Path(__file__).parents[2] / "src" / "isograd"
_FILES = {path.relative_to(_SOURCE): path.read_text() for path in _SOURCE.rglob("*.py")}


def _functions() -> dict[str, int]:
    """Lines of each function, decorators not counted."""
    trees = ((path, ast.parse(text)) for path, text in _FILES.items())
    return {
        f"{path}:{node.lineno} {node.name}": (node.end_lineno or node.lineno) - node.lineno + 1
        for path, node in chain.from_iterable(((p, n) for n in ast.walk(t)) for p, t in trees)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    }


def test_no_file_has_over_500_lines() -> None:
    lines = {str(path): len(text.splitlines()) for path, text in _FILES.items()}
    assert {path: count for path, count in lines.items() if count > 500} == {}


def test_no_file_of_convert_has_over_400_lines() -> None:
    lines = {path: len(text.splitlines()) for path, text in _FILES.items()}
    assert [path for path, n in lines.items() if path.parts[0] == "convert" and n > 400] == []


def test_no_function_has_over_60_lines() -> None:
    assert {name: count for name, count in _functions().items() if count > 60} == {}


def test_functions_are_short() -> None:
    counts = sorted(_functions().values())
    assert median(counts) <= 10
    assert counts[int(len(counts) * 0.99)] <= 45


def test_a_verb_brings_neither_a_renderer_nor_a_page() -> None:
    """All of report/ and cli/, templates included: 70 % of what nine renderers took (6,541)."""
    paths = [path for room in ("report", "cli") for path in (_SOURCE / room).rglob("*")]
    counts = [
        len(path.read_text(encoding="utf-8").splitlines())
        for path in paths
        if path.is_file() and path.suffix != ".pyc"
    ]
    assert sum(counts) <= 4_578

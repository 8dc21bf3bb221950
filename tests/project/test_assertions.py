"""Every test holds something that can fail."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: Calls that fail a test by themselves.
CHECKS = frozenset("raises warns fail assert_outcomes fnmatch_lines no_fnmatch_line".split())
Functions = dict[str, list[ast.FunctionDef]]


def checks(function: ast.FunctionDef, known: Functions, seen: frozenset[str]) -> bool:
    """Whether a function asserts, itself or by a function of the tests that it calls."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            return True
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        if name in CHECKS or name.startswith("assert_"):
            return True
        for inner in known.get(name, []) if name not in seen else []:
            if checks(inner, known, seen | {name}):
                return True
    return False


def test_every_test_asserts() -> None:
    paths = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "src/isograd/testing").rglob("*.py")]
    known: Functions = defaultdict(list)
    tests: list[tuple[Path, ast.FunctionDef]] = []
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                known[node.name].append(node)
                if node.name.startswith("test_"):
                    tests.append((path, node))
    silent = [
        f"{path.relative_to(ROOT)}:{test.lineno}: {test.name}"
        for path, test in tests
        if not checks(test, known, frozenset())
    ]
    assert len(tests) > 500
    assert silent == []

"""Messages and documents use the field's words: those of the glossary, none of its "not" column."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: A word that is refused, and what the field says instead.
WORDS = {
    r"(?<!unless )\btold\b|^tell (it|a)\b|\btells? (it|them) apart by": "reported",
    r"\bstand(s|ing)? for\b(?! itself)": "is, means, replaces",
    r"\bhow-manieth\b": "the number of",
    r"\b(who|nobody) else sees\b": "alias, view",
    r"\bheld data\b": "parameter, buffer",
    r"\bwhole numbers?\b": "integer",
    r"\bstrangers?\b": "third-party networks",
    r"\bdraws the borders\b": "divides into modules",
    r"\btaken by positions\b": "advanced indexing",
    r"\bone memory\b": "storage",
    r"\bthrow points?\b": "origin",
    r"\bcompat thing\b": "runtime function",
    r"\bcompositions?\b(?!:)": "runtime function, runtime layer",
    r"\bthe [a-z]+teenth day\b": "a commit and a date",
    r"\b(the|its) originals?('s)?\b(?! does not build)": "the reference",
    r"\bthe other side('s)?\b": "the reference, the port, the other network",
    r"\biterations?\b": "step",
}
#: Words that are refused in documents; docstrings of verify still say them.
_OF_DOCUMENTS = {
    r"(?<!cube )(?<!matrix )(?<!in )(?<!Equal )(?<!saturated )(?<!lines and )"
    r"\bunits?\b(?! in the last| of the last| roundoff| of roundoff)": "module",
}
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
#: Text that ports copy, where a word may be an API's own name.
LEFT_OUT = ("src/isograd/runtime/",)


def messages(path: Path) -> Iterator[tuple[int, str]]:
    """Every text of a file that is read: its strings, and the docstrings of what is public."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    private = {
        node.body[0].value
        for node in ast.walk(tree)
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        and node.name.startswith("_")
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and node not in private and " " in node.value:
            yield node.lineno, node.value


def refused(text: str, words: Mapping[str, str] = WORDS) -> Iterator[str]:
    """What is wrong with a text, with what to say."""
    for pattern, instead in words.items():
        match = re.search(pattern, text, re.IGNORECASE)
        if match is not None:
            yield f"{match[0]!r}: say {instead}"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_documents_use_the_words_of_the_field(path: Path) -> None:
    words = {**WORDS, **_OF_DOCUMENTS}
    lines = path.read_text(encoding="utf-8").splitlines()
    found = [f"{at}: {what}" for at, line in enumerate(lines, 1) for what in refused(line, words)]
    assert found == []


def test_messages_use_the_words_of_the_field() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {what}"
        for path in sorted((ROOT / "src").rglob("*.py"))
        if not path.relative_to(ROOT).as_posix().startswith(LEFT_OUT)
        for line, text in messages(path)
        for what in refused(text)
    ]
    assert found == []

"""The README and the manuals: commands run, links lead somewhere, sentences are short."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from isograd.cli.entry import VERBS

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
#: Pages whose sentences are counted, and the words that one may have.
SHORT_SENTENCES = [ROOT / "README.md", *(ROOT / "docs").glob("guide.md")]
MOST_WORDS = 35


def blocks(text: str) -> list[str]:
    """The contents of a page's code blocks."""
    return re.findall(r"^```\w*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def prose(text: str) -> list[str]:
    """The sentences of a page, without code, tables and headings."""
    plain = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    plain = re.sub(r"^(\||#|- |>).*$", "", plain, flags=re.MULTILINE)
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", plain)
    paragraphs = re.split(r"\n\s*\n", plain)
    return [
        sentence
        for paragraph in paragraphs
        for sentence in re.split(r"(?<=[.:;?!])\s+", " ".join(paragraph.split()))
        if sentence
    ]


def test_the_table_of_the_readme_has_every_verb() -> None:
    assert set(re.findall(r"^\| \[`isograd (\w+)", README, re.MULTILINE)) == set(VERBS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    targets = re.findall(r"\]\((?!https?:)([^)#\s]+)", text)
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", SHORT_SENTENCES, ids=lambda page: page.name)
def test_sentences_are_short(page: Path) -> None:
    sentences = prose(page.read_text(encoding="utf-8"))
    assert [one for one in sentences if len(one.split()) > MOST_WORDS] == []


def test_the_example_of_the_readme_says_what_it_shows(tmp_path: Path) -> None:
    command, shown = next(
        (command.strip(), shown)
        for command, shown in zip(blocks(README), blocks(README)[1:], strict=False)
        if command.startswith("isograd convert")
    )
    words = command.replace("-o port", f"-o {tmp_path / 'port'}").split()
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    said = {" ".join(line.split()) for line in done.stdout.splitlines()}
    for line in shown.splitlines():
        start = " ".join(line.split("…")[0].split())
        assert any(one.startswith(start) for one in said), (line, done.stdout)


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_every_verb_has_a_manual(verb: str) -> None:
    row = re.search(rf"^\| \[`isograd {verb}\b.*?`\]\(([^)]+)\)", README, re.MULTILINE)
    assert row is not None
    assert f"isograd {verb}" in (ROOT / row[1]).read_text(encoding="utf-8")

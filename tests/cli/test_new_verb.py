"""A new verb is one file: its report, its document and its command; no renderer, no option."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from isograd.cli import entry, main

_FILE = '''
from dataclasses import dataclass
from pathlib import Path

import click

from isograd.cli.inputs import INPUT
from isograd.cli.verb import Output, verb
from isograd.findings import Finding, Level, Location
from isograd.report.base import Report
from isograd.report.document import Column, Document, FindingList, Outcome, Table, Tone


@dataclass(frozen=True)
class TabsReport(Report):
    path: str
    lines: tuple[int, ...]

    @property
    def needs_action(self):
        return bool(self.lines)

    def to_data(self):
        return {"schema": "isograd/tabs/1", "lines": self.lines}


def document(report):
    findings = tuple(
        Finding("tab.found", Level.WARNING, "the line has a tab", "", Location(report.path, line))
        for line in report.lines
    )
    outcome = Outcome("tabs", f"{len(report.lines)} lines have tabs.", Tone.BAD)
    lines = Table("Lines", (Column("line", is_number=True),), [(line,) for line in report.lines])
    return Document(f"isograd tabs {report.path}", outcome, (FindingList("Found", findings), lines))


def table(report):
    return "".join(f"{line}\\n" for line in report.lines)


@verb(
    document="isograd.cli.tabs:document",
    sarif=True,
    outputs=(Output("csv", "Write a line per line.", "isograd.cli.tabs:table"),),
)
@click.argument("path", type=INPUT)
def command(path, progress):
    """Which lines of this file have tabs?"""
    lines = path.read_text().splitlines()
    found = []
    for number, line in enumerate(lines, 1):
        progress.advance(number, len(lines))
        if "\\t" in line:
            found.append(number)
    return TabsReport(path.name, tuple(found))
'''


@pytest.fixture
def tabs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The made-up verb `tabs`, and a file with a tab on its second line."""
    import isograd.cli

    folder = tmp_path / "verbs"
    folder.mkdir()
    (folder / "tabs.py").write_text(_FILE)
    monkeypatch.setattr(isograd.cli, "__path__", [*isograd.cli.__path__, str(folder)])
    monkeypatch.setitem(entry.VERBS, "tabs", "Which lines of this file have tabs?")
    monkeypatch.delitem(__import__("sys").modules, "isograd.cli.tabs", raising=False)
    source = tmp_path / "notes.txt"
    source.write_text("plain\n\ttabbed\n")
    return source


def test_it_shows_its_document_and_fails(tabs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tabs", str(tabs)]) == 1
    shown = capsys.readouterr().out
    assert "notes.txt:2: tab.found the line has a tab" in shown
    assert shown.endswith("1 lines have tabs.\n")


def test_it_writes_every_kind_of_report(tabs: Path, tmp_path: Path) -> None:
    files = {name: tmp_path / f"out.{name}" for name in ("json", "html", "sarif", "csv")}
    options = [part for name, file in files.items() for part in (f"--{name}", str(file))]
    assert main(["tabs", str(tabs), "--quiet", *options]) == 1
    assert json.loads(files["json"].read_text()) == {"schema": "isograd/tabs/1", "lines": [2]}
    assert "tab.found the line has a tab" in files["html"].read_text()
    result = json.loads(files["sarif"].read_text())["runs"][0]["results"][0]
    assert (result["ruleId"], result["level"]) == ("tab.found", "warning")
    assert files["csv"].read_text() == "2\n"


def test_json_on_standard_output_moves_the_text(
    tabs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tabs", str(tabs), "--json", "-"]) == 1
    shown = capsys.readouterr()
    assert json.loads(shown.out)["lines"] == [2]
    assert shown.err.endswith("1 lines have tabs.\n")


def test_a_clean_file_is_status_0(tabs: Path) -> None:
    tabs.write_text("plain\n")
    assert main(["tabs", str(tabs), "--quiet"]) == 0


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param(["missing.txt"], "missing.txt does not exist.", id="no input"),
        pytest.param(["notes.txt", "--html", "-"], "--html cannot write to standard", id="html"),
        pytest.param(["notes.txt", "--json", "notes.txt"], "would be overwritten", id="input"),
        pytest.param(
            ["notes.txt", "--json", "-", "--csv", "-"], "two reports go to standard", id="two"
        ),
        pytest.param(["notes.txt", "--jsno", "x"], "Did you mean", id="misspelt"),
    ],
)
def test_wrong_calls_are_one_message(
    tabs: Path,
    arguments: list[str],
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tabs.parent)
    assert main(["tabs", *arguments]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert expected in shown.err
    assert shown.err.count("\n") == 1


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_names_the_question_and_all_options(
    tabs: Path, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tabs", option]) == 0
    shown = capsys.readouterr().out
    assert "Which lines of this file have tabs?" in shown
    assert all(f"--{name}" in shown for name in ("json", "html", "sarif", "csv", "quiet"))


def test_a_misspelt_verb_is_recognised(tabs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tbas"]) == 2
    assert "There is no verb 'tbas'. Did you mean `tabs`?" in capsys.readouterr().err

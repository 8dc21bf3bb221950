"""`isograd convert`: outputs, exit statuses and wrong calls."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from isograd.cli import main

GOOD = "import torch\n\n\ndef f(x):\n    return torch.exp(x)\n"
LEFT = "import torch\n\n\ndef f(x):\n    return torch.fx.Tracer(x)  # <script>alert(1)</script>\n"


def _file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "net.py"
    path.write_text(text)
    return path


@pytest.mark.parametrize(("text", "status"), [("x = 1\n", 0), (GOOD, 0), (LEFT, 1)])
def test_exit_status(tmp_path: Path, text: str, status: int) -> None:
    path = _file(tmp_path, text)
    assert main(["convert", str(path), "-o", str(tmp_path / "out")]) == status
    assert main(["convert", str(path), "--check"]) == status


def test_json_holds_the_contract(tmp_path: Path) -> None:
    path, out = _file(tmp_path, LEFT), tmp_path / "report.json"
    assert main(["convert", str(path), "--check", "--json", str(out)]) == 1
    value = json.loads(out.read_text())
    assert value["schema"] == "isograd/convert/1"
    assert value["converted"] == 0
    assert [file["file"] for file in value["files"]] == ["net.py"]
    (finding,) = value["findings"]
    place = (finding["file"], finding["line"], finding["column"], finding["code"])
    assert place == ("net.py", 5, 12, "not-converted")
    assert finding["api"] == "torch.fx.Tracer"
    assert finding["message"]


def test_json_on_standard_output_leaves_it_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["convert", str(_file(tmp_path, GOOD)), "--check", "--json", "-"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["converted"] == 1
    assert "100.0% of 1 use converted" in shown.err


def test_the_diff_is_a_unified_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", str(_file(tmp_path, GOOD)), "--diff"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["--- a/net.py", "+++ b/net.py"]
    assert "-    return torch.exp(x)" in lines
    assert "+    return ops.exp(x)" in lines


def test_the_page_shows_both_sides_and_escapes_them(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert main(["convert", str(_file(tmp_path, LEFT)), "--check", "--html", str(page)]) == 1
    text = page.read_text()
    assert "return torch.fx.Tracer(x)" in text
    assert "unconverted(&#34;torch.fx.Tracer&#34;)" in text
    assert "<script>" not in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["PATH"], "no place for the port is given"),
        (["PATH", "-o", "OUT", "--check"], "--check writes nothing"),
        (["missing.py", "--check"], "does not exist"),
        (["PATH", "-o", "PATH"], "which is never written to"),
        (["PATH", "--check", "--html", "-"], "--html cannot write to standard output"),
        (["PATH", "--check", "--json", "x.out", "--html", "x.out"], "named twice"),
    ],
)
def test_wrong_calls_are_told_in_one_message(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    path = _file(tmp_path, GOOD)
    named = {"PATH": str(path), "OUT": str(tmp_path / "out")}
    assert main(["convert", *(named.get(part, part) for part in arguments)]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error
    assert path.read_text() == GOOD

"""`isograd convert`: outputs, exit statuses and wrong calls."""

from __future__ import annotations

import json
import subprocess
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
        (["PATH", "--chekc"], "Did you mean"),
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


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param("import torch\ndef f(:\n", 2, id="a file that uses torch"),
        pytest.param("def f(:\n", 1, id="a file that may not"),
    ],
)
def test_a_file_that_python_cannot_parse_is_left_to_finish(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, line: int
) -> None:
    assert main(["convert", str(_file(tmp_path, text)), "--check"]) == 1
    shown = capsys.readouterr().out
    assert f"net.py:{line}:1: syntax-error Python cannot parse it" in shown
    assert "100" not in shown.splitlines()[-1]
    assert shown.endswith("No use of torch was converted; 1 place in 1 file left to finish.\n")


def test_each_place_is_named_by_path_line_and_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "src").mkdir()
    _file(tmp_path / "src", LEFT)
    assert main(["convert", "src", "--check"]) == 1
    assert "  src/net.py:5:12: not-converted " in capsys.readouterr().out


def test_a_place_to_look_at_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project = tmp_path / "project"
    project.mkdir()
    _file(project, GOOD)
    (project / "link").symlink_to("/")
    assert main(["convert", str(project), "--check"]) == 0
    shown = capsys.readouterr().out
    assert "1 place to look at" in shown
    assert "link: link the link leads to a folder" in shown


@pytest.mark.parametrize(
    ("options", "comment", "status"),
    [
        pytest.param([], "", 1, id="reported"),
        pytest.param(["--ignore", "not-converted"], "", 0, id="by code"),
        pytest.param(["--ignore", "torch.fx.*"], "", 0, id="by API"),
        pytest.param(["--select", "in-place"], "", 0, id="another selected"),
        pytest.param([], "  # isograd: ignore[not-converted]", 0, id="by comment"),
    ],
)
def test_findings_can_be_ignored(
    tmp_path: Path,
    options: list[str],
    comment: str,
    status: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = f"import torch\n\n\ndef f(x):\n    return torch.fx.Tracer(x){comment}\n"
    assert main(["convert", str(_file(tmp_path, text)), "--check", *options]) == status
    assert ("1 finding ignored" in capsys.readouterr().out) == (status == 0)


def test_what_git_ignores_or_is_excluded_is_not_copied(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project, out = tmp_path / "project", tmp_path / "out"
    for name in ("net.py", "weights/best.pth", "docs/guide.md", "table.csv"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("")
    (project / ".gitignore").write_text("weights/\n")
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    assert main(["convert", str(project), "-o", str(out), "--exclude", "docs"]) == 0
    copied = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    assert copied == {"net.py", "table.csv", ".gitignore"}
    assert "2 paths not carried over" in capsys.readouterr().out


def test_sarif_holds_every_place(tmp_path: Path) -> None:
    out = tmp_path / "r.sarif"
    main(["convert", str(_file(tmp_path, LEFT)), "--check", "--quiet", "--sarif", str(out)])
    (result,) = json.loads(out.read_text())["runs"][0]["results"]
    region = result["locations"][0]["physicalLocation"]["region"]
    assert (result["ruleId"], region) == ("not-converted", {"startLine": 5, "startColumn": 12})

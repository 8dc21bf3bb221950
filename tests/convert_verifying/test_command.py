"""`isograd convert --verify` and `--from-export` on the command line."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest

from isograd.cli import main
from isograd.convert.verifying import journal

NETWORK = """
    from torch import nn

    class Net(nn.Module):
        def __init__(self, width=4):
            super().__init__()
            self.first = nn.Linear(6, width)
            self.second = nn.Linear(width, 3)

        def forward(self, x):
            return self.second(self.first(x).relu())
"""


#: A comprehension of two loops, which MindSpore's compiler refuses.
REFUSED = """

    class Grid(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(6, 3), nn.Linear(6, 3)])

        def forward(self, x):
            parts = [layer(x) * scale for layer in self.layers for scale in (1.0, 2.0)]
            return parts[0] + parts[1] + parts[2] + parts[3]
"""


@pytest.fixture
def network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(journal, "usual_folder", lambda: tmp_path / "journal")
    path = tmp_path / "net.py"
    path.write_text(textwrap.dedent(NETWORK))
    return path


def test_verified_builders_stand_in_text_and_json(
    network: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, report = tmp_path / "out", tmp_path / "report.json"
    arguments = ["convert", str(network), "-o", str(out), "--json", str(report), "--quiet"]
    arguments += ["--verify", "net:Net", "--verify", "net:Net(width=5)"]
    assert main(arguments) == 0
    said = capsys.readouterr().out
    assert "net:Net: equivalent (input 2x6; seed 0" in said
    assert "net:Net(width=5): equivalent" in said
    value = json.loads(report.read_text())
    assert value["schema"] == "isograd/convert/1"
    assert [b["outcome"] for b in value["builders"]] == ["equivalent", "equivalent"]
    assert main([*arguments, "--force"]) == 0
    assert "as before" in capsys.readouterr().out


def test_what_compiles_is_said_of_each_builder(
    network: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network.write_text(textwrap.dedent(NETWORK + REFUSED))
    arguments = ["convert", str(network), "-o", str(tmp_path / "out"), "--quiet", "--compiled"]
    arguments += ["--verify", "net:Net", "--verify", "net:Grid", "--input", "2x6"]
    assert main(arguments) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "compiled: every module compiles" in said
    assert "compiled: the network compiles after the rewrite of net.py:20" in said


def test_graph_is_written_and_verified(
    network: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, report = tmp_path / "out", tmp_path / "report.json"
    arguments = ["convert", str(network), "-o", str(out), "--json", str(report), "--quiet"]
    assert main([*arguments, "--from-export", "net:Net"]) == 0
    assert "net:Net: equivalent" in capsys.readouterr().out
    value = json.loads(report.read_text())
    assert value["schema"] == "isograd/convert/1"
    assert value["converted"] == 3
    assert (out / "net.py").is_file()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--verify", "net:Net", "--check"], "--verify needs a port"),
        (["--from-export", "net:Net", "--diff"], "--from-export needs a port"),
        (["-o", "out", "--verify", "net"], "'net' is not a builder"),
        (["-o", "out", "--verify", "a:b", "--from-export", "a:b"], "are both given"),
        (["-o", "out", "--verify", "a:b", "--input", "2,3"], "'2,3' is not an input"),
        (["-o", "out", "--verify", "a:b", "--before", "no.py"], "there is no file no.py"),
    ],
)
def test_wrong_calls_are_usage_errors(
    network: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["convert", str(network), *arguments]) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "out").exists()

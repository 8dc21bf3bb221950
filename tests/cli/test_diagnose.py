"""`isograd diagnose`: one module alone, its evidence, and wrong calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.diagnose.example_case import write_example
from tests.diagnose.local_worker import LocalWorker

from isograd.cli import main
from isograd.diagnose.hypothesis import Example
from isograd.verify import session as session_module
from isograd.worker import subject as subject_module

FAKE = Path(__file__).resolve().parents[2] / "examples" / "fake"
#: A wrong eps in one module, a right module beside it, a wrong axis in the network's own code.
NETWORK = Example(
    "F.softmax(self.proj(self.norm(x)), dim=-1)",
    "ops.softmax(self.proj(self.norm(x)), axis=1)",
    modules={
        "norm": ("nn.LayerNorm(8)", "nn.LayerNorm([8], epsilon=1e-3)"),
        "proj": ("nn.Linear(8, 8)", "nn.Dense(8, 8)"),
    },
)


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch")
    pytest.importorskip("mindspore")
    return write_example(tmp_path_factory.mktemp("diagnose"), NETWORK)


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module.Session, "_start", lambda _, *given: LocalWorker(*given))


def _report(
    case: Path, module: str, capsys: pytest.CaptureFixture[str], *options: str
) -> tuple[int, Any, str]:
    status = main(["diagnose", str(case), "--module", module, "--json", "-", *options])
    captured = capsys.readouterr()
    return status, json.loads(captured.out), captured.err


@pytest.mark.usefixtures("in_process")
def test_a_faulty_module_shows_its_evidence(case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, found, text = _report(case, "norm", capsys)
    assert (status, found["schema"], found["verdict"]) == (1, "isograd/diagnose/1", "divergent")
    assert (found["module"], found["kind"], found["mode"]) == ("norm", "LayerNorm", "train")
    (call,) = found["calls"]
    assert next(t for t in call["tensors"] if t["what"] == "output 0")["differs"]
    forward = call["stages"][0]
    assert forward["ratio_before"] > 100 > forward["ratio_after"]
    (cause,) = forward["causes"]
    assert (cause["id"], cause["port"], cause["reference"]) == ("layer_norm.eps", 1e-3, 1e-5)
    assert cause["number_interval"][0] < 1e-3 < cause["number_interval"][1]
    best, *others = forward["hypotheses"]
    assert (best["id"], best["accepted"], best["is_named"]) == ("layer_norm.eps", True, True)
    assert others
    assert all(other["reason"] for other in others if not other["accepted"])
    assert "Hypotheses tried on the stage forward, best first" in text
    assert "estimated: 0.001" in text
    assert text.rstrip().split("\n")[-1].startswith("norm differs: ")


@pytest.mark.usefixtures("in_process")
def test_a_clean_module_agrees_and_names_the_strongest_hypothesis(
    case: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, found, text = _report(case, "proj", capsys)
    assert (status, found["verdict"]) == (0, "equivalent")
    (call,) = found["calls"]
    assert call["tensors"]
    assert not any(tensor["differs"] for tensor in call["tensors"])
    (stage,) = call["stages"]
    assert (stage["severity"], stage["causes"], stage["fix"]) == ("equivalent", [], None)
    assert "proj agrees: " in text
    assert "hypothes" in text


@pytest.mark.usefixtures("in_process")
def test_the_networks_own_code_is_a_module_too(
    case: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, found, text = _report(case, "network", capsys)
    assert status == 1
    assert found["calls"][0]["stages"][0]["causes"][0]["id"] == "softmax.axis"
    assert "given the results of norm, proj" in text


@pytest.mark.usefixtures("in_process")
def test_the_loss_alone(case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, found, text = _report(case, "loss", capsys, "--quiet")
    assert (status, found["verdict"], found["module"]) == (0, "equivalent", "loss")
    assert text.startswith("the loss agrees: 2 tensors of 1 call within rounding noise")


def test_a_page_and_a_list(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    page, case = tmp_path / "a.html", str(FAKE / "divergent.toml")
    assert main(["diagnose", case, "--module", "2.body.1", "--html", str(page), "--quiet"]) == 1
    assert "2.body.1" in page.read_text()
    assert capsys.readouterr().out.startswith("2.body.1 differs: ")
    assert main(["diagnose", case, "--list"]) == 0
    listed = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["network", "Sequential", "1"] in listed
    assert "2.body.1" in [line[0] for line in listed if line]


@pytest.mark.usefixtures("in_process")
def test_a_framework_that_shows_no_functions_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(subject_module, "declares", lambda framework, capability: False)
    assert main(["diagnose", str(FAKE / "divergent.toml"), "--module", "2.body.1"]) == 1
    assert "the hypotheses could not be tried" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "diagnose needs the name of a module. Give --module NAME, or --list."),
        (
            ["--module", "2.body.9"],
            "the reference has no module '2.body.9'. Near matches: 2.body.3, 2.body.2, 2.body.1, "
            "2.body.0, 2.body. List all with `isograd diagnose CASE.toml --list`.",
        ),
        (
            ["--module", "qqqqqq"],
            "the reference has no module 'qqqqqq'. "
            "List all with `isograd diagnose CASE.toml --list`.",
        ),
        (["--list", "--json", "-"], "--list writes no report. Leave out --json and --html."),
        (["--module", "0", "--mode", "fast"], "Invalid value for '--mode'"),
        (["--module", "0", "--html", "-"], "--html cannot write to standard output. Give "),
    ],
)
def test_wrong_calls(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diagnose", str(FAKE / "divergent.toml"), "--quiet", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"isograd: {message}"), captured.err


def test_a_mode_that_the_case_leaves_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (FAKE / "divergent.toml").read_text().replace('mode = "both"', 'mode = "train"')
    for name in ("net_reference.py", "net_port.py"):
        (tmp_path / name).write_text((FAKE / name).read_text())
    case = tmp_path / "case.toml"
    case.write_text(text)
    assert main(["diagnose", str(case), "--module", "0", "--mode", "eval", "--quiet"]) == 2
    assert capsys.readouterr().err == (
        f"isograd: {case} asks for train mode only, so eval mode cannot be diagnosed. Leave out "
        '--mode, or write mode = "both" under [verify] in the case.\n'
    )


def test_a_case_without_a_loss(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (FAKE / "divergent.toml").read_text().partition("[[targets]]")[0]
    lines = [line for line in text.splitlines() if not line.startswith(("loss", "optimizer"))]
    for name in ("net_reference.py", "net_port.py"):
        (tmp_path / name).write_text((FAKE / name).read_text())
    case = tmp_path / "case.toml"
    case.write_text("\n".join(lines))
    assert main(["diagnose", str(case), "--module", "loss", "--quiet"]) == 2
    assert capsys.readouterr().err == (
        f"isograd: {case} names no loss. Name one with `loss` in both sections.\n"
    )

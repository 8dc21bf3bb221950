"""`isograd verify`: options, outputs and exit statuses."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from isograd.cli import main
from isograd.errors import CaseError, UserCodeError, WorkerError
from isograd.model import Verdict

if TYPE_CHECKING:
    from conftest import FakeVerification


@pytest.mark.parametrize(
    ("verdict", "status"),
    [(Verdict.EQUIVALENT, 0), (Verdict.DIVERGENT, 1), (Verdict.INCOMPLETE, 1)],
)
def test_exit_status_is_the_verdict(
    verdict: Verdict, status: int, verification: FakeVerification, case: Path
) -> None:
    verification.verdict = verdict
    assert main(["verify", str(case)]) == status


def test_text_goes_to_standard_output_and_progress_to_standard_error(
    verification: FakeVerification, case: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["verify", str(case)])
    captured = capsys.readouterr()
    assert captured.out.endswith("every difference is within rounding noise.\n")
    assert captured.err == "forward …\n"


def test_json_on_standard_output_moves_the_text(
    verification: FakeVerification, case: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["verify", str(case), "--json", "-", "--seed", "7"])
    captured = capsys.readouterr()
    value = json.loads(captured.out)
    assert (value["schema"], value["seed"]) == ("isograd/verify/1", 7)
    assert "within rounding noise" in captured.err
    assert verification.calls == [(case, 7, None)]


def test_quiet_leaves_one_line(
    verification: FakeVerification, case: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["verify", str(case), "--quiet"])
    captured = capsys.readouterr()
    assert captured.out.count("\n") == 1
    assert captured.err == ""


def test_files_are_written(verification: FakeVerification, case: Path, tmp_path: Path) -> None:
    page, data, keep = tmp_path / "a.html", tmp_path / "a.json", tmp_path / "deep" / "keep"
    arguments = ["--html", str(page), "--json", str(data), "--keep", str(keep)]
    assert main(["verify", str(case), *arguments]) == 0
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert json.loads(data.read_text())["verdict"] == "equivalent"
    assert verification.calls == [(case, 0, keep)]
    assert {path.name for path in tmp_path.iterdir()} == {"a.html", "a.json", "deep", "case.toml"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{tmp}/none.toml"], "isograd: the case file {tmp}/none.toml does not exist. Give "),
        (["{tmp}/empty"], "isograd: the folder {tmp}/empty holds no case. Name "),
        (["{case}", "{case}", "{tmp}/none.toml"], "isograd: the case file {tmp}/none.toml does"),
        (["{case}", "{other}", "--keep", "{tmp}/k"], "isograd: --keep takes one case, and 2 are"),
        (["{case}", "--stage", "foward"], "isograd: there is no stage 'foward'. Use one of "),
        (["{case}", "--html", "-"], "isograd: --html cannot write to standard output. Give "),
        (
            ["{case}", "--json", "{tmp}/no/a.json"],
            "isograd: {tmp}/no/a.json cannot be written: no such file or directory. Give ",
        ),
        (
            ["{case}", "--json", "{tmp}"],
            "isograd: {tmp} cannot be written: it is a folder. Give ",
        ),
        (
            ["{case}", "--json", "{tmp}/a", "--html", "{tmp}/a"],
            "isograd: {tmp}/a would be overwritten: it is named twice. Give ",
        ),
        (
            ["{case}", "--json", "{case}"],
            "isograd: {case} would be overwritten: it is named twice. Give ",
        ),
        (["{case}", "--keep", "{tmp}"], "isograd: the folder {tmp} is not empty. Give "),
        (["{case}", "--keep", "{case}"], "isograd: the folder {case} cannot be made: "),
        (["{case}", "--fast"], "isograd: No such option"),
        (["{case}", "--seed", "-1"], "isograd: Invalid value for '--seed'"),
        ([], "isograd: Missing argument 'CASE.toml…'. See `isograd verify --help`."),
    ],
)
def test_wrong_calls_end_before_the_work_begins(
    arguments: list[str],
    message: str,
    verification: FakeVerification,
    case: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "empty").mkdir()
    other = shutil.copy(case, tmp_path / "other.toml")
    filled = [argument.format(tmp=tmp_path, case=case, other=other) for argument in arguments]
    assert main(["verify", *filled]) == 2
    error = capsys.readouterr().err
    assert error.startswith(message.format(tmp=tmp_path, case=case))
    assert "Traceback" not in error
    assert verification.calls == []


def test_an_error_is_one_message(
    verification: FakeVerification, case: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verification.error = CaseError("case.toml has no [port]", "Add the section [port].")
    assert main(["verify", str(case), "--quiet"]) == 2
    assert capsys.readouterr().err == (
        "isograd: case.toml has no [port]. Add the section [port].\n"
    )


@pytest.mark.parametrize(
    "error",
    [
        UserCodeError("build() raised ValueError", "Mend it.", trace="net.py line 3\n"),
        WorkerError("the port's worker ended", "Look at its words.", last_words="net.py line 3\n"),
    ],
)
def test_the_users_traceback_is_kept_in_a_file(
    error: Exception,
    verification: FakeVerification,
    case: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    verification.error = error
    assert main(["verify", str(case), "--quiet"]) == 2
    shown = capsys.readouterr().err
    match = re.fullmatch(rf"isograd: {re.escape(str(error))} Details: (\S+)\n", shown)
    assert match is not None
    kept = Path(match[1])
    assert kept.read_text() == "net.py line 3\n"
    kept.unlink()


def test_an_unexpected_error_names_the_place_and_keeps_the_traceback(
    verification: FakeVerification, case: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verification.error = ZeroDivisionError("division \x1b by zero")
    assert main(["verify", str(case), "--quiet"]) == 2
    shown = capsys.readouterr().err
    match = re.fullmatch(
        r"isograd: internal error at conftest\.py:\d+: ZeroDivisionError: division \\x1b by zero\. "
        r"Please report it with the traceback in (\S+)\.\n",
        shown,
    )
    assert match is not None
    kept = Path(match[1])
    assert "Traceback (most recent call last)" in kept.read_text()
    kept.unlink()


def test_interruption(
    verification: FakeVerification, case: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verification.error = KeyboardInterrupt()
    assert main(["verify", str(case), "--quiet"]) == 130
    assert capsys.readouterr().err.strip() == "isograd: interrupted. No report was written."


def test_a_device_is_written_to_and_not_replaced(
    verification: FakeVerification, case: Path
) -> None:
    assert main(["verify", str(case), "--json", os.devnull]) == 0
    assert not Path(os.devnull).is_file()


def test_several_cases_end_in_a_table(
    verification: FakeVerification,
    case: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "more"
    folder.mkdir()
    for name in ("b.toml", "a.toml"):
        shutil.copy(case, folder / name)
    (folder / "settings.toml").write_text("[tool]\n")
    verification.verdict = Verdict.DIVERGENT
    assert main(["verify", str(case), str(folder), "--json", str(tmp_path / "all.json")]) == 1
    text = capsys.readouterr().out
    assert text.splitlines()[-1] == "0 of 3 cases are equivalent."
    assert [path.name for path, _, _ in verification.calls] == ["case.toml", "a.toml", "b.toml"]
    value = json.loads((tmp_path / "all.json").read_text())
    assert value["schema"] == "isograd/verify-cases/1"
    assert [one["verdict"] for one in value["cases"]] == ["divergent"] * 3
    assert [one["report"]["schema"] for one in value["cases"]] == ["isograd/verify/1"] * 3


def test_a_case_that_cannot_be_verified_does_not_end_the_others(
    verification: FakeVerification, case: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = shutil.copy(case, tmp_path / "other.toml")
    verification.error = CaseError("case.toml has no [port]", "Add the section [port].")
    assert main(["verify", str(case), str(other)]) == 1
    text = capsys.readouterr().out
    assert text.count("case.toml has no [port]. Add the section [port].") == 2
    assert len(verification.calls) == 2

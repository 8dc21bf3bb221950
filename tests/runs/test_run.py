"""A run's folder: written while a training goes on, read at any moment, by anyone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from isograd.errors import RunError, UsageError
from isograd.runs.information import RunState, describe_run
from isograd.runs.reader import Run, find_runs
from isograd.runs.writer import RunWriter


def write(folder: Path) -> RunWriter:
    return RunWriter(folder, describe_run("a", "watch", "torch", "cpu"))


def test_a_run_is_read_while_it_is_written_and_after(tmp_path: Path) -> None:
    writer = write(tmp_path / "a")
    writer.scalars(0, {"loss": 2.5})
    writer.alert({"code": "loss.spike", "step": 0})
    run = Run(tmp_path / "a")
    assert run.is_running
    assert run.scalars.series("loss")[1].tolist() == [2.5]
    assert [alert["code"] for alert in run.alerts()] == ["loss.spike"]
    writer.scalars(1, {"loss": 2.0})
    writer.close(RunState.COMPLETE)
    run.refresh()
    assert run.information.state is RunState.COMPLETE
    assert run.information.ended is not None
    assert run.scalars.series("loss")[1].tolist() == [2.5, 2.0]


def test_scalars_are_parquet_in_the_end(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    writer = write(tmp_path / "a")
    writer.scalars(0, {"loss": float("nan")})
    writer.scalars(1, {"loss": 2.0, "it's": 3.0})
    writer.close(RunState.COMPLETE)
    found = duckdb.sql(
        f"SELECT step, name, isnan(value), value FROM '{tmp_path / 'a' / 'scalars.parquet'}'"
    ).fetchall()
    assert [row[:3] for row in found] == [(0, "loss", True), (1, "loss", False), (1, "it's", False)]
    assert [row[3] for row in found[1:]] == [2.0, 3.0]


def test_a_killed_process_leaves_a_run_that_has_crashed(tmp_path: Path) -> None:
    code = """
import os, sys
from pathlib import Path
from isograd.runs.information import describe_run
from isograd.runs.writer import RunWriter
writer = RunWriter(Path(sys.argv[1]), describe_run("a", "watch"))
for step in range(100):
    writer.scalars(step, {"loss": 1 / (1 + step)})
    writer.statistics(step, {"0.weight/norm": 1.0})
os._exit(9)
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "a")], check=False)
    run = Run(tmp_path / "a")
    assert run.information.state is RunState.CRASHED
    assert run.scalars.row_count == run.statistics.row_count == 100


def test_a_full_disk_is_one_warning_and_what_was_written_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = write(tmp_path / "a")
    writer.scalars(0, {"loss": 2.5})

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writer._scalars, "_write", refuse)
    with pytest.warns(RuntimeWarning, match=r"stopped writing the run .*No space left on device"):
        writer.scalars(1, {"loss": 2.0})
    writer.scalars(2, {"loss": 1.5})
    writer.close(RunState.COMPLETE)
    assert Run(tmp_path / "a").scalars.steps.tolist() == [0]


def test_a_folder_that_is_in_use_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "a")
    with pytest.raises(UsageError, match=r"the folder .*a is not empty. Give a new"):
        write(tmp_path / "a")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        pytest.param(None, "holds no run.json, so it is no run", id="missing"),
        pytest.param("{", "is malformed", id="truncated"),
        pytest.param("[1]", "is not of the schema isograd/run/1", id="another schema"),
        pytest.param('{"schema": "isograd/run/1"}', "is malformed .KeyError", id="no fields"),
    ],
)
def test_what_is_no_run_is_said(tmp_path: Path, content: str | None, says: str) -> None:
    if content is not None:
        (tmp_path / "run.json").write_text(content)
    with pytest.raises(RunError, match=says):
        Run(tmp_path)


def test_a_line_of_alerts_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    writer = write(tmp_path / "a")
    writer.alert({"code": "one"})
    with (tmp_path / "a" / "alerts.jsonl").open("a") as stream:
        stream.write('{"code": "tw')
    assert [alert["code"] for alert in Run(tmp_path / "a").alerts()] == ["one"]


def test_runs_below_a_folder_are_found(tmp_path: Path) -> None:
    write(tmp_path / "x" / "a").close(RunState.COMPLETE)
    write(tmp_path / "b").close(RunState.FAILED)
    os.symlink(tmp_path / "b", tmp_path / "link")
    assert list(find_runs(tmp_path)) == [tmp_path / "b", tmp_path / "x" / "a"]


def test_run_json_is_the_contract(tmp_path: Path) -> None:
    write(tmp_path / "a")
    data = json.loads((tmp_path / "a" / "run.json").read_text())
    assert data["schema"] == "isograd/run/1"
    wanted = "name framework versions device command git_commit seeds started ended state"
    assert set(wanted.split()) <= set(data)

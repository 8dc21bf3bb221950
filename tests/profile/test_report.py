"""The report: the contract's JSON, one screen of text, a page, a trace, and exit statuses."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isograd.cli.entry import main
from isograd.frameworks.base import ModuleInfo, ParameterInfo, Structure
from isograd.profile.against import compare
from isograd.profile.analyse.analysis import analyse
from isograd.profile.document import document, page
from isograd.profile.model import ModuleTime, Profile
from isograd.profile.read.open import open_profile
from isograd.profile.report import ProfileReport
from isograd.profile.rules import examples as made
from isograd.profile.rules.catalogue import apply_rules
from isograd.profile.rules.making import Call, recording
from isograd.report.document import Table
from isograd.report.render_html import render_html
from isograd.report.render_text import render_text


def _report(profile: Profile) -> ProfileReport:
    analysis = analyse(profile)
    return ProfileReport(analysis, apply_rules(analysis))


def _step(number: int, begin: float, ops: list[tuple[str, float]]) -> list[dict[str, Any]]:
    common = {"ph": "X", "pid": 1, "tid": 1}
    events, now = [], begin
    for name, length in ops:
        events.append({**common, "cat": "cpu_op", "name": name, "ts": now, "dur": length})
        now += length
    mark = {"cat": "user_annotation", "name": f"ProfilerStep#{number}", "ts": begin}
    return [{**common, **mark, "dur": now - begin}, *events]


def _trace(path: Path, ops: list[tuple[str, float]], count: int = 6) -> Path:
    length = sum(length for _, length in ops) + 10
    events = [event for n in range(count) for event in _step(n, n * length, ops)]
    path.write_text(json.dumps({"traceEvents": events}))
    return path


HEALTHY = [("aten::mm", 3000.0), ("aten::addmm", 2000.0)]
CASTING = [("aten::mm", 3000.0), ("aten::_to_copy", 2000.0)]


@pytest.mark.parametrize(
    ("ops", "status", "code"),
    [
        pytest.param(HEALTHY, 0, None, id="healthy"),
        pytest.param(CASTING, 1, "operators.conversion", id="casts"),
    ],
)
def test_exit_status_and_json(
    tmp_path: Path, ops: list[tuple[str, float]], status: int, code: str | None
) -> None:
    trace = _trace(tmp_path / "t.json", ops)
    assert main(["profile", str(trace), "--quiet", "--json", str(tmp_path / "r.json")]) == status
    found = json.loads((tmp_path / "r.json").read_text())
    assert found["schema"] == "isograd/profile/1"
    assert found["step"]["median_s"] == pytest.approx(0.005)
    assert found["operators"][0]["operator"] == "aten::mm"
    assert [one["code"] for one in found["findings"]] == ([] if code is None else [code])
    for one in found["findings"]:
        assert one["seconds"] == pytest.approx(0.002)
        assert one["what_if"]["step_s"] == pytest.approx(0.003)


def test_the_contract_is_kept() -> None:
    data = json.loads(_report(made.casting()).to_json())
    assert data["verdict"] in (
        "data-bound", "host-bound", "compute-bound", "communication-bound", "memory-bound",
        "balanced",
    )  # fmt: skip
    assert set(data["step"]) >= {"median_s", "p95_s", "jitter", "phases"}
    assert set(data["operators"][0]) >= {
        "operator", "shapes", "dtypes", "calls", "self_s", "share", "module", "where"
    }  # fmt: skip
    assert set(data["findings"][0]) >= {
        "code", "seconds", "share", "message", "advice", "what_if", "where", "tried"
    }  # fmt: skip
    assert data["pipeline"] is None
    assert data["communication"] is None


def test_the_text_is_one_screen_and_begins_with_what_could_be_won() -> None:
    text = render_text(document(_report(made.slow_transform())), width=100, colour=False)
    assert len(text.splitlines()) < 50
    assert "The step waits for its data (80%" in text.splitlines()[-1]
    assert "data.py:7" in text


def test_the_page_escapes_names(tmp_path: Path) -> None:
    trace = _trace(tmp_path / "t.json", [("<script>alert(1)</script>", 3000.0)])
    assert main(["profile", str(trace), "--quiet", "--html", str(tmp_path / "p.html")]) == 0
    html = (tmp_path / "p.html").read_text()
    assert "<script>alert(1)" not in html
    assert "Timeline of step" in html


def test_the_page_shows_ten_operators_and_folds_the_list_of_all(tmp_path: Path) -> None:
    trace = _trace(tmp_path / "t.json", [(f"aten::op_{n}", 300.0) for n in range(30)])
    tables = [s for s in page(_report(open_profile(trace))).sections if isinstance(s, Table)]
    operators = [table for table in tables if "perators by shape" in table.title]
    assert [(len(table.rows), table.is_folded) for table in operators] == [(10, False), (30, True)]
    assert operators[1] is tables[-1]


def test_every_example_can_be_drawn() -> None:
    for make in (made.many_messages, made.slow_map, made.jitter, made.uneven_ranks):
        assert "isograd profile" in render_html(page(_report(make())))


def test_a_repaired_trace_has_exact_times(tmp_path: Path) -> None:
    event = {"ph": "X", "cat": "", "name": "Add", "pid": 2, "tid": 0}
    times = ["1795510588720908.071", "1795510588781420.438"]
    source = tmp_path / "trace_view.json"
    source.write_text(json.dumps([{**event, "ts": ts, "dur": "1.903"} for ts in times]))
    target = tmp_path / "fixed.json"
    assert main(["profile", str(source), "--quiet", "--trace", str(target)]) == 0
    events = [e for e in json.loads(target.read_text())["traceEvents"] if e["ph"] == "X"]
    assert [e["ts"] for e in events] == [0.0, 60512.367]
    assert main(["profile", str(target), "--quiet"]) == 0


def test_operators_as_parquet(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    trace, target = _trace(tmp_path / "t.json", HEALTHY), tmp_path / "o.parquet"
    assert main(["profile", str(trace), "--quiet", "--parquet", str(target)]) == 0
    rows = duckdb.sql(f"SELECT name, self_s FROM '{target}' ORDER BY self_s").fetchall()
    assert rows == [("aten::addmm", pytest.approx(0.002)), ("aten::mm", pytest.approx(0.003))]


def _run(step_ms: float, spread_ms: float, seed: int) -> Profile:
    source = np.random.default_rng(seed)
    steps = (step_ms + spread_ms * source.standard_normal(30)).tolist()
    return recording(step_ms, [Call("aten::mm", step_ms * 0.9)], steps_ms=steps)


@pytest.mark.parametrize(
    ("other_ms", "verdict"),
    [
        pytest.param(100.5, None, id="within the noise"),
        pytest.param(120.0, True, id="faster"),
        pytest.param(80.0, False, id="slower"),
    ],
)
def test_no_verdict_within_the_noise(other_ms: float, verdict: bool | None) -> None:
    found = compare(analyse(_run(100.0, 5.0, 0)), analyse(_run(other_ms, 5.0, 1)))
    assert found.faster is verdict
    assert found.ratio == pytest.approx(100.0 / other_ms, rel=0.05)


def test_runs_without_structures_say_so() -> None:
    found = compare(analyse(made.healthy()), analyse(made.casting()))
    assert "no list of modules" in found.notes[0]
    assert found.modules == ()
    assert ModuleTime("a", "Linear", 1.0, 2.0).calls == 1


def _network(profile: Profile, *names: str) -> Profile:
    """The profile with modules of these names."""
    modules = tuple(ModuleInfo(name, "Linear", True) for name in ("", *names))
    parameters = tuple(
        ParameterInfo(
            f"{name}.weight", name, "weight", (4, at + 2 + 3 * len(names)), "float32", True
        )
        for at, name in enumerate(names)
    )
    structure = Structure("torch", modules, parameters)
    times = tuple(ModuleTime(name, "Linear", 0.01, 0.02) for name in names)
    return dataclasses.replace(profile, structure=structure, modules=times)


def test_runs_of_two_networks_say_that_they_share_no_module() -> None:
    first, second = (_network(made.healthy(), *names) for names in (("a", "b"), ("x", "y", "z")))
    found = compare(analyse(first), analyse(second))
    assert found.unpaired == ("a", "b")
    assert "share no module" in found.notes[0]
    assert compare(analyse(first), analyse(first)).notes == ()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param("", "holds no list `traceEvents`", id="empty"),
        pytest.param('{"traceEvents": [{"ph": "M"}]}', "holds no intervals", id="no intervals"),
    ],
)
def test_bad_input_ends_with_two_sentences(
    tmp_path: Path, content: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.json").write_text(content)
    assert main(["profile", str(tmp_path / "t.json"), "--quiet"]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert "Traceback" not in said


def test_two_runs_need_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    event = {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 1}
    (tmp_path / "a.json").write_text(json.dumps([event]))
    trace = _trace(tmp_path / "t.json", HEALTHY)
    assert main(["profile", str(trace), str(tmp_path / "a.json"), "--quiet"]) == 2
    assert "has no steps, so it cannot be compared" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        pytest.param([0, 5, 5], "1 of 3 steps have no length", id="zero length"),
        pytest.param([-4, 5, 5], "1 of 3 steps have no length", id="clocks that go back"),
    ],
)
def test_steps_that_cannot_be(tmp_path: Path, lengths: list[int], message: str) -> None:
    rows, now = [], 1_000_000
    for number, length in enumerate(lengths, 1):
        end = now + length * 100_000
        rows.append(f"{number},{now},{end},{end - now},{now},{end},0,{end - now},0")
        now = max(now, end)
    file = tmp_path / "step_trace_raw_0_detail_time.csv"
    head = (
        "step_num,start_point,end_point,total,fp_point,bp_point,iteration_interval,fp_and_bp,tail"
    )
    file.write_text("\n".join([head, *rows]) + "\n")
    from isograd.profile.read.open import open_profile

    assert any(message in note for note in analyse(open_profile(file)).notes)

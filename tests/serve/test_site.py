"""What the server answers, without a browser."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient
from tests.serve.conftest import HOSTILE, TOKEN, write_run

import isograd
from isograd.errors import UsageError
from isograd.progress import SilentProgress
from isograd.report.document import Table, Tone
from isograd.serve.catalogue import Catalogue
from isograd.serve.export import export
from isograd.serve.model import Kind
from isograd.serve.report_document import report_document
from isograd.serve.run import catalogue_of


def test_what_lies_below_a_folder_is_found_by_its_content(served: Path) -> None:
    found = {(item.kind, item.name) for item in Catalogue([served]).items()}
    assert found == {
        (Kind.RUN, "runs/first"),
        (Kind.RUN, f"runs/{HOSTILE}"),
        (Kind.VERIFY, "report.json"),
        (Kind.CHECKPOINT, "net.npz"),
    }, "links are not followed, and another tool's JSON is none of ours"


def test_the_first_page_names_everything(client: TestClient) -> None:
    page = client.get("/").text
    for text in ("runs/first", "report.json", "net.npz", "complete"):
        assert text in page


def test_hyper_parameters_of_runs_trials_and_lineage_files(served: Path) -> None:
    from isograd.runs.information import RunState, describe_run
    from isograd.runs.writer import RunWriter
    from isograd.serve.lineage import lineage_document

    command = ("train.py", "--lr", "0.1", "--shift=-3", "--nesterov", "--name", "a")
    facts = replace(describe_run("b", "watch", "torch", "cpu"), command=command, git_commit="abc")
    writer = RunWriter(served / "runs/b", facts)
    writer.scalars(0, {"loss": 0.25})
    writer.close(RunState.COMPLETE)
    study = served / "study.toml"
    study.write_text("[objective]\ncommand = 'echo loss: {x}'\n[parameters]\nx = [0.5]\n")
    isograd.tune(study, trials=1)
    tables = {one.title: one for one in lineage_document(Catalogue([served])).sections}
    runs = tables["Runs"]
    assert isinstance(runs, Table)
    names = [column.name for column in runs.columns]
    (row,) = [row for row in runs.rows if getattr(row[0], "value", "") == "runs/b"]
    found = dict(zip(names, row, strict=True))
    wanted = {"loss": 0.25, "lr": 0.1, "shift": -3, "nesterov": True, "commit": "abc"}
    assert {name: found[name] for name in wanted} == wanted
    trials = tables["Trials of study"]
    assert isinstance(trials, Table)
    assert list(trials.rows[0][1:]) == ["complete", 0.5, 0.5]


def test_hostile_names_are_text(client: TestClient) -> None:
    for address in ("/", f"/run/{quote(f'runs/{HOSTILE}', safe='')}", "/verify/report.json"):
        answer = client.get(address)
        assert answer.status_code == 200
        assert "<img" not in answer.text
        assert "&lt;img" in answer.text


def test_a_page_of_each_kind_opens(client: TestClient, served: Path) -> None:
    for item in Catalogue([served]).items():
        answer = client.get(f"/{item.address}")
        assert answer.status_code == 200, item
        assert "unreadable" not in answer.text, item


def test_a_report_leads_to_the_line_of_its_fix(client: TestClient) -> None:
    page = client.get("/verify/report.json").text
    for text in ("layer1.0.bn1", "net_mindspore.py:41", "batch_norm.eps (proved)", "Divergent"):
        assert text in page


@pytest.mark.parametrize(
    "address",
    [
        "/run/..%2F..%2Fsecret",
        "/verify/..%2Fsecret%2Fverify.json",
        "/verify/link.json",
        "/verify/link%2Fverify.json",
        "/run/%2Fetc",
        "/checkpoint/%00",
        "/static/..%2Fapp.py",
        "/nothing/here",
    ],
)
def test_there_is_no_way_out_of_the_folders(client: TestClient, address: str) -> None:
    assert client.get(address).status_code == 404


def test_nothing_is_answered_without_the_token(served: Path) -> None:
    from isograd.serve.app import make_app

    app = make_app(Catalogue([served]), TOKEN)
    with TestClient(app, base_url="http://127.0.0.1:8765") as stranger:
        for address in ("/", "/runs", "/points?run=runs/first&name=loss", "/static/curves.js"):
            answer = stranger.get(address)
            assert answer.status_code == 401
            assert "runs" not in answer.text


def test_the_token_leaves_the_address(served: Path) -> None:
    from isograd.serve.app import make_app

    app = make_app(Catalogue([served]), TOKEN)
    with TestClient(app, base_url="http://127.0.0.1:8765", follow_redirects=False) as browser:
        answer = browser.get(f"/run/runs%2Ffirst?token={TOKEN}&x=1")
        assert answer.headers["location"] == "./runs%2Ffirst?x=1"
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie


def test_every_answer_has_the_headers_of_safety(client: TestClient) -> None:
    for address in ("/", "/runs", "/nothing/here", "/curves"):
        headers = client.get(address).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
    assert "default-src 'none'" in client.get("/").text
    assert "default-src 'none'" in client.get("/curves").headers["content-security-policy"]


def test_curves_of_several_runs(client: TestClient) -> None:
    assert client.get("/runs").json() == [f"runs/{HOSTILE}", "runs/first"]
    asked = {"run": ["runs/first", f"runs/{HOSTILE}", "gone"]}
    assert client.get("/names", params=asked).json() == ["loss", "learning_rate"]
    first, second = client.get("/points", params={**asked, "name": "loss"}).json()
    assert first["values"][0] == pytest.approx(1.0)
    assert second["values"][0] == pytest.approx(1.5)
    assert first["steps"] == list(range(20))
    assert first["times"] is None


@pytest.mark.parametrize("axis", ["steps", "times"])
def test_a_part_of_a_curve_reaches_beyond_its_borders(client: TestClient, axis: str) -> None:
    asked = {"run": "runs/first", "name": "loss", "axis": "times"}
    (whole,) = client.get("/points", params=asked).json()
    ends = {"from": whole[axis][5], "to": whole[axis][7] + 1e-3, "axis": axis}
    (part,) = client.get("/points", params={**asked, **ends}).json()
    assert set(range(5, 8)) <= set(part["steps"])
    if axis == "steps":
        assert part["steps"] == [4, 5, 6, 7, 8]


def test_a_file_that_is_no_report_is_a_page_that_says_so(served: Path) -> None:
    (served / "cut.json").write_text('{"schema": "isograd/verify/1", "findings": [')
    (served / "net.ckpt").write_bytes(b"\x00garbage")
    catalogue = Catalogue([served])
    from isograd.serve.pages import page_of

    for kind, name in ((Kind.VERIFY, "cut.json"), (Kind.CHECKPOINT, "net.ckpt")):
        item = catalogue.find(kind, name)
        assert item is not None
        assert page_of(item, catalogue).outcome.word == "unreadable"


def test_a_run_that_grows_is_shown_as_it_stands(served: Path) -> None:
    from isograd.serve.changes import changed_at
    from isograd.serve.overview import overview

    writer = write_run(served / "live", steps=3)
    catalogue = Catalogue([served])
    item = catalogue.find(Kind.RUN, "live")
    assert item is not None
    before = changed_at(item)
    writer.scalars(3, {"loss": 0.25})
    assert changed_at(item) >= before
    rows = overview(catalogue).sections[0].rows  # type: ignore[attr-defined]  # the table of runs
    (steps,) = [row[3] for row in rows if getattr(row[0], "value", "") == "live"]
    assert steps == 4
    writer.close(writer.information.state)


def test_the_same_pages_as_static_files(served: Path, tmp_path: Path) -> None:
    target = tmp_path / "site"
    assert export(Catalogue([served]), target, SilentProgress()) == 7
    first = (target / "index.html").read_text()
    for path in target.rglob("*.html"):
        text = path.read_text()
        assert "<img" not in text
        assert "EventSource" not in text
        if path.parent != target:
            assert f'href="{path.relative_to(target).as_posix()}"' in first
    with pytest.raises(UsageError):
        export(Catalogue([served]), target, SilentProgress())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        pytest.param(lambda path: path / "missing", "does not exist", id="missing"),
        pytest.param(lambda path: path / "report.json", "is no folder", id="file"),
    ],
)
def test_what_cannot_be_served_is_named(served: Path, make: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        catalogue_of([make(served)])  # type: ignore[operator]  # a function of the table


@pytest.mark.parametrize(
    ("verdict", "tone"),
    [
        pytest.param("equivalent", Tone.GOOD, id="good"),
        pytest.param("unhealthy", Tone.BAD, id="bad"),
        pytest.param("incomplete", Tone.WARNING, id="open"),
        pytest.param("compute-bound", Tone.PLAIN, id="what limits a step is no fault"),
    ],
)
def test_the_tone_of_a_report_is_that_of_its_verdict(verdict: str, tone: Tone) -> None:
    data = {"schema": "isograd/x/1", "verdict": verdict}
    assert report_document(data, "a report").outcome.tone is tone

"""Traces that are cut, lie or make no sense: what the reader learns, by its text."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from isograd.cli.entry import main

GIBIBYTE = 1 << 30


def _event(name: str, ts: float, dur: float, category: str = "cpu_op") -> dict[str, Any]:
    return {"ph": "X", "pid": 1, "tid": 1, "cat": category, "name": name, "ts": ts, "dur": dur}


def _steps(length_us: float = 5000.0, count: int = 6, operator: str = "aten::mm") -> list[Any]:
    events = []
    for number in range(count):
        begin = number * 5000.0
        events.append(_event(f"ProfilerStep#{number}", begin, length_us, "user_annotation"))
        events.append(_event(operator, begin, 4500.0))
    return events


def _cut(path: Path) -> None:
    text = json.dumps({"traceEvents": _steps()})
    path.write_text(text[: len(text) // 2])


def _no_marks(path: Path) -> None:
    path.write_text(json.dumps([_event("aten::mm", n * 1000.0, 900.0) for n in range(6)]))


def _clock_goes_back(path: Path) -> None:
    events = _steps()
    events[5]["ts"] = events[3]["ts"] + 10.0
    path.write_text(json.dumps(events))


def _zero_length(path: Path) -> None:
    path.write_text(json.dumps(_steps(length_us=0.0)))


def _one_zero_length(path: Path) -> None:
    events = _steps()
    events[4]["dur"] = 0
    path.write_text(json.dumps(events))


def _negative(path: Path) -> None:
    path.write_text(json.dumps(_steps(length_us=-5.0)))


@pytest.mark.parametrize(
    ("write", "said"),
    [
        pytest.param(_cut, "ends before its list of events does", id="truncated"),
        pytest.param(_no_marks, "No steps are marked", id="no step marks"),
        pytest.param(_clock_goes_back, "1 operators begin within another", id="clock goes back"),
        pytest.param(_zero_length, "6 of 6 steps have no length", id="steps without length"),
        pytest.param(_one_zero_length, "1 of 6 steps have no length", id="one such step"),
        pytest.param(_negative, "6 of 6 steps have no length", id="steps that end before"),
    ],
)
def test_what_can_be_read_is_read_and_the_rest_is_said(
    write: Any, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "trace.json"
    write(trace)
    assert main(["profile", str(trace)]) == 0
    assert said in " ".join(capsys.readouterr().out.split())


def _sparse(head: bytes) -> Any:
    def write(path: Path) -> None:
        with path.open("wb") as stream:
            stream.write(head)
            stream.truncate(10 * GIBIBYTE)

    return write


def _spaces(path: Path) -> None:
    with gzip.open(path, "wb", compresslevel=1) as stream:
        stream.write(b'{"traceEvents": [')
        for _ in range(64):
            stream.write(b" " * (1 << 20))


_ONE = b'{"traceEvents": [' + json.dumps(_event("aten::mm", 0.0, 10.0)).encode() + b","


@pytest.mark.parametrize(
    ("name", "write", "said"),
    [
        pytest.param("a.json", _sparse(b""), "holds no list `traceEvents`", id="10 GiB of zeros"),
        pytest.param(
            "a.json",
            _sparse(b'{"traceEvents": ['),
            "an event was expected at byte 17",
            id="10 GiB of zeros for events",
        ),
        pytest.param(
            "a.json", _sparse(_ONE), "an event was expected at byte", id="one event, then zeros"
        ),
        pytest.param("a.json.gz", _spaces, "holds no intervals", id="64 MiB of spaces, packed"),
    ],
)
def test_a_file_whose_size_lies_is_refused_at_once(
    name: str, write: Any, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / name
    write(trace)
    assert main(["profile", str(trace), "--quiet"]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error


def test_two_unrelated_runs_say_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    traces = [tmp_path / "a.json", tmp_path / "b.json"]
    for trace, operator in zip(traces, ("aten::mm", "aten::conv2d"), strict=True):
        trace.write_text(json.dumps(_steps(operator=operator)))
    assert main(["profile", *map(str, traces)]) == 0
    assert "The runs share no operator" in " ".join(capsys.readouterr().out.split())

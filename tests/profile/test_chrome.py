"""Chrome traces: exact times, blocks that cut anywhere, and files that are damaged."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isograd.errors import ProfileError
from isograd.profile.read import blocks
from isograd.profile.read.blocks import Blocks
from isograd.profile.read.chrome import read_chrome
from isograd.profile.read.events import EventDecoder
from isograd.profile.write_trace import microseconds


def _event(name: str, ts: Any, dur: Any, **more: Any) -> dict[str, Any]:
    return {
        "ph": "X",
        "cat": "cpu_op",
        "name": name,
        "pid": 1,
        "tid": 1,
        "ts": ts,
        "dur": dur,
    } | more


def _write(path: Path, events: list[Any], **head: Any) -> Path:
    path.write_text(json.dumps({**head, "traceEvents": events, "traceName": "made"}))
    return path


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        pytest.param([1.5, 2.001], [0, 501], id="floats"),
        pytest.param(
            ["1795510588720908.071", "1795510588720908.072"], [0, 1], id="text with 19 digits"
        ),
        pytest.param(
            [1795510588720908.25, 1795510588720909.25], [0, 1000], id="numbers since 1970"
        ),
    ],
)
def test_times_are_exact_to_the_nanosecond(
    tmp_path: Path, times: list[Any], expected: list[int]
) -> None:
    events = [_event(f"op{index}", time, times[0].__class__(1)) for index, time in enumerate(times)]
    trace = read_chrome(_write(tmp_path / "t.json", events))
    assert trace.spans.start_ns.tolist() == expected


def test_base_is_kept_where_the_file_says_it(tmp_path: Path) -> None:
    file = _write(tmp_path / "t.json", [_event("a", 10.5, 1)], baseTimeNanoseconds=10**18)
    assert read_chrome(file).base_ns == 10**18 + 10_500


def test_shapes_threads_and_devices(tmp_path: Path) -> None:
    events = [
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "Ascend Hardware"}},
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "Stream 3"}},
        _event("MatMul", 1, 2, args={"Input Dims": [[2, 3], []], "Input type": ["float", ""]}),
    ]
    spans = read_chrome(_write(tmp_path / "t.json", events)).spans
    assert spans.tracks[0].name == "Stream 3"
    assert spans.tracks[0].is_device
    assert json.loads(spans.texts[spans.shapes[0]]) == [[2, 3], []]


def test_begin_and_end_become_one_interval(tmp_path: Path) -> None:
    events = [
        {"ph": "B", "name": "outer", "pid": 1, "tid": 1, "ts": 1.0},
        {"ph": "B", "name": "inner", "pid": 1, "tid": 1, "ts": 2.0},
        {"ph": "E", "pid": 1, "tid": 1, "ts": 3.0},
        {"ph": "E", "pid": 1, "tid": 1, "ts": 5.0},
        {"ph": "E", "pid": 1, "tid": 1, "ts": 6.0},
    ]
    trace = read_chrome(_write(tmp_path / "t.json", events))
    found = {
        trace.spans.texts[n]: int(d)
        for n, d in zip(trace.spans.name, trace.spans.duration_ns, strict=True)
    }
    assert found == {"outer": 4000, "inner": 1000}
    assert "1 begin or end events have no partner" in trace.notes[0]


def test_lists_compressed_files_and_what_is_no_event(tmp_path: Path) -> None:
    events = [_event("a", 1.0, 1.0), {"ph": 5}, _event("b", 3.0, 1.0)]
    file = tmp_path / "t.json.gz"
    file.write_bytes(gzip.compress(json.dumps(events).encode()))
    trace = read_chrome(file)
    assert len(trace.spans) == 2
    assert "1 entries are no events" in trace.notes[0]


@pytest.mark.parametrize("share", [0.3, 0.5, 0.9])
def test_a_truncated_trace_is_read_up_to_its_end(tmp_path: Path, share: float) -> None:
    events = [
        _event(f'op "{index}" }},{{', index, 1.0, args={"x": [{}, {}]}) for index in range(50)
    ]
    whole = json.dumps({"traceEvents": events})
    file = tmp_path / "t.json"
    file.write_text(whole[: int(len(whole) * share)])
    trace = read_chrome(file)
    assert 50 * share - 3 < len(trace.spans) < 50 * share + 1
    assert "ends before its list of events does" in trace.notes[0]


def test_a_truncated_compressed_trace(tmp_path: Path) -> None:
    events = [_event(f"op{index * 7919}", index, 1.0) for index in range(5000)]
    file = tmp_path / "t.json.gz"
    content = gzip.compress(json.dumps(events).encode())
    file.write_bytes(content[: len(content) // 2])
    trace = read_chrome(file)
    assert 100 < len(trace.spans) < 5000
    assert "ends before" in trace.notes[0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b"", "holds no list `traceEvents`", id="empty"),
        pytest.param(b'{"traceEvents": []}', "holds no intervals", id="no events"),
        pytest.param(b"\x00\xff" * 50, "holds no list `traceEvents`", id="binary"),
        pytest.param(b'{"traceEvents": [{"a": tru}, {"ph": "X"}]}', "is not JSON", id="no JSON"),
    ],
)
def test_what_is_no_trace_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "t.json"
    file.write_bytes(content)
    with pytest.raises(ProfileError, match=message):
        read_chrome(file)


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
_names = st.text(alphabet='ab"\\{}[], :\n\u00e9', max_size=12)


@given(
    st.lists(st.tuples(_names, _json), min_size=1, max_size=20),
    st.integers(4, 300),
    st.sampled_from([None, 0, 2]),
)
def test_blocks_of_any_size_yield_the_same_events(
    tmp_path_factory: pytest.TempPathFactory,
    entries: list[tuple[str, Any]],
    size: int,
    indent: int | None,
) -> None:
    events = [_event(name, 1.0 * n, 1.0, args={"x": x}) for n, (name, x) in enumerate(entries)]
    file = tmp_path_factory.mktemp("blocks") / "t.json"
    content = {"traceEvents": events, "after": [{"name": "no event"}, {}]}
    file.write_text(json.dumps(content, indent=indent))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK_BYTES", size)
        found = Blocks(file, EventDecoder())
        names = [event.name for block in found for event in block]
    assert names == [name for name, _ in entries]
    assert found.is_complete


@given(st.integers(-(2**62), 2**62))
def test_written_times_are_read_back(time_ns: int) -> None:
    whole, _, decimals = microseconds(time_ns).lstrip("-").partition(".")
    assert (int(whole) * 1000 + int(decimals)) * (-1 if time_ns < 0 else 1) == time_ns


def test_rows_are_ordered_by_thread_and_time(tmp_path: Path) -> None:
    events = [_event("late", 5, 1), _event("outer", 1, 3), _event("inner", 1, 1)]
    events += [_event("other", 2, 1) | {"tid": "b"}]
    spans = read_chrome(_write(tmp_path / "t.json", events)).spans
    assert [spans.texts[n] for n in spans.name] == ["outer", "inner", "late", "other"]
    assert spans.start_ns.dtype == np.int64

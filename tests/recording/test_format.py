"""Recordings survive a round trip, a crash, and hostile files."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from isograd import Recording
from isograd.errors import RecordingError
from isograd.frameworks.base import ModuleInfo, ParameterInfo, Structure
from isograd.recording.format import Manifest, Slot
from isograd.recording.statistics import statistics_of
from isograd.recording.tensor_file import TensorFile
from isograd.recording.writer import CHUNK_BYTES, RecordingWriter
from isograd.tensors import TensorValue, bfloat16_from_bits

DTYPES = """float64 float32 float16 bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 complex64
complex128""".split()
STRUCTURE = Structure(
    "fake",
    (ModuleInfo("", "Net", False), ModuleInfo("a", "Linear", True, "3, 3", "net.py:4")),
    (ParameterInfo("a.w", "a", "w", (3, 3), "float32", True),),
)


def manifest(tensors: str = "full") -> Manifest:
    return Manifest(
        framework="fake",
        framework_version="1",
        isograd_version="0",
        python_version="3",
        numpy_version="1",
        device="cpu",
        machine="here",
        tensors=tensors,
        kernel="numpy",
        created="now",
        seeds={"fake": 1},
        changed=("hooks",),
    )


@st.composite
def tensor_values(draw: st.DrawFn) -> TensorValue:
    shape = draw(arrays.array_shapes(min_dims=0, min_side=0, max_dims=4, max_side=5))
    dtype = draw(st.sampled_from([*DTYPES, "bfloat16"]))
    if dtype == "bfloat16":
        return TensorValue(bfloat16_from_bits(draw(arrays.arrays("uint16", shape))), dtype)
    return TensorValue(draw(arrays.arrays(dtype, shape)), dtype)


def write(path: Path, values: list[TensorValue], names: list[str]) -> None:
    writer = RecordingWriter(path, manifest(), STRUCTURE)
    step = writer.begin(0)
    numbers = [step.add_value(value) for value in values]
    for name, number in zip(names, numbers, strict=False):
        call = step.begin_call("module", name, None, (Slot(name, number),))
        step.end_call(call, (Slot("", number),))
        step.set_named("after", name, number)
    writer.complete(step)
    writer.close({"status": "complete"})


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(tensor_values(), max_size=6), st.lists(st.text(), max_size=6, unique=True))
def test_round_trip(
    tmp_path_factory: pytest.TempPathFactory, values: list[TensorValue], names: list[str]
) -> None:
    path = tmp_path_factory.mktemp("round") / "recording"
    with np.errstate(all="ignore"):
        write(path, values, names)
        step = Recording(path).step(0)
        for number, value in enumerate(values):
            read = step.tensor(number)
            assert (read.dtype, read.shape) == (value.dtype, value.shape)
            assert read.values.dtype == value.values.dtype
            assert read.values.tobytes() == np.ascontiguousarray(value.values).tobytes()
            found, wanted = step.statistics(number), statistics_of(value)
            assert found is not None
            np.testing.assert_equal(dataclasses.astuple(found), dataclasses.astuple(wanted))
    count = min(len(values), len(names))
    assert [call.name for call in step.calls] == names[:count]
    assert list(step.named("after")) == names[:count]


def test_what_is_written_is_what_safetensors_reads(tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    write(tmp_path / "r", [TensorValue(values, "float32")], ["a"])
    loaded = load_file(tmp_path / "r/steps/000000/tensors-000.safetensors")
    np.testing.assert_array_equal(loaded["value_000000"], values)


def test_structure_and_manifest(tmp_path: Path) -> None:
    write(tmp_path / "r", [], [])
    recording = Recording(tmp_path / "r")
    assert recording.structure == STRUCTURE
    assert recording.manifest == dataclasses.replace(manifest(), status="complete")


def test_more_than_the_buffers_hold(tmp_path: Path) -> None:
    writer = RecordingWriter(tmp_path / "r", manifest(), STRUCTURE)
    for number in range(3):
        step = writer.begin(number)
        for part in range(6):
            step.add(np.full(CHUNK_BYTES // 8 + 1, part, np.float32), "float32")
        step.add(np.full(CHUNK_BYTES // 4 + 9, 7, np.float32), "float32")
        writer.complete(step)
    writer.close({})
    for recorded in Recording(tmp_path / "r"):
        assert [float(recorded.tensor(n).values[-1]) for n in range(7)] == [0, 1, 2, 3, 4, 5, 7]


def test_statistics_only_has_no_elements(tmp_path: Path) -> None:
    writer = RecordingWriter(tmp_path / "r", manifest("statistics"), STRUCTURE)
    step = writer.begin(0)
    step.add(np.ones(3, np.float32), "float32")
    step.add_missing("sparse", (2, 2), "sparse tensors have no elements")
    writer.complete(step)
    writer.close({})
    recorded = Recording(tmp_path / "r").step(0)
    with pytest.raises(RecordingError, match=r'statistics only.*tensors="full"'):
        recorded.tensor(0)
    assert recorded.statistics(1) is None
    with pytest.raises(RecordingError, match="sparse tensors have no elements"):
        recorded.tensor(1)


def test_the_folder_must_be_new(tmp_path: Path) -> None:
    write(tmp_path / "r", [], [])
    with pytest.raises(RecordingError, match=r"exists and is not empty\. Give a folder"):
        RecordingWriter(tmp_path / "r", manifest(), STRUCTURE)


def test_a_failing_disk_is_reported(tmp_path: Path) -> None:
    writer = RecordingWriter(tmp_path / "r", manifest(), STRUCTURE)
    step = writer.begin(0)
    step.add(np.ones(3, np.float32), "float32")
    step.folder.write_text("in the way")
    writer.complete(step)
    with pytest.raises(RecordingError, match="could not be written"):
        writer.close({"status": "complete"})
    assert Recording(tmp_path / "r").manifest.status == "failed"


def test_an_abandoned_step_leaves_nothing(tmp_path: Path) -> None:
    writer = RecordingWriter(tmp_path / "r", manifest(), STRUCTURE)
    step = writer.begin(0)
    step.add(np.ones(3, np.float32), "float32")
    writer.abandon(step)
    writer.close({})
    assert not list((tmp_path / "r/steps").iterdir())


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    write(tmp_path / "r", [TensorValue(np.arange(8, dtype=np.float32), "float32")], ["a"])
    return tmp_path / "r"


def change(path: Path, **fields: Any) -> None:
    data = json.loads(path.read_text())
    data.update(fields)
    path.write_text(json.dumps(data))


@pytest.mark.parametrize(
    "fields",
    [
        {"values": [["float32", [8], "../../../etc/passwd", ""]]},
        {"values": [["float32", [8], "/etc/passwd", ""]]},
        {"values": [["float32", [8], "tensors-000.safetensors/../x", ""]]},
        {"values": [["float32", [-8], "tensors-000.safetensors", ""]]},
        {"values": [["float32", [True], "tensors-000.safetensors", ""]]},
        {"values": [["float32"]]},
        {"values": 3},
        {"gradients": [[0, 9]]},
        {"gradients": [[-1, 0]]},
        {"named": {"after": {"x": 1}}},
        {"named": []},
        {"calls": [["module", "a", 0, 0, [], []]]},
        {"calls": [["module", "a", 0, None, [["", 5]], []]]},
        {"calls": [[]]},
        {"files": None},
        {"number": "x"},
        {"loss": "many"},
    ],
)
def test_malformed_tables_are_refused(recorded: Path, fields: dict[str, Any]) -> None:
    change(recorded / "steps/000000/step.json", **fields)
    with pytest.raises(RecordingError, match=r"step\.json.*record it again"):
        Recording(recorded).step(0)


def test_an_unknown_schema_is_refused(recorded: Path) -> None:
    change(recorded / "manifest.json", schema="isograd/recording/2")
    with pytest.raises(RecordingError, match=r"'isograd/recording/2'.*Read it with the version"):
        Recording(recorded)


def test_no_recording(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="Give the folder that a recording was written to"):
        Recording(tmp_path)


def test_a_missing_step_names_those_there(recorded: Path) -> None:
    with pytest.raises(RecordingError, match=r"has no step 3\. It has these: 0\."):
        Recording(recorded).step(3)


@pytest.mark.parametrize("kept", [0, 4, 40, 100])
def test_truncated_files_are_refused(recorded: Path, kept: int) -> None:
    path = recorded / "steps/000000/tensors-000.safetensors"
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(RecordingError, match=r"tensors-000\.safetensors.*record it again"):
        Recording(recorded).step(0).tensor(0)


def test_other_tensors_than_the_table_says_are_refused(recorded: Path) -> None:
    change(
        recorded / "steps/000000/step.json",
        values=[["float32", [4], "tensors-000.safetensors", ""]],
    )
    with pytest.raises(RecordingError, match=r"shape \(8,\), and step\.json says \(4,\)"):
        Recording(recorded).step(0).tensor(0)


def test_links_are_refused(recorded: Path) -> None:
    path = recorded / "steps/000000/tensors-000.safetensors"
    path.rename(recorded / "elsewhere")
    path.symlink_to(recorded / "elsewhere")
    with pytest.raises(RecordingError, match="is a link"):
        Recording(recorded).step(0).tensor(0)


def header(**fields: Any) -> bytes:
    entry = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8], **fields}
    text = json.dumps({"x": entry}).encode()
    return struct.pack("<Q", len(text)) + text + bytes(8)


@pytest.mark.parametrize(
    "content",
    [
        header(shape=[3]),
        header(shape=[2, -1]),
        header(shape=[2.0]),
        header(shape="2"),
        header(shape=[1 << 40, 1 << 40, 0, 1]),
        header(dtype="F4"),
        header(dtype=["F32"]),
        header(data_offsets=[0, 800]),
        header(data_offsets=[8, 0]),
        header(data_offsets=[4, 12]),
        header(data_offsets=[0]),
        struct.pack("<Q", 1 << 62) + b"{}",
        struct.pack("<Q", 2) + b"[]",
        struct.pack("<Q", 4) + b"\xff{}{",
        struct.pack("<Q", 20_000) + b"[" * 20_000,
        struct.pack("<Q", 14) + b'{"x":1,"x":2} ',
        struct.pack("<Q", 2) + b"{}" + bytes(8),
    ],
)
def test_hostile_tensor_files_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "hostile.safetensors"
    path.write_bytes(content)
    with pytest.raises(RecordingError, match=r"hostile\.safetensors"):
        TensorFile(path)


@given(st.binary(max_size=200))
def test_noise_is_refused_or_read(tmp_path_factory: pytest.TempPathFactory, noise: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "noise.safetensors"
    path.write_bytes(noise)
    names: list[str] = []
    with contextlib.suppress(RecordingError):
        names = list(TensorFile(path))
    assert len(names) == len(set(names))

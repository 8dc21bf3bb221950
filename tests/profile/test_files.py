"""Every file of a profiler is read, or refused with a reason."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from isograd.errors import ProfileError
from isograd.profile.analyse.analysis import analyse
from isograd.profile.analyse.breakdown import Limit
from isograd.profile.model import Phase
from isograd.profile.read.open import REFUSED, open_profile

DATA = Path(__file__).parent / "data"
FILES = sorted(file for file in DATA.rglob("*") if file.is_file() and file.suffix != ".md")


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(DATA)))
def test_every_file_is_read_or_refused_with_a_reason(file: Path) -> None:
    reason = next((why for pattern, why in REFUSED if re.fullmatch(pattern, file.name)), None)
    if reason is None and not file.name.startswith("framework_raw"):
        profile = open_profile(file)
        holds = (profile.spans, profile.operators, profile.queues, profile.queue_waits)
        more = (len(profile.steps), profile.ranks, profile.links, profile.notes)
        assert any((*holds, *more, profile.flops == profile.flops))
    else:
        with pytest.raises(ProfileError, match="is not read: " + re.escape(reason or "it holds")):
            open_profile(file)


def test_a_folder_joins_its_files() -> None:
    profile = open_profile(DATA / "mindinsight" / "run_2")
    assert profile.device == "Ascend"
    assert len(profile.steps) == 1
    matmul = [operator for operator in analyse(profile).operators if operator.name == "MatMul"]
    assert sum(operator.self_s for operator in matmul) == pytest.approx(0.02065, rel=0.01)
    assert {queue.name for queue in profile.queues} >= {"Batch", "Map", "device queue"}
    assert [Path(one.file).name for one in profile.refused] != []


def test_ranks_of_a_cluster() -> None:
    analysis = analyse(open_profile(DATA / "mindinsight" / "cluster_propose"))
    assert [times.rank for times in analysis.profile.ranks] == [0, 1, 2, 3]
    assert analysis.communication is not None
    assert analysis.communication.slow_compute is not None
    assert analysis.communication.slow_compute.rank == 2
    assert {(link.source, link.target) for link in analysis.profile.links} >= {(0, 1), (1, 0)}
    assert len(analysis.profile.collectives) > 0


def test_steps_of_ascend_count_in_ticks_of_ten_nanoseconds() -> None:
    file = DATA / "mindinsight" / "run_2/normal_run/profiler/step_trace_raw_1_detail_time.csv"
    steps = open_profile(file).steps
    assert steps.seconds.tolist() == [pytest.approx(2370905 * 1e-8)]
    assert steps.phase(Phase.FORWARD)[0] == pytest.approx(2366808 * 1e-8)


def test_mindspores_text_and_json_hold_the_same_operators() -> None:
    text = open_profile(DATA / "mindspore" / "cpu_op_execute_timestamp_0.txt")
    table = open_profile(DATA / "mindspore" / "cpu_op_type_info_0.csv")
    by_type = {one.name: one for one in analyse(text).operators}
    for operator in table.operators:
        if operator.name in ("Log", "Exp", "SubExt", "MatMul"):
            same = sum(o.self_s for o in analyse(text).operators if o.name == operator.name)
            assert same == pytest.approx(operator.self_s, rel=1e-3)
    assert "MatMul" in by_type


def test_a_bottleneck_of_a_pipeline_is_named() -> None:
    analysis = analyse(
        open_profile(DATA / "mindinsight" / "profiler" / "pipeline_profiling_0.json")
    )
    assert analysis.pipeline is not None
    assert analysis.pipeline.bottleneck == 3
    assert "ImageFolder" in analysis.pipeline.reason


_KERNELS = """\
Step ID,Name,Type,Accelerator Core,Start Time(us),Duration(us),Input Shapes,Input Data Types,\
Stream ID
1,a,MatMulV2,AI_CORE,1795510588720908.071,10.500,"256,256;256,256",FLOAT16;FLOAT16,3
1,b,Cast,AI_VECTOR_CORE,1795510588720928.571,4.25,"256,256",FLOAT,3
"""
_STEPS = """\
Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,\
Communication(Not Overlapped and Exclude Receive),Preparing
0,1,700.0,200.0,50.0,250.0,100.0,900.0,0,200.0,40.0
0,2,700.0,200.0,50.0,250.0,100.0,900.0,0,200.0,40.0
"""


def test_a_folder_of_mindspore_2(tmp_path: Path) -> None:
    output = tmp_path / "host_1_ascend_ms" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    (output / "kernel_details.csv").write_text(_KERNELS)
    (output / "step_trace_time.csv").write_text(_STEPS)
    (output / "memory_record.csv").write_text(
        "Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB)\n"
        "MindSpore,1795510588720908.071,1.5,4\nMindSpore,1795510588720909.071,2.5,4\n"
    )
    (output / "communication.json").write_text(
        '{"step1": {"collective": {"hcom_allReduce_": {"Communication Time Info": '
        '{"Start Timestamp(us)": 5.0, "Elapse Time(ms)": 0.2}}}}}'
    )
    analysis = analyse(open_profile(tmp_path))
    assert analysis.limit is Limit.COMPUTE
    assert analysis.step_s == pytest.approx(1e-3)
    assert analysis.breakdown.of(Limit.COMMUNICATION) == pytest.approx(2e-4)
    assert analysis.memory is not None
    assert analysis.memory.peak_bytes == int(2.5 * 2**20)
    spans = analysis.profile.spans
    assert spans is not None
    assert spans.start_ns.tolist() == [0, 20_500]
    assert [(o.name, o.self_s) for o in analysis.operators] == [
        ("MatMulV2", pytest.approx(10.5e-6)),
        ("Cast", pytest.approx(4.25e-6)),
    ]


_HCCL = "step_num,communication_cost,wait_cost,link_info\n1,x,1,{}\n"
_RECORD = '{"schema": "isograd/profile-record/1"}'


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        pytest.param("step_trace_raw_0_detail_time.csv", "a,b\n", "no column", id="columns"),
        pytest.param("pipeline_profiling_0.json", "[]", "no list op_info", id="other JSON"),
        pytest.param("pipeline_profiling_0.json", "{", "no JSON", id="truncated JSON"),
        pytest.param("device_queue_profiling_0.txt", "0 x\n", "kind sub step value", id="text"),
        pytest.param("hccl_raw_0.csv", _HCCL,
                     "'x' where a number is expected", id="a word for a number"),
        pytest.param("profile.json", '{"schema": "other"}', "schema 'other'", id="schema"),
        pytest.param("profile.json", _RECORD, "damaged", id="empty"),
        pytest.param("notes.txt", "hello", "no profiler's file has this name", id="a stranger"),
    ],
)  # fmt: skip
def test_malformed_files_say_what_and_where(
    tmp_path: Path, name: str, content: str, message: str
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(ProfileError, match=message):
        open_profile(tmp_path / name)


def test_a_folder_without_profiles_says_what_it_looked_at(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(ProfileError, match=r"holds no profile \(notes.txt: "):
        open_profile(tmp_path)


def test_queue_fill_is_unknown_without_samples() -> None:
    profile = open_profile(DATA / "mindinsight" / "profiler" / "minddata_pipeline_raw_0.csv")
    fills = {queue.name: queue.fill for queue in profile.queues}
    assert np.isnan(fills["Batch"])
    assert fills["Shuffle"] == pytest.approx(20 / 64)

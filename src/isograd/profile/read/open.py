"""A file or a folder of a profiler becomes one `Profile`: which reader reads which file."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from isograd.errors import IsogradError, ProfileError
from isograd.profile.model import Profile, Refusal
from isograd.profile.read import (
    chromes,
    memory_files,
    operator_files,
    pipelines,
    recorded,
    step_files,
)
from isograd.profile.read.chromes import Advance
from isograd.profile.read.merge import merge

Reader = Callable[[Path], Profile]

#: Name of a file → its reader; the first that matches.
READERS: tuple[tuple[str, Reader], ...] = (
    (r"profile\.json", recorded.recorded),
    (r"step_trace_raw_\d+_detail_time\.csv", step_files.step_trace_raw),
    (r"step_trace_time.*\.csv", step_files.step_trace_time),
    (r"(ascend|gpu)_cluster_analyse_.*\.csv", step_files.cluster_analysis),
    (r"hccl_raw_\d+\.csv", step_files.hccl_raw),
    (r"communication_matrix\.json", step_files.communication_matrix),
    (r"communication\.json", step_files.communication),
    (r"flops_summary_\d+\.json", step_files.flops_summary),
    (r"kernel_details.*\.csv", operator_files.kernel_details),
    (r"operator_details.*\.csv", operator_files.operator_details),
    (r"op_statistic.*\.csv", operator_files.operator_statistics),
    (r"api_statistic.*\.csv", operator_files.api_statistics),
    (r"cpu_op_type_info_\d+\.csv", operator_files.cpu_operator_types),
    (r"cpu_op_detail_info_\d+\.csv", operator_files.cpu_operator_details),
    (r"cpu_op_execute_timestamp_\d+\.txt", operator_files.cpu_timestamps),
    (r"aicore_intermediate_\d+_type\.csv", operator_files.operators_by_type),
    (r"aicore_intermediate_\d+_detail\.csv", operator_files.operators_by_name),
    (r"aicpu_intermediate_\d+\.csv", operator_files.host_operators),
    (r"output_data_preprocess_aicpu_\d+\.txt", operator_files.host_operators_text),
    (r"output_op_compute_time_detail_\d+\.txt", operator_files.compute_times_by_type),
    (r"output_op_compute_time_\d+\.txt", operator_files.compute_times),
    (r"output_timeline_data_\d+\.txt", operator_files.timeline_text),
    (r"dynamic_shape_info_\d+\.json", operator_files.dynamic_shapes),
    (r"framework_raw_\d+\.csv", operator_files.framework_raw),
    (r"pipeline_profiling_\d+\.json", pipelines.pipeline_profiling),
    (r"minddata_pipeline_raw_\d+\.csv", pipelines.minddata_pipeline),
    (r"minddata_pipeline_summary_\d+\.(csv|json)", pipelines.minddata_summary),
    (r"(device_queue|dataset_iterator)_profiling_\d+\.txt", pipelines.device_queue),
    (r"minddata_(aicpu|getnext_profiling)_\d+\.txt", pipelines.get_next),
    (r"minddata_cpu_utilization_\d+\.json", pipelines.cpu_utilization),
    (r"dataset.*\.csv", pipelines.dataset_statistics),
    (r"(memory_record.*\.csv|cpu_ms_memory_record_\d+\.txt)", memory_files.memory_record),
    (r"operator_memory.*\.csv", memory_files.operator_memory),
)

#: Name of a file → why it is not read.
REFUSED: tuple[tuple[str, str], ...] = (
    (r"flops_scope_\d+\.json", "a drawing of FLOPs by scope; flops_summary has the sum"),
    (r"flops_\d+\.txt", "FLOPs of single operators; flops_summary has the sum"),
    (r".*timeline_summary_\d+\.json", "counts of what the timeline file holds"),
    (r"step_trace_point_info.*\.json", "names of the operators that bound a pass, no times"),
    (r"min_cycle_counter_\d+\.txt", "the timeline's origin, which is subtracted anyway"),
    (r"host_start\.log.*", "the host's clock at the start; ranks are compared by durations"),
    (r"output_format_data_hwts_\d+\.txt", "raw task events; output_timeline_data is made of them"),
    (r"parallel_strategy_\d+\.json", "a graph of operators and their sharding, no times"),
    (r"profiler_info_\d+\.json", "the profiler's settings, no times"),
    (r"scope_map_\d+\.json", "scopes of a drawing; operator names hold them"),
    (r"ascend_marey_timeline_\d+\.json", "a drawing over ranks of what the timeline files hold"),
    (r"cpu_framework_\d+\.txt", "shapes without times; the trace holds the times"),
    (r"run\.json", "what isograd keeps of a run; its folder holds the times"),
    (r".*\.pb", "a graph, no times"),
    (r".*\.db", "a database of CANN; the CSV files beside it hold the same"),
    (r"LICENSE.*|.*\.log", "no profile"),
)
_TRACE = re.compile(r"(.*trace.*|.*timeline_display.*|.*)\.json(\.gz)?", re.IGNORECASE)
#: Where the recorder puts what the framework's profiler writes.
TRACES = ("trace.json", "trace.json.gz")
FRAMEWORK_FOLDER = "framework"
#: Files of a folder beyond this number are not looked at.
MOST_FILES = 10_000


def open_profile(path: Path, advance: Advance | None = None) -> Profile:
    """Read a file, a profiler's folder or a run; raise ProfileError where nothing can be read."""
    if not path.exists():
        raise ProfileError(f"{path} does not exist", "Give a trace, a profiler's folder or a run.")
    files = [path] if path.is_file() else _files(path)
    parts: list[Profile] = []
    refused: list[Refusal] = []
    for file in files:
        part = _read_or_refuse(file, advance, is_alone=path.is_file())
        if isinstance(part, Refusal):
            refused.append(part)
        else:
            parts.append(part)
    if not parts:
        reasons = "; ".join(f"{Path(r.file).name}: {r.reason}" for r in refused[:3])
        raise ProfileError(
            f"{path} holds no profile" + (f" ({reasons})" if reasons else ""),
            "Give a Chrome trace, MindSpore's *_ascend_ms folder, a MindInsight folder, or a run "
            "that `isograd profile --out` recorded.",
        )
    found = merge(str(path), parts, tuple(refused))
    if not _holds_something(found):
        raise ProfileError(
            f"{path} is not read: it holds shapes or names and no times",
            "Give the folder that it lies in.",
        )
    return found


def _holds_something(found: Profile) -> bool:
    parts = (found.operators, found.queues, found.queue_waits, found.ranks, found.links)
    is_known = found.spans is not None or found.memory is not None or found.flops == found.flops
    return is_known or any(parts) or bool(len(found.steps) or len(found.collectives) or found.notes)


def _files(folder: Path) -> list[Path]:
    """The files of a folder; of a run that isograd recorded, only what belongs to its profile."""
    own = folder / recorded.FILE
    if own.is_file():
        traces = [file for file in (folder / name for name in TRACES) if file.is_file()]
        inner = folder / FRAMEWORK_FOLDER
        return [own, *traces, *(_files(inner) if inner.is_dir() else ())]
    found = sorted(file for file in folder.rglob("*") if file.is_file() and not file.is_symlink())
    return found[:MOST_FILES]


def _read_or_refuse(file: Path, advance: Advance | None, *, is_alone: bool) -> Profile | Refusal:
    try:
        return _read(file, advance)
    except IsogradError as error:
        if is_alone:
            raise
        return Refusal(str(file), error.what.removeprefix(f"{file} is not read: "))


def _read(file: Path, advance: Advance | None) -> Profile:
    for pattern, reader in READERS:
        if re.fullmatch(pattern, file.name):
            return reader(file)
    for pattern, reason in REFUSED:
        if re.fullmatch(pattern, file.name):
            raise ProfileError(f"{file} is not read: {reason}", "Give the folder that it lies in.")
    if _TRACE.fullmatch(file.name):
        return chromes.trace(file, advance)
    raise ProfileError(
        f"{file} is not read: no profiler's file has this name",
        "Give a Chrome trace (.json, .json.gz) or a file that MindSpore's profiler wrote.",
    )

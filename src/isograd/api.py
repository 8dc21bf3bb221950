"""The verbs from Python: each takes its options by name and returns its report.

The keyword arguments are those of the command line.  A report is what `--json` draws: its
`to_json()` is that text.  Where the command would end with exit status 2, `IsogradError` is raised.
Nothing is imported before it is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from isograd.compare.files.curve_model import CurvesReport
    from isograd.compare.files.model import FilesReport
    from isograd.convert.model import ConvertReport
    from isograd.model import DiagnoseReport, VerifyReport
    from isograd.progress import Progress
    from isograd.scan.model import ScanReport
    from isograd.verify.case import Case
    from isograd.weights.correspondence import ParamsReport
    from isograd.weights.model import ConversionReport

File = str | Path


def verify(
    case: File | Case,
    *,
    seed: int = 0,
    keep: File | None = None,
    stage: Sequence[str] = (),
    module: str | None = None,
    progress: Progress | None = None,
) -> VerifyReport:
    """Is the port equivalent, stage by stage?  Where does it first differ, and why?

    case: the path of a case file, or what `isograd.verify.case.read_case` returns.
    keep: a new or empty folder for the recordings of both sides.
    stage: run only these stages; module: compare only this module of the reference and those in it.
    """
    from isograd.files import prepare_folder
    from isograd.progress import SilentProgress
    from isograd.verify.ladder import verify_case
    from isograd.verify.part import part_of

    part = part_of((stage,) if isinstance(stage, str) else stage, module)
    place = None if keep is None else Path(keep)
    if place is not None:
        prepare_folder(place)
    listener = progress or SilentProgress()
    return verify_case(_case(case), seed=seed, keep=place, progress=listener, part=part)


def diagnose(
    case: File | Case,
    module: str,
    *,
    mode: Literal["train", "eval"] | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> DiagnoseReport:
    """Why does this one module differ, and which hypotheses were tried on it?

    module: the reference's name; "network" is the root's own code, "loss" the loss alone.
    mode: the first of the case's modes where it is not given.
    """
    from isograd.progress import SilentProgress
    from isograd.verify.diagnose_case import diagnose_case

    listener = progress or SilentProgress()
    return diagnose_case(_case(case), module, mode=mode, seed=seed, progress=listener)


def scan(
    path: File,
    *,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    exclude: Sequence[str] = (),
    with_ignored: bool = False,
    no_cache: bool = False,
) -> ScanReport:
    """What in this PyTorch code is supported, differs, is missing, or is a hazard?

    select, ignore: globs of the codes or APIs to report, and not to report.
    exclude: globs of files and folders to leave out; with_ignored: read what git ignores, too.
    """
    from isograd.scan.run import scan_path
    from isograd.scan.selection import Selection

    selection = Selection(select, ignore, exclude, with_ignored)
    return scan_path(Path(path), use_cache=not no_cache, selection=selection)


def convert(
    path: File,
    out: File | None = None,
    *,
    check: bool = False,
    target: Literal["ops", "mint"] = "ops",
    force: bool = False,
    eager: bool = False,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    exclude: Sequence[str] = (),
    with_ignored: bool = False,
) -> ConvertReport:
    """Rewrite PyTorch code for MindSpore.

    out: where the port appears; check: write nothing, and report what would be left to do.
    eager: leave training loops as they are.  select, ignore, exclude, with_ignored: as of `scan`.
    Raises `UsageError` unless exactly one of the two is given.
    """
    from isograd.convert.conversion import Options
    from isograd.convert.run import convert_path
    from isograd.errors import UsageError
    from isograd.scan.selection import Selection

    if out is None and not check:
        raise UsageError("no place for the port is given", "Give out, or check=True.")
    if out is not None and check:
        raise UsageError("check writes nothing, and out is given", "Give one of the two.")
    place = None if out is None else Path(out)
    selection = Selection(select, ignore, exclude, with_ignored)
    return convert_path(
        Path(path), place, Options(target, force=force, selection=selection, eager=eager)
    )


def params(first: File, second: File | None = None, *, names_only: bool = False) -> ParamsReport:
    """What does this checkpoint hold, is it sound, and which tensor is which of another?

    names_only: do not read the numbers.
    """
    from isograd.weights.run import params_of

    return params_of(str(first), None if second is None else str(second), read=not names_only)


def weights(
    source: File,
    output: File,
    *,
    to: Literal["torch", "mindspore", "keep"] | None = None,
    from_: Literal["torch", "mindspore"] | None = None,
    dtype: Literal["float64", "float32", "float16", "bfloat16"] | None = None,
    allow_overflow: bool = False,
    rename: Mapping[str, str] | None = None,
    map: File | None = None,
    write_map: File | None = None,
    into: str | None = None,
    python: str | None = None,
    partial: bool = False,
    part: str | None = None,
    shard_size: str | None = None,
    crc: bool = False,
    no_verify: bool = False,
    force: bool = False,
) -> ConversionReport:
    """How does this checkpoint become one that the other framework loads?

    rename: a tensor's or a module's other name, by its name; shard_size: as "5GB".  The other
    options are those of `isograd weights --help`.  Nothing is written where it raises.
    """
    from isograd.weights.run import WeightsRequest, convert_weights

    return convert_weights(
        WeightsRequest(
            str(source),
            Path(output),
            names=to,
            origin=from_,
            dtype=dtype,
            allow_overflow=allow_overflow,
            renames=rename or {},
            map_file=None if map is None else Path(map),
            write_map=None if write_map is None else Path(write_map),
            into=into,
            python=python,
            is_partial=partial,
            part=part,
            shard_size=shard_size,
            has_checksum=crc,
            is_verified=not no_verify,
            is_forced=force,
        )
    )


def compare(
    a: File,
    b: File | None = None,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    envelope: File | Mapping[str, float] | None = None,
    map: File | Mapping[str, str] | None = None,
    only: Sequence[str] = (),
    ignore: Sequence[str] = (),
    with_states: bool = False,
    consecutive: bool | None = None,
    between_ranks: bool = False,
    steps: tuple[int, int | None] | None = None,
    series: str | None = None,
    no_distribution: bool = False,
    resume: File | None = None,
    threads: int = 0,
    engine: Literal["threads", "dask"] = "threads",
    scheduler: str | None = None,
) -> FilesReport | CurvesReport:
    """Two checkpoints, tensor folders, dumps or loss curves: where do they differ?

    a is the reference; b may be left out with between_ranks.  Two logs are compared as loss curves,
    for which only steps (first and last, both included) and series count.
    envelope, map: the values, or the file that holds them.
    with_states: compare what lies beside the networks, too, such as states of an optimizer.
    """
    from isograd.compare.files.options import CompareOptions
    from isograd.compare.run import are_logs, check_count, compare_tensors, with_rules

    inputs = [str(name) for name in (a, b) if name is not None]
    check_count(inputs, is_one_enough=between_ranks)
    if are_logs(inputs):
        from isograd.compare.files.curves import compare_logs

        return compare_logs(Path(inputs[0]), Path(inputs[1]), steps, series)
    options = CompareOptions(
        only=tuple(only),
        ignore=tuple(ignore),
        with_states=with_states,
        threads=threads,
        journal=None if resume is None else Path(resume),
        is_consecutive=consecutive,
        is_counting=not no_distribution,
        engine=engine,
        scheduler=scheduler,
    )
    options = with_rules(
        options,
        inputs,
        rtol=rtol,
        atol=atol,
        envelope=Path(envelope) if isinstance(envelope, str) else envelope,
        names=Path(map) if isinstance(map, str) else map,
    )
    return compare_tensors(inputs, options, is_between_ranks=between_ranks)


def _case(case: File | Case) -> Path | Case:
    return Path(case) if isinstance(case, str) else case

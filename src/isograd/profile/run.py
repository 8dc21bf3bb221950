"""The entry of `isograd profile`: one run, or two side by side; or a training to be recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    from isograd.profile.analyse.analysis import Analysis
    from isograd.profile.record.recorder import ProfileRecorder
    from isograd.profile.report import ProfileReport
    from isograd.progress import Progress


@overload
def profile(
    run: str | Path,
    other: str | Path | None = None,
    *,
    out: str | Path | None = None,
    arguments: Sequence[str] = (),
    steps: int | None = None,
    try_: bool = False,
    peak: tuple[float, float] | None = None,
    progress: Progress | None = None,
) -> ProfileReport: ...


@overload
def profile(
    run: Any,
    other: str | Path,
    *,
    steps: int | None = None,
    optimizer: Any = None,
    progress: Progress | None = None,
) -> ProfileRecorder: ...


def profile(
    run: Any,
    other: str | Path | None = None,
    *,
    out: str | Path | None = None,
    arguments: Sequence[str] = (),
    steps: int | None = None,
    try_: bool = False,
    peak: tuple[float, float] | None = None,
    optimizer: Any = None,
    progress: Progress | None = None,
) -> ProfileReport | ProfileRecorder:
    """Where does the time go, what is the bottleneck, what would change it?

    With paths: analyse a run, a trace or a profiler's folder; with two, side by side, the first
    being the one in question. With out, run is a script that is recorded into that new folder and
    then judged. peak: GFLOP/s and GB/s that the machine reaches, instead of what a recording
    measured. Raises ProfileError where a file holds no profile.

    With a network: `with isograd.profile(model, "runs/a", steps=30): train()` records a training
    into a new folder. steps: training steps that are looked at, warm-up included, at least 8.
    """
    if isinstance(run, (str, Path)) and out is not None:
        return profile_script(
            Path(run), Path(out), arguments, steps=steps, try_=try_, progress=progress
        )
    if isinstance(run, (str, Path)):
        second = None if other is None else Path(other)
        return profile_paths(Path(run), second, peaks=peak, progress=progress)
    from isograd.errors import UsageError
    from isograd.profile.record.recorder import DEFAULT_STEPS, ProfileRecorder

    if other is None:
        raise UsageError("no folder for the recording is given", "Give the path of a new folder.")
    return ProfileRecorder(run, Path(other), steps=steps or DEFAULT_STEPS, optimizer=optimizer)


def profile_script(
    script: Path,
    out: Path,
    arguments: Sequence[str] = (),
    *,
    steps: int | None = None,
    try_: bool = False,
    progress: Progress | None = None,
) -> ProfileReport:
    """Record the training of an unchanged script, and judge it; try_: try settings, too."""
    from isograd.profile.record.plan import DEFAULT_STEPS
    from isograd.profile.record.script import record_script
    from isograd.runs.crash import crash_notice

    with crash_notice(
        f"isograd: the process ended while it ran {script}: it crashed in native code, was killed, "
        "or called os._exit. Run the script alone first. If it ends well there, `python -X "
        "faulthandler -m isograd profile …` shows the line."
    ):
        record_script(script, arguments, out, steps or DEFAULT_STEPS)
    report = profile_paths(out, progress=progress)
    if not try_:
        return report
    from isograd.profile.trying import try_settings

    if progress is not None:
        progress.stage("trying settings")
    tried = try_settings(script, arguments, report.analysis.profile.framework)
    findings = sorted((*report.findings, *tried), key=lambda one: (one.is_note, -one.seconds))
    return replace(report, findings=tuple(findings))


def profile_paths(
    run: Path,
    other: Path | None = None,
    *,
    peaks: tuple[float, float] | None = None,
    progress: Progress | None = None,
) -> ProfileReport:
    """Read, analyse and judge one run, or two side by side.

    peaks: GFLOP/s and GB/s of the machine, instead of what a recording measured.
    """
    from isograd.profile.against import compare
    from isograd.profile.model import Peaks
    from isograd.profile.report import ProfileReport
    from isograd.profile.rules.catalogue import apply_rules

    analysis = _analysed(run, progress)
    if peaks is not None:
        given = Peaks(peaks[0] * 1e9, peaks[1] * 1e9, "as given")
        analysis = replace(analysis, profile=replace(analysis.profile, peaks=given))
    against = None if other is None else compare(analysis, _analysed(other, progress))
    return ProfileReport(analysis, apply_rules(analysis), against)


def _analysed(path: Path, progress: Progress | None) -> Analysis:
    from isograd.profile.analyse.analysis import analyse
    from isograd.profile.read.open import open_profile
    from isograd.progress import SilentProgress

    listener = progress or SilentProgress()
    listener.stage(f"reading {path.name}")

    def advance(done: int, total: int) -> None:
        listener.advance(done, total, path.name, "bytes")

    found = open_profile(path, advance)
    listener.stage("analysing")
    return analyse(found)

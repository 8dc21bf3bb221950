"""`with isograd.profile(model, "runs/a", steps=30):` — what happens in which step.

A framework is looked at only if it has been imported; what differs is behind `Side`.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from isograd.errors import IsogradError, ProfileError, UsageError
from isograd.frameworks.base import Structure
from isograd.profile.model import (
    Collectives,
    Compilation,
    Host,
    Loader,
    MemoryPeak,
    ModuleTime,
    Peaks,
    Phase,
    Profile,
    Queue,
    SourceOperator,
    Steps,
)
from isograd.profile.record.beside import Beside
from isograd.profile.record.marks import Collections, StepMarks
from isograd.profile.record.plan import DEFAULT_STEPS, DONE, windows
from isograd.profile.record.sampler import Sampler
from isograd.profile.record.schedule import processors

if TYPE_CHECKING:
    from isograd.profile.record.mindspore_pipeline import PipelineWatch

__all__ = ["DEFAULT_STEPS", "ProfileRecorder", "Side"]


class Side(Protocol):
    """Observes one framework. attach may raise before anything changes; detach undoes all.

    has_queues: whether the window `queues` shows those of the data pipeline.
    """

    framework: str
    has_queues: bool
    version: str
    notes: list[str]

    def attach(self, recorder: ProfileRecorder) -> None:
        """Call the recorder's begin, end and updated from now on."""

    def detach(self) -> None:
        """Undo attach; a second call does nothing."""

    def device(self) -> str:
        """CPU, GPU or Ascend."""

    def settle(self) -> None:
        """Wait until the device has done what was issued."""

    def begin_window(self, name: str, folder: Path) -> None:
        """Prepare for steps of this window."""

    def end_window(self, name: str, folder: Path) -> None:
        """Keep what the window has shown, and undo begin_window."""

    def structure(self) -> Structure | None:
        """Modules and parameters."""

    def modules(self) -> tuple[ModuleTime, ...]:
        """Module times of the window `modules`, per step."""

    def source_operators(self) -> tuple[SourceOperator, ...]:
        """Operators of the window `source`."""

    def memory_peak(self) -> MemoryPeak | None:
        """What the step of the window `memory` held at its peak, None where it did not run."""

    def peaks(self) -> Peaks:
        """What the machine reaches at most, measured now."""

    def float64_flops_per_s(self) -> float:
        """What it reaches in products of float64, measured now."""

    def queues(self) -> tuple[Queue, ...]:
        """Queues of the data pipeline."""

    def queue_waits(self) -> dict[str, float]:
        """Seconds of the data pipeline by name, measured after the training."""

    def is_asynchronous(self) -> bool:
        """Whether Python only issues operators, so that phases cannot be timed in plain steps."""

    def loader(self, wait_share: float) -> Loader | None:
        """torch's DataLoader, probed where the wait for data is worth it."""

    def collectives(self) -> Collectives:
        """Messages between ranks."""

    def compilations(self) -> tuple[Compilation, ...]:
        """Functions that were compiled in plain steps."""


class ProfileRecorder:
    """Records a training between entering and leaving; `isograd.profile` makes one."""

    def __init__(
        self,
        model: Any,
        folder: Path,
        *,
        steps: int = DEFAULT_STEPS,
        optimizer: Any = None,
        pipeline: PipelineWatch | None = None,
    ) -> None:
        """Check the arguments; nothing is changed or written before `with`.

        pipeline: what samples the queues of MindSpore's data pipelines already.
        """
        self.folder = folder
        self._side = _side(model, optimizer, pipeline)
        self._plan = windows(steps, has_queues=self._side.has_queues)
        self._marks = StepMarks(self._at_boundary, self._side.settle)
        self._beside: Beside | None = None
        self._beside_s = 0.0
        self._sampler = Sampler(lambda: self._marks.phase)
        self._collections = Collections(lambda: self._marks.window)
        self._window = ""
        self._is_active = False
        self._writer: Any = None
        self._losses: dict[int, float] = {}

    def __enter__(self) -> ProfileRecorder:
        """Observe; raise UsageError where the folder is not empty."""
        from isograd.runs.information import describe_run
        from isograd.runs.writer import RunWriter

        side = self._side
        information = describe_run(self.folder.name, "profile", side.framework, side.device())
        self._writer = RunWriter(self.folder, information)
        with contextlib.ExitStack() as undo:
            undo.callback(side.detach)
            side.attach(self)
            undo.pop_all()
        self._is_active = True
        self._collections.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop observing and write; raise ProfileError where no step was seen."""
        from isograd.runs.information import RunState

        problem = error
        try:
            self._marks.finish(is_whole=error is None)
            self._stop()
            if len(self._marks.marks().steps):
                self._write()
            elif error is None:
                raise ProfileError(
                    f"{self.folder}: no training step was seen",
                    "Call step() of the profiler after each step, or train inside of `with`.",
                )
        except BaseException as own:
            problem = own
            raise
        finally:
            self._write_losses()
            reason = "" if problem is None else f"{type(problem).__name__}: {problem}"
            self._writer.close(RunState.COMPLETE if problem is None else RunState.FAILED, reason)

    def step(self) -> None:
        """End a step here, where no update or no batch shows where it ends."""
        # After the last window a step runs that no window holds.
        if self._is_active:
            self._marks.step()

    def begin(self, phase: Phase) -> None:
        """Called by the side where a phase begins."""
        if not self._is_active:
            return
        if phase is Phase.DATA and self._beside is not None:
            self._beside.turn(is_waiting=True)
        self._marks.begin(phase)

    def end(self, phase: Phase) -> None:
        """Called by the side where a phase ends."""
        if not self._is_active:
            return
        self._marks.end(phase)
        if phase is Phase.DATA and self._beside is not None:
            self._beside.turn(is_waiting=False)

    def updated(self) -> None:
        """Called by the side after an optimizer's step."""
        if self._is_active:
            self._marks.updated()

    def loss(self, value: float) -> None:
        """Called by the side with the number whose gradient is taken; kept in the run's scalars."""
        if self._is_active and self._window in ("warm-up", "plain", "queues"):
            self._losses[self._marks.number] = value

    @property
    def phase(self) -> Phase | None:
        """The phase that runs now, None outside of steps."""
        return self._marks.phase

    @property
    def window(self) -> str:
        """The window of the step that runs now."""
        return self._window

    def _at_boundary(self, number: int) -> None:
        self._write_losses()
        window = self._plan[number] if number < len(self._plan) else DONE
        if window == self._window:
            return
        self._end_window()
        if window == DONE:
            self._stop()
            return
        self._window = self._marks.window = window
        self._side.begin_window(window, self.folder)
        if window == "profiled":
            self._sampler.start()
            self._beside = Beside(threading.get_native_id())

    def _write_losses(self) -> None:
        """Between steps, so that writing is no part of one."""
        for step in list(self._losses):
            self._writer.scalars(step, {"loss": self._losses.pop(step)})

    def _end_window(self) -> None:
        if self._window == "profiled":
            self._sampler.stop()
            if self._beside is not None:
                self._beside_s, self._beside = self._beside.close(self._sampler.native), None
        if self._window:
            self._side.end_window(self._window, self.folder)
        self._window = self._marks.window = ""

    def _stop(self) -> None:
        if not self._is_active:
            return
        self._is_active = False
        try:
            self._end_window()
        finally:
            self._sampler.stop()
            self._collections.stop()
            self._side.detach()

    def _write(self) -> None:
        from isograd.profile.record.writing import write_record

        side = self._side
        marks = self._marks.marks(only_waits=side.is_asynchronous())
        plain = marks.take("plain")
        wait = float(np.sum(plain.phase(Phase.DATA))) / max(float(np.sum(plain.seconds)), 1e-12)
        profile = Profile(
            source=str(self.folder),
            framework=side.framework,
            device=side.device(),
            modules=side.modules(),
            memory_peak=side.memory_peak(),
            peaks=_peaks(side),
            queues=side.queues(),
            queue_waits=_quietly(side.queue_waits, side.notes) or {},
            collectives=side.collectives(),
            source_operators=side.source_operators(),
            host=self._host(marks.take),
            marks=marks,
            loader=_quietly(lambda: side.loader(wait), side.notes),
            structure=_quietly(side.structure, side.notes),
            notes=tuple(side.notes),
        )
        write_record(self.folder, profile, side.version)

    def _host(self, take: Any) -> Host:
        plain, profiled, warm = take("plain"), take("profiled"), take("warm-up")
        chosen = "plain" if len(plain) else "profiled"
        seconds = self._collections.seconds.get(chosen, 0.0)
        return Host(
            lines=self._sampler.lines()[:400],
            sampled_steps=len(profiled),
            pause_s=seconds / max(len(take(chosen)), 1),
            pauses=self._collections.count.get(chosen, 0),
            plain_step_s=_median(plain),
            profiled_step_s=_median(profiled),
            excluded=_excluded(warm, _median(plain)),
            cores=processors(),
            beside_s=self._beside_s,
            compilations=self._side.compilations(),
        )


def _median(steps: Steps) -> float:
    return float(np.median(steps.seconds)) if len(steps) else float("nan")


def _excluded(warm: Steps, plain_s: float) -> dict[str, float]:
    """What the first step and the other warm-up steps took beyond plain ones."""
    if not len(warm) or not plain_s > 0:
        return {}
    extra = np.maximum(warm.seconds - plain_s, 0.0)
    return {
        "first step, with compilation": float(extra[0]),
        "warm-up": float(extra[1:].sum()),
    }


def _peaks(side: Side) -> Peaks | None:
    """Those in float64, too, where the network computes in it."""
    found = _quietly(side.peaks, side.notes)
    if found is None or not any("float64" in one.dtypes for one in side.source_operators()):
        return cast("Peaks | None", found)
    rate = _quietly(side.float64_flops_per_s, side.notes)
    return cast("Peaks", found if rate is None else replace(found, float64_flops_per_s=rate))


def _quietly(ask: Any, notes: list[str]) -> Any:
    """What a look at the user's objects gives, or None and a note: the training is over by now."""
    try:
        return ask()
    except IsogradError as error:
        notes.append(str(error))
    except Exception as error:
        notes.append(f"Not recorded: {type(error).__name__}: {error}")
    return None


def _side(model: Any, optimizer: Any, pipeline: PipelineWatch | None) -> Side:
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(model, torch.nn.Module):
        from isograd.profile.record.torch_side import TorchSide

        return TorchSide(model, optimizer)
    mindspore = sys.modules.get("mindspore")
    if mindspore is not None and isinstance(model, mindspore.nn.Cell):
        from isograd.profile.record.mindspore_side import MindSporeSide

        return MindSporeSide(model, optimizer, pipeline)
    raise UsageError(
        f"model: a {type(model).__module__}.{type(model).__qualname__} cannot be profiled",
        "Give a torch.nn.Module or a mindspore.nn.Cell, or the path of a run.",
    )

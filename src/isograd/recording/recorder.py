"""The context manager behind `isograd.record`: steps, selection, and never an empty success.

What differs between the frameworks is behind the protocol of observer.py; a framework is looked at
only if it has been imported, so this module needs neither.
"""

from __future__ import annotations

import contextlib
import datetime
import platform
import sys
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import numpy as np

from isograd.errors import RecordingError, UsageError
from isograd.recording.format import Manifest
from isograd.recording.observer import Observer
from isograd.recording.selection import Steps, choose_modules, choose_steps
from isograd.recording.statistics import kernel_name
from isograd.recording.writer import RecordingWriter, StepBuilder
from isograd.version import __version__

Tensors = Literal["statistics", "full"]


def record(
    model: Any,
    path: str | Path,
    *,
    tensors: Tensors = "statistics",
    modules: Iterable[str] | None = None,
    steps: Steps = None,
    optimizer: Any = None,
    glue: bool | None = None,
) -> Recorder:
    """Record a torch or MindSpore network inside of `with`, into a new folder.

    tensors: `statistics` of every tensor, or `full` for its elements too.
    modules: names or glob patterns; all by default.
    steps: numbers from 0, a slice, or a function of the number; all by default.
    optimizer: its calls end the steps, beside `Recorder.step`.
    glue: whether to record operations between modules; by default only with full tensors.
    Raises UsageError where an argument is wrong; nothing is watched or written before `with`.
    """
    return Recorder(
        model,
        path,
        tensors=tensors,
        modules=modules,
        steps=steps,
        optimizer=optimizer,
        glue=glue,
    )


_recorded_now: dict[int, Path] = {}


class Recorder:
    """Records a network between entering and leaving; `isograd.record` makes one."""

    def __init__(
        self,
        model: Any,
        path: str | Path,
        *,
        tensors: Tensors = "statistics",
        modules: Iterable[str] | None = None,
        steps: Steps = None,
        optimizer: Any = None,
        glue: bool | None = None,
    ) -> None:
        """Check the arguments; nothing is watched or written before `with`.

        Raises UsageError where an argument is wrong.
        """
        if tensors not in ("statistics", "full"):
            raise UsageError(f"tensors: {tensors!r} is unknown", "Give 'statistics' or 'full'.")
        self.path = Path(path)
        self._model = model
        self._tensors = tensors
        self._observer = _observer(model, optimizer)
        self._chosen = choose_modules(self._observer.module_names(), modules)
        self._all_modules = modules is None
        self._is_selected = choose_steps(steps)
        self._glue = tensors == "full" if glue is None else glue
        self._writer: RecordingWriter | None = None
        self._builder: StepBuilder | None = None
        self._number = 0
        self._recorded = 0
        self._is_open = False
        self._boundary = False
        self._state_known = False

    def __enter__(self) -> Recorder:
        """Watch the network.

        Raises RecordingError where nothing could be seen or written, UsageError where the network
        is already being recorded.
        """
        if id(self._model) in _recorded_now or self._writer is not None:
            raise UsageError(
                "this network is being or has been recorded by "
                f"{_recorded_now.get(id(self._model), self.path)}",
                "Leave that recording first, and make a new one with a folder of its own.",
            )
        with contextlib.ExitStack() as undo:
            undo.callback(self._observer.detach)
            self._observer.attach(self, frozenset(self._chosen), self._glue)
            self._writer = RecordingWriter(self.path, self._manifest(), self._observer.structure())
            _recorded_now[id(self._model)] = self.path
            undo.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop watching and write what is left.

        Raises RecordingError where nothing was recorded, unless an error is already on its way.
        """
        writer = self._writer
        assert writer is not None
        problem: BaseException | None = error
        try:
            if error is None and self._is_open:
                self._close_step(None)
            if error is None and not self._recorded:
                raise self._nothing_recorded()
            if error is not None and (explained := self._observer.explain(error)):
                raise explained from error
        except Exception as own:
            problem = own
            raise
        finally:
            _recorded_now.pop(id(self._model), None)
            self._observer.detach()
            if self._builder is not None:
                writer.abandon(self._builder)
                self._builder = None
            status = "complete" if problem is None else "failed"
            reason = "" if problem is None else f"{type(problem).__name__}: {problem}"
            changes = {"status": status, "reason": reason, "silent": self._observer.silent()}
            with contextlib.ExitStack() as quietly:
                if problem is not None:
                    quietly.enter_context(contextlib.suppress(RecordingError))
                writer.close(changes)

    def step(self, loss: Any = None) -> None:
        """End a step: the state after it is recorded and it becomes visible to readers.

        loss: a number or a tensor with one element.
        Raises RecordingError where no watched module was called since the last step.
        """
        if self._writer is None or id(self._model) not in _recorded_now:
            raise UsageError("step() was called outside of `with`", "Call it inside.")
        if not self._is_open:
            raise self._nothing_recorded()
        self._close_step(loss)

    def at_call(self) -> StepBuilder | None:
        """Called by the observer at a call outside all others; the step to add to, or None."""
        if self._boundary:
            self._close_step(None)
        if not self._is_open:
            self._open_step()
        return self._builder

    def optimizer_stepped(self) -> None:
        """Called by the observer after the optimizer: the next call begins a new step."""
        self._boundary = self._is_open

    @property
    def current(self) -> StepBuilder | None:
        """The step that is being recorded, or None."""
        return self._builder

    @property
    def is_within_step(self) -> bool:
        """Whether what happens now belongs to a step that is being recorded."""
        return self._builder is not None and not self._boundary

    def _open_step(self) -> None:
        assert self._writer is not None
        self._is_open = True
        if self._is_selected(self._number):
            self._builder = self._writer.begin(self._number)
            if not self._state_known:
                self._add_state("before")

    def _close_step(self, loss: Any) -> None:
        builder, self._is_open, self._boundary = self._builder, False, False
        if builder is not None:
            assert self._writer is not None
            self._observer.settle(builder)
            self._add_state("after")
            if loss is not None:
                builder.loss = self._loss(builder, loss)
            self._builder = None
            self._writer.complete(builder)
            self._recorded += 1
        self._state_known = builder is not None
        self._number += 1

    def _add_state(self, role: str) -> None:
        assert self._builder is not None
        for name, tensor in self._observer.state():
            self._builder.set_named(role, name, self._observer.add(self._builder, tensor))

    def _loss(self, builder: StepBuilder, loss: Any) -> float:
        if not self._observer.is_tensor(loss):
            return float(loss)
        number = self._observer.add(builder, loss)
        builder.set_named("loss", "loss", number)
        row = builder.row(number)
        if row[0] != 1:
            raise UsageError(f"step(loss): the loss has {row[0]:.0f} elements", "Give one number.")
        return row[5] if row[1] == row[2] == 0 else float(loss.item())

    def _manifest(self) -> Manifest:
        facts = self._observer.facts()
        return Manifest(
            framework=facts.framework,
            framework_version=facts.framework_version,
            isograd_version=__version__,
            python_version=platform.python_version(),
            numpy_version=np.__version__,
            device=facts.device,
            machine=f"{platform.system()} {platform.machine()}",
            tensors=self._tensors,
            kernel=kernel_name(),
            created=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            seeds=facts.seeds,
            changed=facts.changed,
            modules=None if self._all_modules else self._chosen,
        )

    def _nothing_recorded(self) -> RecordingError:
        if self._number and not self._recorded:
            return RecordingError(
                f"{self.path}: none of the chosen steps was reached; "
                f"the run had {self._number} steps",
                "Choose steps from 0 on that the run reaches.",
            )
        return RecordingError(
            f"{self.path}: in step {self._number} none of the {len(self._chosen)} watched modules "
            "was seen to be called, so there is nothing to record",
            self._observer.silence_advice,
        )


def _observer(model: Any, optimizer: Any) -> Observer:
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(model, torch.nn.Module):
        from isograd.recording.torch_recorder import TorchObserver

        return TorchObserver(model, optimizer)
    mindspore = sys.modules.get("mindspore")
    if mindspore is not None and isinstance(model, mindspore.nn.Cell):
        from isograd.recording.mindspore_recorder import MindSporeObserver

        return MindSporeObserver(model, optimizer)
    raise UsageError(
        f"model: a {type(model).__module__}.{type(model).__qualname__} cannot be recorded",
        "Give a torch.nn.Module or a mindspore.nn.Cell.",
    )

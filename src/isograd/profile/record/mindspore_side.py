"""Observes a MindSpore training: passes, updates, batches; the profiler; module times; lines.

Eager MindSpore (PyNative) only issues operators: what Python measures between two calls is not
what they take. Steps are therefore timed from one settled state to the next, and phases and modules
only in a window of their own in which every operator runs at once (`pynative_synchronize`).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isograd.frameworks.base import Structure
from isograd.profile.analyse.pipeline import ALONE
from isograd.profile.model import (
    Collectives,
    Compilation,
    Loader,
    MemoryPeak,
    ModuleTime,
    Peaks,
    Phase,
    Queue,
    SourceOperator,
    no_collectives,
)
from isograd.profile.read.open import FRAMEWORK_FOLDER
from isograd.profile.record.compilations import CompilationWatch
from isograd.profile.record.mindspore_memory import MemoryWatch
from isograd.profile.record.mindspore_modules import CellClock
from isograd.profile.record.mindspore_pipeline import PipelineWatch
from isograd.profile.record.mindspore_source import source_of
from isograd.profile.record.peaks import (
    COPIED_BYTES,
    SIDE_IN_FLOAT64,
    measured_peaks,
    product_rate,
)
from isograd.recording.mindspore_optimizers import is_optimizer, optimizers_in_sight
from isograd.recording.mindspore_reach import is_cell, is_trained, jit_executor_class, optimizer_of

if TYPE_CHECKING:
    from isograd.profile.record.recorder import ProfileRecorder


#: After so many passes no other class of optimizers is looked for.
_SEARCHES = 4


class MindSporeSide:
    """Hooks on the network, on optimizers and on dataset iterators; undone by detach."""

    framework = "mindspore"
    has_queues = True

    def __init__(self, model: Any, optimizer: Any, pipeline: PipelineWatch | None = None) -> None:
        """Nothing is changed before attach. optimizer: only its updates end steps, if given.

        pipeline: what samples queues already, since before the network was known.
        """
        import mindspore

        self.version = str(mindspore.__version__)
        self.notes: list[str] = []
        self._model, self._optimizer = model, optimizer
        self._undo = contextlib.ExitStack()
        self._pipeline = pipeline or PipelineWatch()
        self._modules = CellClock(model)
        self._memory = MemoryWatch(model)
        self._compilations = CompilationWatch()
        self._last_optimizer = optimizer
        self._source = source_of(model)
        self._profiler: Any = None
        self._plain_call: Any = None
        self.has_compiled = self._is_updating = False
        self._steps: dict[tuple[Any, Any], Any] = {}
        self._searches_left = _SEARCHES
        self._depth = 0
        self._record: ProfileRecorder | None = None

    def attach(self, recorder: ProfileRecorder) -> None:
        """Hook passes, updates and batches."""
        self._record = recorder
        self._wrap_cells()
        self._wrap_compiled()
        self._wrap_optimizer()
        undo = self._compilations.attach(lambda: recorder.window, self._without_hooks)
        self._undo.callback(undo)
        self._undo.callback(self._pipeline.detach)
        self._pipeline.attach(
            lambda: recorder.begin(Phase.DATA), lambda: recorder.end(Phase.DATA), self.notes
        )

    def _wrap_cells(self) -> None:
        """Calls of the network are passes; those of optimizers, which are cells, are updates.

        No hook of the network may mark its pass: a window that begins there adds hooks, and
        MindSpore calls hooks from the dictionary that is then changed.
        """
        from mindspore import nn

        original = self._plain_call = nn.Cell.__call__
        side = self

        def call(cell: Any, *arguments: Any, **options: Any) -> Any:
            if cell is side._model:
                side._before_forward(cell)
                try:
                    return original(cell, *arguments, **options)
                finally:
                    side._after_forward(cell)
            if side._record is None or not is_optimizer(cell):
                return original(cell, *arguments, **options)
            return side._update(cell, lambda: original(cell, *arguments, **options))

        nn.Cell.__call__ = call
        self._undo.callback(setattr, nn.Cell, "__call__", original)

    def _wrap_compiled(self) -> None:
        """A function of `jit` that holds an optimizer is a step; nobody sees its parts."""
        from mindspore import nn

        executor, seen = jit_executor_class(), nn.Cell.__call__
        original, plain = executor.__call__, self._plain_call

        def call(compiled: Any, *arguments: Any, **options: Any) -> Any:
            is_inner = self._depth > 0 or self._is_updating  # optimizers compile parts of theirs
            optimizer = None if is_inner else self._optimizer_of(compiled.fn, arguments)
            if self._record is None or optimizer is None:
                return original(compiled, *arguments, **options)
            self.has_compiled = True
            nn.Cell.__call__ = plain  # which the compiler reads
            try:
                act = lambda: original(compiled, *arguments, **options)  # noqa: E731  # one call, named below
                return self._update(optimizer, act, Phase.OTHER)
            finally:
                nn.Cell.__call__ = seen

        executor.__call__ = call
        self._undo.callback(setattr, executor, "__call__", original)

    def _without_hooks(self) -> None:
        """MindSpore cannot compile cells with hooks: none are seen in this window any more."""
        self._modules.stop()
        self._memory.stop_hooks()
        self._source.stop()

    def _wrap_optimizer(self) -> None:
        """An optimizer of another kind, as converted programs have it, is known by its step."""
        optimizer, side = self._optimizer, self
        original = getattr(optimizer, "step", None)
        if optimizer is None or not callable(original):
            return
        from mindspore import nn

        if isinstance(optimizer, nn.Cell):
            return

        def step(*arguments: Any, **options: Any) -> Any:
            return side._update(optimizer, lambda: original(*arguments, **options))

        optimizer.step = step
        self._undo.callback(optimizer.__dict__.pop, "step", None)

    def _meet_optimizers(self) -> None:
        """See the steps of optimizers that are no cells, which converted programs bring."""
        from mindspore import nn

        side = self
        found = {type(one) for one in optimizers_in_sight(sys._getframe(3))}
        for kind in (one for one in found if not issubclass(one, nn.Cell)):
            own, original = vars(kind).get("step"), kind.step

            def step(
                optimizer: Any, *arguments: Any, original: Any = original, **options: Any
            ) -> Any:
                return side._update(optimizer, lambda: original(optimizer, *arguments, **options))

            kind.step = step
            if own is None:
                self._undo.callback(delattr, kind, "step")
            else:
                self._undo.callback(setattr, kind, "step", own)
            self._searches_left = 0

    def _optimizer_of(self, function: Any, arguments: tuple[Any, ...]) -> Any:
        """The optimizer of a compiled step; found once, so that steps are not made longer."""
        first = arguments[0] if arguments and is_cell(arguments[0]) else None
        found = self._steps.get((function, first))
        if found is None:
            found = optimizer_of(function, arguments)
            if found is not None:
                self._steps[function, first] = found
        return found

    def _update(self, optimizer: Any, act: Any, phase: Phase = Phase.UPDATE) -> Any:
        """Mark what steps an optimizer: its own call, or a compiled step."""
        record = self._record
        assert record is not None
        record.begin(phase)
        begin, self._last_optimizer = time.time_ns(), optimizer
        self._is_updating = True
        try:
            return act()
        finally:
            self._is_updating = False
            record.end(phase)
            self._memory.updated(begin, time.time_ns())
            if self._optimizer is None or optimizer is self._optimizer:
                record.updated()

    def _before_forward(self, cell: Any) -> None:
        assert self._record is not None
        self._depth += 1
        if self._depth == 1 and is_trained(cell):
            self._record.begin(Phase.FORWARD)

    def _after_forward(self, cell: Any) -> None:
        # What follows until the update is the loss and the backward pass, which no hook separates.
        self._depth = max(self._depth - 1, 0)
        if self._depth == 0 and self._record is not None and is_trained(cell):
            self._record.end(Phase.FORWARD)
            self._record.begin(Phase.BACKWARD)
            if self._searches_left and self._optimizer is None:
                self._searches_left -= 1
                self._meet_optimizers()

    def detach(self) -> None:
        """Undo all hooks."""
        self._modules.stop()
        self._source.stop()
        self._memory.stop(self.settle)
        self._undo.close()

    def device(self) -> str:
        """CPU, GPU or Ascend."""
        import mindspore

        return str(mindspore.get_context("device_target"))

    def is_asynchronous(self) -> bool:
        """Unless operators run at once by the user's own choice, or all runs in a compiled step."""
        import mindspore

        return not self.has_compiled and not mindspore.get_context("pynative_synchronize")

    def settle(self) -> None:
        """Wait until all issued operators have run."""
        from mindspore.graph.api import _pynative_executor

        _pynative_executor.sync()

    def begin_window(self, name: str, folder: Path) -> None:
        """Start the profiler, the modules' clocks, or the look at lines."""
        if name == "queues":
            self._pipeline.begin_sampling()
        elif name == "profiled":
            self._profiler = _profiler(folder / FRAMEWORK_FOLDER)
        elif name == "modules":
            self._modules.start()
        elif name == "source":
            record = self._record
            assert record is not None
            self._source.start(lambda: record.phase)
        elif name == "memory":
            self._memory.start(_profiler, self._last_optimizer)

    def end_window(self, name: str, folder: Path) -> None:
        """Stop them again; the profiler's files are put in order."""
        if name == "queues":
            self._pipeline.end_sampling()
        elif name == "profiled" and self._profiler is not None:
            self.settle()
            self._profiler.stop()
            self._profiler = None
            _tidy(folder / FRAMEWORK_FOLDER)
        elif name == "modules":
            self._modules.stop()
        elif name == "source":
            self._source.stop()
        elif name == "memory":
            self._memory.stop(self.settle)

    def structure(self) -> Structure | None:
        """Modules and parameters, as a recording has them."""
        from isograd.recording.mindspore_recorder import MindSporeObserver

        return MindSporeObserver(self._model, None).structure()

    def modules(self) -> tuple[ModuleTime, ...]:
        """Module times per step, measured with every operator run at once."""
        return self._modules.times()

    def source_operators(self) -> tuple[SourceOperator, ...]:
        """Operators with their lines."""
        return self._source.operators()

    def memory_peak(self) -> MemoryPeak | None:
        """What the step of the window `memory` held at its peak."""
        return self._memory.peak

    def peaks(self) -> Peaks:
        """By a product of float32 matrices and a copy on the device."""
        from mindspore import float32, mint

        side = 1024 if self.device() == "CPU" else 4096
        matrix = mint.ones((side, side), dtype=float32)
        source = mint.ones((COPIED_BYTES // 4,), dtype=float32)
        # MindSpore has no copy on a CPU; a product with a number reads and writes as much.
        return measured_peaks(
            side, lambda: mint.matmul(matrix, matrix), lambda: source * 2, self.settle
        )

    def float64_flops_per_s(self) -> float:
        """By a product of float64 matrices; raises where the device has none."""
        from mindspore import float64, mint

        matrix = mint.ones((SIDE_IN_FLOAT64, SIDE_IN_FLOAT64), dtype=float64)
        return product_rate(SIDE_IN_FLOAT64, lambda: mint.matmul(matrix, matrix), self.settle)

    def queues(self) -> tuple[Queue, ...]:
        """Queues of the dataset's operators."""
        return self._pipeline.queues()

    def queue_waits(self) -> dict[str, float]:
        """What a batch takes to make where the queues were not full at the end."""
        alone_s = self._pipeline.alone_s()
        return {ALONE: alone_s} if alone_s == alone_s else {}

    def loader(self, wait_share: float) -> Loader | None:
        """Nothing: MindSpore's pipeline is known by its queues."""
        return None

    def collectives(self) -> Collectives:
        """Nothing: the profiler's files hold them."""
        return no_collectives()

    def compilations(self) -> tuple[Compilation, ...]:
        """Functions of `jit`, and cells in GRAPH_MODE."""
        return self._compilations.found()


def _profiler(folder: Path, *, profile_memory: bool = False) -> Any:
    from mindspore.profiler import ProfilerActivity, profile, tensorboard_trace_handler

    folder.mkdir(exist_ok=True)
    handler = tensorboard_trace_handler(str(folder))
    found = profile(
        activities=[ProfilerActivity.CPU],
        on_trace_ready=handler,
        start_profile=False,
        record_shapes=False,
        profile_memory=profile_memory,
    )
    found.start()
    return found


def _tidy(folder: Path) -> None:
    """Remove the profiler's raw files, which its text files and its trace are made of."""
    for root, names, _ in os.walk(folder):
        for name in list(names):
            if name in ("FRAMEWORK", "logs", "PROF_000001"):
                inner = Path(root) / name
                if name != "FRAMEWORK":
                    shutil.rmtree(inner, ignore_errors=True)
                names.remove(name)

"""Observes a torch training: passes, updates, batches; the profiler; module times; lines."""

from __future__ import annotations

import contextlib
import gzip
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isograd.files import write_bytes
from isograd.frameworks.base import Structure
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
)
from isograd.profile.record.peaks import (
    COPIED_BYTES,
    SIDE_IN_FLOAT64,
    measured_peaks,
    product_rate,
)
from isograd.profile.record.torch_ddp import BucketClock
from isograd.profile.record.torch_loader import LoaderWatch
from isograd.profile.record.torch_memory import MemoryWatch
from isograd.profile.record.torch_modules import ModuleClock
from isograd.profile.record.torch_source import source_of

if TYPE_CHECKING:
    from isograd.profile.record.recorder import ProfileRecorder


class TorchSide:
    """Hooks on the network, all optimizers and all DataLoaders; undone by detach."""

    framework = "torch"
    has_queues = False

    def __init__(self, model: Any, optimizer: Any) -> None:
        """Nothing is changed before attach. optimizer: only its updates end steps, if given."""
        import torch

        self.version = str(torch.__version__)
        self.notes: list[str] = []
        self._model, self._optimizer = model, optimizer
        self._undo = contextlib.ExitStack()
        self._loaders = LoaderWatch()
        self._modules = ModuleClock(model)
        self._source = source_of(model)
        self._buckets = BucketClock(model)
        self._memory = MemoryWatch(model)
        self._profiler: Any = None
        self._last_optimizer = optimizer
        self._depth = 0
        self._record: ProfileRecorder | None = None

    def attach(self, recorder: ProfileRecorder) -> None:
        """Hook passes, updates and batches."""
        import torch
        from torch.optim.optimizer import (
            register_optimizer_step_post_hook,
            register_optimizer_step_pre_hook,
        )

        self._record = recorder
        undo = self._undo
        for one in _called(self._model):
            undo.callback(one.register_forward_pre_hook(self._before_forward).remove)
            undo.callback(one.register_forward_hook(self._after_forward, always_call=True).remove)
        undo.callback(register_optimizer_step_pre_hook(self._before_update).remove)
        undo.callback(register_optimizer_step_post_hook(self._after_update).remove)
        self._wrap_backward(torch)
        undo.callback(self._loaders.detach)
        self._loaders.attach(lambda: recorder.begin(Phase.DATA), lambda: recorder.end(Phase.DATA))
        self._buckets.attach(lambda: recorder.window, self.notes)

    def _wrap_backward(self, torch: Any) -> None:
        original = torch.autograd.backward

        def backward(*arguments: Any, **options: Any) -> Any:
            assert self._record is not None
            self._record.begin(Phase.BACKWARD)
            try:
                return original(*arguments, **options)
            finally:
                self._record.end(Phase.BACKWARD)
                self._keep_loss(arguments)

        backward.__wrapped__ = original  # type: ignore[attr-defined]
        torch.autograd.backward = backward
        self._undo.callback(setattr, torch.autograd, "backward", original)

    def _keep_loss(self, arguments: Any) -> None:
        """Keep the number that the pass began with, on a CPU, where reading it does not wait."""
        loss: Any = arguments[0] if arguments else None
        if self._record is not None and getattr(loss, "numel", lambda: 0)() == 1:
            if not loss.is_cuda:
                with self._source.paused():
                    self._record.loss(float(loss.detach()))

    def _before_forward(self, module: Any, arguments: Any) -> None:
        assert self._record is not None
        self._depth += 1
        if self._depth == 1 and module.training:
            self._record.begin(Phase.FORWARD)

    def _after_forward(self, module: Any, arguments: Any, output: Any) -> None:
        # The phase goes on until the backward pass: the loss belongs to it.
        self._depth = max(self._depth - 1, 0)

    def _before_update(self, optimizer: Any, arguments: Any, options: Any) -> None:
        assert self._record is not None
        self._record.begin(Phase.UPDATE)

    def _after_update(self, optimizer: Any, arguments: Any, options: Any) -> None:
        assert self._record is not None
        self._record.end(Phase.UPDATE)
        if self._optimizer is None or optimizer is self._optimizer:
            self._record.updated()
        self._last_optimizer = optimizer

    def detach(self) -> None:
        """Undo all hooks."""
        self._source.stop()
        self._modules.stop()
        self._memory.stop(write_trace)
        self._undo.close()

    def device(self) -> str:
        """GPU where a parameter lies on one, else CPU."""
        parameter = next(iter(self._model.parameters()), None)
        return "GPU" if parameter is not None and parameter.is_cuda else "CPU"

    def is_asynchronous(self) -> bool:
        """A GPU works beside Python."""
        return self.device() == "GPU"

    def settle(self) -> None:
        """Wait for the GPU; a CPU has done what was issued."""
        if self.device() == "GPU":
            import torch

            torch.cuda.synchronize()

    def begin_window(self, name: str, folder: Path) -> None:
        """Start the profiler, the modules' clocks, or the look at lines."""
        if name == "profiled":
            self._profiler = _profiler(self.device())
            self._profiler.start()
        elif name == "modules":
            self._modules.start(self.settle)
        elif name == "source":
            record = self._record
            assert record is not None
            self._source.start(lambda: record.phase)
        elif name == "memory":
            self._memory.start(_activities(self.device()), self._last_optimizer)

    def end_window(self, name: str, folder: Path) -> None:
        """Stop them again and write the trace."""
        if name == "profiled" and self._profiler is not None:
            self._profiler.stop()
            write_trace(self._profiler.export_chrome_trace, folder)
            self._profiler = None
        elif name == "modules":
            self._modules.stop()
        elif name == "source":
            self._source.stop()
        elif name == "memory":
            self._memory.stop(write_trace)

    def structure(self) -> Structure | None:
        """Modules and parameters, as a recording has them."""
        from isograd.recording.torch_recorder import TorchObserver

        return TorchObserver(self._model, None).structure()

    def modules(self) -> tuple[ModuleTime, ...]:
        """Module times per step."""
        return self._modules.times()

    def source_operators(self) -> tuple[SourceOperator, ...]:
        """Operators with their lines."""
        return self._source.operators()

    def memory_peak(self) -> MemoryPeak | None:
        """What the step of the window `memory` held at its peak."""
        return self._memory.peak

    def peaks(self) -> Peaks:
        """By a product of float32 matrices and a copy on the network's device."""
        import torch

        device = "cuda" if self.device() == "GPU" else "cpu"
        side = 4096 if device == "cuda" else 1024
        matrix = torch.ones(side, side, device=device)
        source = torch.ones(COPIED_BYTES // 4, device=device)
        target = torch.empty_like(source)
        with torch.no_grad():
            return measured_peaks(
                side,
                lambda: torch.mm(matrix, matrix),
                lambda: target.copy_(source),
                self.settle,
            )

    def float64_flops_per_s(self) -> float:
        """By a product of float64 matrices on the network's device."""
        import torch

        side, device = SIDE_IN_FLOAT64, "cuda" if self.device() == "GPU" else "cpu"
        matrix = torch.ones(side, side, dtype=torch.float64, device=device)
        with torch.no_grad():
            return product_rate(side, lambda: torch.mm(matrix, matrix), self.settle)

    def queues(self) -> tuple[Queue, ...]:
        """Nothing: torch's DataLoader has one queue, which `loader` knows."""
        return ()

    def queue_waits(self) -> dict[str, float]:
        """Nothing: `loader` knows how long a sample takes."""
        return {}

    def loader(self, wait_share: float) -> Loader | None:
        """The DataLoader that waited longest, probed where the wait is above 2 % of the step."""
        return self._loaders.answer(is_probed=wait_share > 0.02, notes=self.notes)

    def collectives(self) -> Collectives:
        """Buckets of DistributedDataParallel."""
        return self._buckets.collectives()

    def compilations(self) -> tuple[Compilation, ...]:
        """Nothing: what torch.compile does is not watched."""
        return ()


def _called(model: Any) -> list[Any]:
    """The network, or the parts of a container that has no pass of its own (ModuleDict)."""
    from torch import nn

    if type(model).forward is not nn.Module.forward:
        return [model]
    return [part for child in model.children() for part in _called(child)]


def _profiler(device: str) -> Any:
    from torch.profiler import profile

    return profile(activities=_activities(device), record_shapes=True)


def _activities(device: str) -> list[Any]:
    from torch.profiler import ProfilerActivity

    cpu = [ProfilerActivity.CPU]
    return [*cpu, ProfilerActivity.CUDA] if device == "GPU" else cpu


def write_trace(export: Callable[[str], object], folder: Path) -> None:
    """Let a profiler write its trace beside, then put it in place as a whole."""
    partial = folder / ".trace.partial.json"
    try:
        export(str(partial))
        write_bytes(folder / "trace.json.gz", gzip.compress(partial.read_bytes(), 1))
    finally:
        partial.unlink(missing_ok=True)

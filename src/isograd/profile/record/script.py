"""`isograd profile --out runs/a train.py -- …`: an unchanged script, whose network is found.

The network is the first module in training that is called outside of all others and has
parameters to train.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isograd.errors import ProfileError, UserCodeError
from isograd.profile.record.recorder import ProfileRecorder
from isograd.runs.script import run_script

if TYPE_CHECKING:
    from isograd.profile.record.mindspore_pipeline import PipelineWatch


def record_script(
    script: Path,
    arguments: Sequence[str],
    folder: Path,
    steps: int,
    on_import: Callable[[str], None] | None = None,
) -> Any:
    """Run the script and record its training; the network that it trained.

    on_import: called after a framework's import.
    Raises UserCodeError where the script fails, ProfileError where it trains no network.
    """
    finder = _Finder(folder, steps)

    def imported(framework: str) -> None:
        if on_import is not None:
            on_import(framework)
        finder.watch(framework)

    with contextlib.closing(finder):
        try:
            end = run_script(script, arguments, imported)
        finally:
            finder.stop()
        finder.leave(end.error)
    if end.error is not None:
        raise UserCodeError(
            f"{script} raised {type(end.error).__name__}: {end.error}",
            "Run it alone first; what was recorded until then is kept.",
            end.trace,
        )
    return finder.network


class _Finder:
    """Waits for the first call of a network that trains, and records it from then on."""

    def __init__(self, folder: Path, steps: int) -> None:
        self._folder, self._steps = folder, steps
        self._recorder: ProfileRecorder | None = None
        self._undo: list[Any] = []
        self._pipeline: PipelineWatch | None = None
        self.network: Any = None

    def watch(self, framework: str) -> None:
        """Called when a framework has been imported."""
        if framework == "torch":
            from torch.nn.modules.module import register_module_forward_pre_hook

            self._undo.append(register_module_forward_pre_hook(self._called).remove)
            return
        from isograd.profile.record.mindspore_pipeline import PipelineWatch
        from isograd.recording.mindspore_reach import (
            is_trained,
            jit_executor_class,
            networks_of,
            optimizer_of,
        )

        self._pipeline = PipelineWatch()
        self._pipeline.sample([])  # a script builds its pipeline before it calls its network
        nn = sys.modules["mindspore"].nn
        original = nn.Cell.__call__

        def call(cell: Any, *arguments: Any, **options: Any) -> Any:
            if is_trained(cell):
                self._found(cell)
            return original(cell, *arguments, **options)

        def undo() -> None:
            if nn.Cell.__call__ is call:
                nn.Cell.__call__ = original

        nn.Cell.__call__ = call
        self._undo.append(undo)
        executor = jit_executor_class()
        compiled = executor.__call__

        def call_compiled(function: Any, *arguments: Any, **options: Any) -> Any:
            if optimizer_of(function.fn, arguments) is not None:
                for network in networks_of(function.fn)[:1]:
                    self._found(network)
            if self._recorder is not None:
                return executor.__call__(function, *arguments, **options)  # the recorder's own
            nn.Cell.__call__ = original  # which the compiler reads
            try:
                return compiled(function, *arguments, **options)
            finally:
                nn.Cell.__call__ = call

        def undo_compiled() -> None:
            if executor.__call__ is call_compiled:
                executor.__call__ = compiled

        executor.__call__ = call_compiled
        self._undo.append(undo_compiled)

    def _called(self, module: Any, arguments: Any) -> None:
        if module.training:
            self._found(module)

    def _found(self, module: Any) -> None:
        if self._recorder is not None or not _has_trained_parameters(module):
            return
        self.stop()
        self.network = module
        self._recorder = ProfileRecorder(
            module, self._folder, steps=self._steps, pipeline=self._pipeline
        )
        self._recorder.__enter__()

    def stop(self) -> None:
        """Wait no longer."""
        while self._undo:
            self._undo.pop()()

    def leave(self, error: BaseException | None) -> None:
        """End the recording; raise ProfileError where no network was found."""
        if self._recorder is None:
            if error is None:
                raise ProfileError(
                    "the script called no torch.nn.Module or mindspore.nn.Cell in training",
                    "Give a script that trains, or use isograd.profile(model, folder) in it.",
                )
            return
        self._recorder.__exit__(None if error is None else type(error), error, None)

    def close(self) -> None:
        """Let MindSpore sample no queues any more, whoever recorded."""
        if self._pipeline is not None:
            self._pipeline.detach()


def _has_trained_parameters(module: Any) -> bool:
    if hasattr(module, "trainable_params"):
        return bool(module.trainable_params())
    return any(parameter.requires_grad for parameter in module.parameters())

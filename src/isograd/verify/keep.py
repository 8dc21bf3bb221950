"""`verify --keep FOLDER`: the recorded passes of both sides as recordings on disk.

Each side becomes one recording (`FOLDER/reference`, `FOLDER/port`) with a step for each mode:
every call's inputs and outputs, and on the reference's side the gradients that reached them.
"""

from __future__ import annotations

import datetime
import hashlib
import platform
from pathlib import Path

import numpy as np

from isograd.frameworks.base import CallInfo, Tensors
from isograd.model import Side
from isograd.recording.format import Manifest, Slot
from isograd.recording.statistics import kernel_name
from isograd.recording.writer import RecordingWriter, StepBuilder
from isograd.tensors import TensorValue
from isograd.verify.session import Session
from isograd.version import __version__
from isograd.worker.host import Worker
from isograd.worker.protocols import Networks, Passes


class Keeper:
    """Writes the passes of one verification as they are recorded."""

    def __init__(self, folder: Path, session: Session) -> None:
        assert session.sides is not None
        sides = zip(("reference", "port"), session.sides, strict=True)
        structures = (session.reference_structure, session.port_structure)
        self._writers = [
            RecordingWriter(folder / name, _manifest(side, session.seed), structure)
            for (name, side), structure in zip(sides, structures, strict=True)
        ]
        self._modes: list[str] = []

    def keep_pass(self, session: Session, mode: str) -> None:
        """Write the pass that both workers have just recorded, as the next step."""
        number = len(self._modes)
        self._modes.append(mode)
        for worker, writer in zip((session.reference, session.port), self._writers, strict=True):
            step = writer.begin(number)
            _write_calls(step, worker)
            state: Tensors = worker.ask(Networks.state)
            for name, value in state.items():
                step.set_named("before", name, step.add_value(value))
            writer.complete(step)

    def close(self) -> None:
        """Finish both recordings."""
        for writer in self._writers:
            modes = tuple(f"step {i}: {mode} mode" for i, mode in enumerate(self._modes))
            writer.close({"status": "complete", "changed": (*writer.manifest.changed, *modes)})


def _write_calls(step: StepBuilder, worker: Worker) -> None:
    calls: tuple[CallInfo, ...] = worker.ask(Passes.calls)
    values = _Values(step)
    for number, call in enumerate(calls):
        tensors: Tensors = worker.ask(Passes.recorded, number)
        index = step.begin_call("module", call.module, call.parent, values.slots(tensors, "input"))
        step.end_call(index, values.slots(tensors, "output"))


class _Values:
    """A pass's tensors as values of a step.

    A worker hands out copies, so a tensor that leaves one call and enters another is known again
    by its content and its gradient's; it is written once, and one number says who feeds whom.
    """

    def __init__(self, step: StepBuilder) -> None:
        self._step = step
        self._known: dict[tuple[str, tuple[int, ...], bytes], int] = {}

    def slots(self, tensors: Tensors, word: str) -> tuple[Slot, ...]:
        slots = []
        for key, value in tensors.items():
            if key.startswith(f"{word}."):
                number = self._number(value, tensors.get(f"gradient.{key}"))
                slots.append(Slot(key.partition(".")[2], number))
        return tuple(slots)

    def _number(self, value: TensorValue, gradient: TensorValue | None) -> int:
        content = hashlib.blake2b(np.ascontiguousarray(value.values).data)
        if gradient is not None:
            content.update(np.ascontiguousarray(gradient.values).data)
        key = (value.dtype, value.values.shape, content.digest())
        if key not in self._known:
            self._known[key] = self._step.add_value(value)
            if gradient is not None:
                self._step.set_gradient(self._known[key], self._step.add_value(gradient))
        return self._known[key]


def _manifest(side: Side, seed: int) -> Manifest:
    return Manifest(
        framework=side.framework,
        framework_version=side.framework_version,
        isograd_version=__version__,
        python_version=side.python_version,
        numpy_version=np.__version__,
        device=side.device,
        machine=f"{platform.system()} {platform.machine()}",
        tensors="full",
        kernel=kernel_name(),
        created=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        seeds={"isograd": seed},
        changed=side.changed,
    )

"""Recordings of isograd's own as tensors: every call's values, gradients and parameters."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from isograd.checkpoints.base import (
    IndexedSource,
    RawTensor,
    TensorInfo,
    size_in_bytes,
)
from isograd.errors import CheckpointError, RecordingError
from isograd.recording.reader import RecordedStep, Recording
from isograd.tensors import TensorValue, bfloat16_to_bits


class RecordingSource(IndexedSource):
    """A recording: names are ``STEP/CALL#OCCURRENCE.input.SLOT`` and ``STEP/ROLE.PARAMETER``."""

    kind = "recording"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._places: dict[str, tuple[RecordedStep, int]] = {}
        self._skipped: dict[str, str] = {}
        try:
            recording = Recording(path)
            self._metadata = {
                "framework": recording.manifest.framework,
                "framework_version": recording.manifest.framework_version,
                "created": recording.manifest.created,
                "status": recording.manifest.status,
            }
            for step in recording:
                self._register_step(step)
        except (RecordingError, ValueError, IndexError, TypeError) as error:
            raise CheckpointError(f"{path}: {error}", "Record it again.") from error
        if not self._infos:
            raise self.refusal("holds no tensor", 'Record with tensors="full".')

    @property
    def metadata(self) -> Mapping[str, str]:
        return self._metadata

    @property
    def skipped(self) -> Mapping[str, str]:
        return self._skipped

    def raw(self, name: str) -> RawTensor:
        found = self.read(name)
        if found.dtype == "bfloat16":
            return RawTensor(bfloat16_to_bits(found.values), found.dtype)
        return RawTensor(found.values, found.dtype)

    def read(self, name: str) -> TensorValue:
        """The values of one tensor, in the shape and dtype of the recording; float32 for bfloat16.

        Raises CheckpointError where the name is unknown or the recording is damaged.
        """
        self.info(name)
        step, value = self._places[name]
        try:
            return step.tensor(value)
        except (RecordingError, ValueError) as error:
            raise CheckpointError(f"{self.path}: {error}", "Record it again.") from error

    def _register_step(self, step: RecordedStep) -> None:
        gradients = dict(step.info.gradients)
        for call in step.calls:
            place = f"{step.number}/{call.name or 'network'}#{call.occurrence}"
            for side, slots in (("input", call.inputs), ("output", call.outputs)):
                for slot in slots:
                    self._place(f"{place}.{side}.{slot.name}", step, slot.value)
                    if slot.value in gradients:
                        name = f"{place}.gradient.{side}.{slot.name}"
                        self._place(name, step, gradients[slot.value])
        for role, named in step.info.named.items():
            for name, value in named.items():
                self._place(f"{step.number}/{role}.{name}", step, value)

    def _place(self, name: str, step: RecordedStep, value: int) -> None:
        info = step.info.values[value]
        if info.file is None or name in self._places:
            self._skipped.setdefault(name, info.missing or "only its statistics were recorded")
            return
        size = size_in_bytes(info.dtype, info.shape)
        self.add(TensorInfo(name, info.dtype, info.shape, size, order=len(self._places)))
        self._places[name] = (step, value)

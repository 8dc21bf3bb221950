"""What a recorder and the observer of a framework ask of each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from isograd.errors import RecordingError
from isograd.frameworks.base import Structure
from isograd.recording.writer import StepBuilder


class Listener(Protocol):
    """What an observer reports to."""

    def at_call(self) -> StepBuilder | None:
        """A call outside all others begins; the step to add to, or None."""

    def optimizer_stepped(self) -> None:
        """The optimizer made its step: the next call begins a new one."""

    @property
    def current(self) -> StepBuilder | None:
        """The step that is being recorded, or None."""

    @property
    def is_within_step(self) -> bool:
        """Whether what happens now belongs to a step that is being recorded."""


@dataclass(frozen=True)
class Facts:
    """What an observer says of its framework, for the manifest."""

    framework: str
    framework_version: str
    device: str
    seeds: dict[str, int]
    changed: tuple[str, ...]


class Observer(Protocol):
    """Watches one network of one framework.

    attach may raise before anything is changed; detach undoes whatever attach did, always.
    """

    #: What to do where nothing was seen.
    silence_advice: str

    def module_names(self) -> tuple[str, ...]:
        """Names of all modules, the root `""` first."""

    def facts(self) -> Facts:
        """Framework, device, seeds, and what attach changes."""

    def structure(self) -> Structure:
        """Modules, parameters and buffers."""

    def attach(self, listener: Listener, modules: frozenset[str], glue: bool) -> None:
        """Watch these modules, the parameters' gradients, and with glue the operations between."""

    def explain(self, error: BaseException) -> RecordingError | None:
        """What to say instead, where recording is the reason for an error in the user's code."""

    def detach(self) -> None:
        """Undo attach."""

    def settle(self, step: StepBuilder) -> None:
        """Add what was held back, and forget the step's tensors."""

    def state(self) -> Iterator[tuple[str, Any]]:
        """Parameters and buffers."""

    def add(self, step: StepBuilder, tensor: Any) -> int:
        """Add a tensor to a step."""

    def is_tensor(self, value: Any) -> bool:
        """Whether a value is the framework's tensor."""

    def silent(self) -> tuple[str, ...]:
        """Watched modules that were never called."""

"""What verify asks of a worker, as values: the arguments of the services in `protocols`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from isograd.diagnose.hypothesis import Surroundings
from isograd.frameworks.base import ReplayRequest, Tensors, Trial
from isograd.noise.envelope import Errors
from isograd.tensors import TensorValue


@dataclass(frozen=True)
class PassRequest:
    """One end-to-end pass.

    mode: "train" or "eval"; inputs, targets: nested tensors and plain values; backward: with
    gradients; record: keep every call's tensors for replays.
    """

    mode: str
    inputs: dict[str, Any]
    targets: list[Any]
    backward: bool = False
    record: bool = False


@dataclass(frozen=True)
class UnitRequest:
    """One recorded call alone, with the results of some calls inside it given.

    call, pins: indices in the list of calls; parameters: whose gradients are wanted; buffers: that
    are wanted as the call leaves them.  silent, pins_silent: outputs, and inputs of each pinned
    call, through which nothing flows back, because the port has none such.
    """

    call: int
    pins: tuple[int, ...]
    parameters: tuple[str, ...] = ()
    buffers: tuple[str, ...] = ()
    backward: bool = False
    silent: tuple[int, ...] = ()
    pins_silent: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class UnitMeasured:
    """The replay that a `UnitRequest` became, and what it yielded in float64 with its errors."""

    request: ReplayRequest
    errors: dict[str, Errors]


@dataclass(frozen=True)
class StepRequest:
    """One training step.

    state: parameters and buffers by name, None for the track's own; gradients: by
    ``gradient.parameter.NAME``, in the place of a forward and a backward pass.
    """

    state: Tensors | None = None
    inputs: dict[str, Any] = field(default_factory=dict)
    targets: list[Any] = field(default_factory=list)
    gradients: Tensors | None = None


@dataclass(frozen=True)
class SubjectRequest:
    """What is diagnosed: a recorded call alone, or the loss of given outputs (request None)."""

    request: ReplayRequest | None
    outputs: list[TensorValue | None] = field(default_factory=list)
    targets: list[Any] = field(default_factory=list)


@dataclass(frozen=True)
class DiagnosisRequest:
    """What the port's error in a subject is to be explained by.

    port: its tensors under the reference's names; wanted: the names to be explained; threshold:
    error over envelope up to which they agree; limit_s: processor time.  fixed: trials that are
    granted; likely: hypotheses that are tried first.
    """

    subject: SubjectRequest
    port: Tensors
    wanted: tuple[str, ...]
    threshold: float
    limit_s: float
    surroundings: Surroundings = field(default_factory=Surroundings)
    fixed: tuple[Trial, ...] = ()
    likely: tuple[str, ...] = ()

"""The services of a worker, as verify asks for them: `worker.ask(Passes.forward, request)`.

A worker's class names the protocols that it serves; only the methods that they declare can be
asked for.  What a framework may lack (`isograd.frameworks.capabilities`) is answered with nothing,
and `Networks.capabilities` says beforehand what is there.
"""

from __future__ import annotations

from typing import Any, Protocol

from isograd.diagnose.decide import Diagnosis
from isograd.edits import SourceEdit
from isograd.frameworks.base import (
    NATIVE,
    Arithmetic,
    CallInfo,
    DropoutSite,
    Floors,
    FunctionCall,
    FunctionSite,
    MaskDraw,
    PortFix,
    ReplayRequest,
    Shift,
    SideSpec,
    Structure,
    Tensors,
    Trial,
)
from isograd.noise.envelope import Errors
from isograd.tensors import TensorValue
from isograd.worker.requests import (
    DiagnosisRequest,
    PassRequest,
    StepRequest,
    SubjectRequest,
    UnitMeasured,
    UnitRequest,
)


class Networks(Protocol):
    """A network in its framework: how it is built, and what it holds."""

    def build(self, spec: SideSpec, seed: int) -> Structure:
        """Import the callables, seed the framework and build the network."""
        ...

    def capabilities(self) -> tuple[str, ...]:
        """The names of the optional protocols that the framework declares."""
        ...

    def describe(self) -> dict[str, str]:
        """Versions and the device."""
        ...

    def state(self) -> Tensors:
        """All parameters and buffers by name, in their own shapes and dtypes."""
        ...

    def load_state(self, tensors: Tensors) -> None:
        """Overwrite parameters and buffers.

        tensors: the shapes of the network's, any dtypes.
        """
        ...

    def set_floors(self, floors: Floors) -> None:
        """Give the device profile's noise floors to the framework."""
        ...

    def keep_scale(self, keeps: bool) -> None:
        """Whether neutral dropout multiplies by 1 / (1 - p)."""
        ...

    def batch(
        self, key: str, name: str, folder: str, seed: int, step: int
    ) -> tuple[list[Any], dict[str, Any]]:
        """What a callable of the case returns for a step: positional and keyword arguments."""
        ...


class Kernels(Protocol):
    """Micro-benchmarks of the device profile."""

    def measure_kernel(
        self,
        expression: str,
        inputs: Tensors,
        labels: Tensors,
        variants: list[Arithmetic],
        floors: Floors,
    ) -> dict[str, Errors]:
        """One in torch, with its envelope.

        inputs: the shapes of the micro-benchmark, float32.
        labels: the shapes of the micro-benchmark, integers.
        """
        ...

    def run_kernel(self, expression: str, inputs: Tensors, labels: Tensors) -> Tensors:
        """The same in MindSpore; nothing where this build has no such kernel.

        inputs: the shapes of the micro-benchmark, float32.
        labels: the shapes of the micro-benchmark, integers.
        returns: the shapes of the result and of the inputs, float32.
        """
        ...


class Passes(Protocol):
    """Whole passes, and recorded calls alone."""

    def forward(self, request: PassRequest) -> Tensors:
        """One end-to-end pass.

        returns: the shapes of the network's tensors; float64 for the floating ones in that
        arithmetic, else their own dtypes.
        """
        ...

    def measure_forward(
        self, request: PassRequest, variants: tuple[Arithmetic, ...]
    ) -> dict[str, Errors]:
        """End to end in float64, and the errors of the native variants against it."""
        ...

    def calls(self) -> tuple[CallInfo, ...]:
        """The calls of the recorded pass."""
        ...

    def recorded(self, call: int) -> Tensors:
        """A recorded call's tensors, in the shapes and dtypes that the pass had."""
        ...

    def borrowed(self) -> dict[str, tuple[str, ...]]:
        """Parameters that a module's code reads though another holds them, of the last pass."""
        ...

    def measure_unit(self, request: UnitRequest, variants: tuple[Arithmetic, ...]) -> UnitMeasured:
        """One call alone in float64, the errors of the variants, and what was fed in."""
        ...

    def replay(
        self,
        request: ReplayRequest,
        arithmetic: Arithmetic = NATIVE,
        fixes: tuple[PortFix, ...] = (),
    ) -> Tensors:
        """Run one recorded call again, alone; with fixes in a port.

        returns: the shapes of the call's tensors; float64 for the floating ones in that arithmetic,
        else their own dtypes.
        """
        ...

    def trace(self, request: ReplayRequest) -> tuple[FunctionCall, ...]:
        """The functions that one recorded call runs, without those inside its pins."""
        ...

    def loss(
        self,
        outputs: list[TensorValue | None],
        targets: list[Any],
        fixes: tuple[PortFix, ...] = (),
    ) -> Tensors:
        """The loss of given outputs and its gradient; with fixes in a port.

        outputs: the shapes and dtypes of the network's outputs; None for a recorded one.
        returns: the loss as a scalar, gradients in the shapes of the outputs, in their own dtypes.
        """
        ...

    def measure_loss(
        self,
        outputs: list[TensorValue | None],
        targets: list[Any],
        variants: tuple[Arithmetic, ...],
    ) -> dict[str, Errors]:
        """The loss alone in float64, and the errors of the native variants against it.

        outputs: the shapes and dtypes of the network's outputs; None for a recorded one.
        """
        ...

    def trace_loss(
        self, outputs: list[TensorValue | None], targets: list[Any]
    ) -> tuple[FunctionCall, ...]:
        """The functions that a port's loss runs.

        outputs: the shapes and dtypes of the network's outputs; None for a recorded one.
        """
        ...


class Reach(Protocol):
    """How far a difference moves a whole pass: norms of the movement by tensor."""

    def shifted(self, request: PassRequest, shift: Shift) -> dict[str, float]:
        """When one call's tensors are shifted, natively."""
        ...

    def reached(self, request: PassRequest, shift: Shift) -> dict[str, float]:
        """The same exactly, state included: relative to each tensor's norm."""
        ...

    def moved(self, request: PassRequest, trials: tuple[Trial, ...]) -> dict[str, float]:
        """When the reference computes under these trials, exactly."""
        ...


class Chance(Protocol):
    """Dropouts and random draws of the recorded pass."""

    def dropout_sites(
        self, mode: str, seed: int = 0, fixes: tuple[PortFix, ...] = ()
    ) -> tuple[DropoutSite, ...]:
        """What the dropouts would do in this mode, by experiment; with fixes in a port."""
        ...

    def draws(self) -> tuple[str, ...]:
        """The random functions that it called, dropouts apart."""
        ...

    def draws_by_hand(self) -> bool:
        """Whether it draws uniform or Bernoulli numbers outside the dropouts."""
        ...

    def mask_draws(self) -> tuple[MaskDraw, ...]:
        """The numbers that it draws; empty where the framework cannot see them."""
        ...

    def equal_pairs(
        self,
        request: ReplayRequest,
        kinds: tuple[str, ...],
        starts: dict[str, tuple[int, ...]],
        partners: dict[str, tuple[int, ...]],
        pairs: int,
        seed: int,
    ) -> dict[str, tuple[int, ...]]:
        """Of pairs of replays with real chance, how many agree: see `frameworks/draws.py`."""
        ...


class Training(Protocol):
    """Optimizer steps on tracks."""

    def start_training(self, track: str, arithmetic: Arithmetic = NATIVE) -> tuple[str, ...]:
        """Make a fresh optimizer over a copy of the network; the names that it updates."""
        ...

    def train_step(self, track: str, request: StepRequest, kinds: tuple[str, ...]) -> Tensors:
        """One step; of what it yields the named kinds: loss, gradient, state.

        returns: a scalar loss, and gradients and state in the shapes of the parameters and buffers,
        in the dtypes of the track.
        """
        ...

    def measure_step(self, tracks: tuple[str, ...], request: StepRequest) -> dict[str, Errors]:
        """One step on the first track, and the errors of the other tracks against it."""
        ...

    def end_training(self) -> None:
        """Drop all tracks."""
        ...


class Rules(Protocol):
    """Rules of the reference's optimizer on watched elements; nothing without `ReplaysRules`."""

    def watch_update(self, track: str, indices: Tensors) -> None:
        """Note these elements when gradients are fed.

        indices: by parameter, (watched,) int64: flat indices of its elements.
        """
        ...

    def update_outline(self) -> dict[str, Any]:
        """The rules of the reference's optimizer by parameter."""
        ...

    def update_slices(self, names: list[str]) -> Tensors:
        """The watched elements of these parameters and of their gradients.

        returns: (watched,) initially and (steps, watched) step by step, float64.
        """
        ...

    def measure_rules(
        self,
        rules: dict[str, dict[str, Any]],
        variants: list[Arithmetic],
        keep: bool,
        dtype: str,
    ) -> Tensors:
        """Other optimizer rules on the watched elements, with their envelope.

        returns: (steps, watched) trajectories and (steps,) allowances, float64.
        """
        ...

    def grant_rules(self, rules: dict[str, dict[str, Any]]) -> None:
        """From the next training these parameters of the reference follow these rules."""
        ...


class Causes(Protocol):
    """The search for causes, beside the reference's tensors; needs `Diagnosable`."""

    def diagnose(self, request: DiagnosisRequest) -> Diagnosis:
        """Name the cause of the port's error, or abstain."""
        ...

    def diagnose_quietly(self, request: DiagnosisRequest) -> Diagnosis:
        """Look for a small change within the noise of one call, by projection."""
        ...

    def project(
        self,
        subject: SubjectRequest,
        port: Tensors,
        wanted: tuple[str, ...],
        trials: tuple[Trial, ...],
    ) -> tuple[float, float]:
        """How much of the change that trials make is in the port's error, and its deviation.

        port: by name, the shapes of the subject's tensors, any dtypes.
        """
        ...

    def site_values(
        self, subject: SubjectRequest, trials: tuple[Trial, ...]
    ) -> tuple[FunctionSite, ...]:
        """The functions of a subject under trials, with their results."""
        ...

    def grant(self, trials: tuple[Trial, ...], loss_trials: tuple[Trial, ...]) -> None:
        """Compute under these trials from now on, in every pass and step."""
        ...


class Fixes(Protocol):
    """What can be changed in a port, and how the change reads in the user's source."""

    def fix_for(self, module: str, function: str, argument: str, value: Any) -> PortFix | None:
        """How a setting of a torch function is made on a library module; None if it has none."""
        ...

    def edit_text(self, fix: PortFix) -> tuple[str, str | None]:
        """The edit that a fix makes, in words, and ``file:line``."""
        ...

    def edits(self, fixes: tuple[PortFix, ...]) -> tuple[SourceEdit, ...]:
        """The edits that fixes mean; empty where the framework has none to show."""
        ...

    def mend_optimizer(self, mending: dict[str, Any]) -> bool:
        """From the next training the optimizer is mended so; whether that is possible."""
        ...

    def leave_untouched(self, names: list[str]) -> None:
        """The reference computes no gradient for these parameters."""
        ...

    def optimizer_line(self) -> str | None:
        """``file:line`` of the user's code that made the optimizer last."""
        ...

    def optimizer_kind(self) -> str:
        """The framework's class of the optimizer that was made last; "" where it is not known."""
        ...

    def optimizer_edits(self, settings: dict[str, Any]) -> tuple[SourceEdit, ...]:
        """The edits that give the optimizer these settings, by the fields of a rule."""
        ...

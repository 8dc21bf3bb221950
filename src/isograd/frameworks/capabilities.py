"""What a framework may be able to do beyond the protocol of `isograd.frameworks.base`.

A framework declares a capability by naming it among its base classes; nothing is guessed from
methods that happen to be there.  Without one, isograd says less: no cause of what differs without
`Diagnosable` and `ReplaysRules`, no proof of an optimizer's cause without `MendsOptimizer`, no
edit of the source without `EditsSource`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol, TypeGuard, TypeVar

from isograd.edits import SourceEdit
from isograd.frameworks.base import (
    Arithmetic,
    CallInfo,
    FunctionSite,
    Intervention,
    MaskDraw,
    Port,
    PortFix,
    ReplayRequest,
    Tensors,
)
from isograd.tensors import TensorValue

Capability = TypeVar("Capability")


def declares(framework: object, capability: type[Capability]) -> TypeGuard[Capability]:
    """Whether the framework's class names the capability among its bases."""
    return capability in type(framework).__mro__


class Diagnosable(Protocol):
    """A reference that shows the functions of its code, and computes some of them otherwise.

    interventions, loss_interventions: in force in every pass and step until they are taken back.
    """

    interventions: tuple[Intervention, ...]
    loss_interventions: tuple[Intervention, ...]

    def sites(self, request: ReplayRequest, with_values: bool) -> tuple[FunctionSite, ...]:
        """The functions that one recorded call runs, without those inside its pins."""
        ...

    def loss_sites(
        self, outputs: list[TensorValue | None], targets: list[TensorValue], with_values: bool
    ) -> tuple[FunctionSite, ...]:
        """The functions that the loss of these outputs runs.

        outputs: the shapes and dtypes of the network's outputs; None for a recorded one.
        targets: any shapes and dtypes that the loss takes.
        """
        ...


class BorrowsParameters(Protocol):
    """A framework that sees which parameters a module's code reads though another holds them."""

    def borrowed(self) -> dict[str, tuple[str, ...]]:
        """The names of such parameters by module, in the last pass."""
        ...


class DrawsMasks(Protocol):
    """A framework that sees which numbers are drawn, and can let chance rule."""

    def mask_draws(self) -> tuple[MaskDraw, ...]:
        """The numbers that are drawn in the recorded pass, active dropouts included."""
        ...

    def replay_with_chance(
        self, request: ReplayRequest, kinds: frozenset[str], seed: int
    ) -> Tensors:
        """Run one recorded call again, alone, with its own draws of these kinds from this seed."""
        ...


class EmptiesTracks(Protocol):
    """A framework that gives back a track's memory until its next step."""

    def empty_track(self, track: str, names: Collection[str]) -> None:
        """Give back the memory of these parameters; the next step is given them anew."""
        ...


class ReplaysRules(Protocol):
    """A reference that replays rules of optimizers on watched elements of its parameters."""

    def watch_update(self, track: str, indices: Tensors) -> None:
        """Note these elements of each parameter when gradients are fed to this track.

        indices: by parameter, (watched,) int64: flat indices of its elements.
        """
        ...

    def update_outline(self) -> dict[str, Any]:
        """By parameter: its group, its rule as plain values or None, the norms of its gradients."""
        ...

    def update_slices(self, names: list[str]) -> Tensors:
        """The watched elements: initial.NAME, and given.NAME and effective.NAME step by step.

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
        """Rules by parameter on the watched elements: expected.NAME and allowed.NAME.

        returns: (steps, watched) trajectories and (steps,) allowances, float64.
        """
        ...

    def grant_rules(self, rules: dict[str, dict[str, Any]]) -> None:
        """From the next `start_training` these parameters follow these rules."""
        ...


class EditsSource(Protocol):
    """A port that can say which edits of the user's source its fixes are."""

    def edits(self, fixes: tuple[PortFix, ...]) -> tuple[SourceEdit, ...]:
        """The edits of all fixes; empty unless every fix has one."""
        ...


class CompilesModules(Protocol):
    """A port that runs under the framework's static graph; way: "jit", "graph" or "own".

    An answer is a dictionary that crosses the pipe: ``tensors`` of a run, or ``refused`` with the
    compiler's reason; of a judgement, ``verdict``.
    """

    def asks(self) -> tuple[str, ...]:
        """How the port's own code asks for the static graph."""
        ...

    def record(
        self, mode: str, inputs: dict[str, TensorValue], targets: list[TensorValue]
    ) -> tuple[CallInfo, ...]:
        """Record an eager pass for `alone`; its calls.

        inputs, targets: any shapes and dtypes that the network and its loss take.
        """
        ...

    def once(
        self,
        way: str,
        mode: str,
        inputs: dict[str, TensorValue],
        targets: list[TensorValue],
        backward: bool,
        must_run: bool,
    ) -> dict[str, Any]:
        """One whole pass: outputs, and with backward the loss and the parameters' gradients.

        must_run: false where another mode runs as well; the answer is ``unread`` then where no
        module reads its mode.
        inputs, targets: any shapes and dtypes that the network and its loss take.
        """
        ...

    def step(
        self,
        way: str,
        state: Tensors | None,
        inputs: dict[str, TensorValue],
        targets: list[TensorValue],
        is_first: bool,
    ) -> dict[str, Any]:
        """One training step of a way from a given state: loss, outputs, gradients, state.

        is_first: with a fresh optimizer.
        state: by name, in the shapes and dtypes of the parameters and buffers; None for the current
        one.
        inputs, targets: any shapes and dtypes that the network and its loss take.
        """
        ...

    def alone(self, call: int, way: str, backward: bool) -> dict[str, Any]:
        """How a recorded call compiles: its verdict, and what differs or why it is refused."""
        ...

    def loss_alone(self, way: str, targets: list[TensorValue]) -> dict[str, Any]:
        """How the loss compiles on the recorded output.

        targets: any shapes and dtypes that the loss takes.
        """
        ...

    def statements(self, call: int, way: str, backward: bool, verdict: str) -> dict[str, Any]:
        """The first statement of a call's own construct behind which it differs."""
        ...

    def code_of(self, module: str) -> dict[str, Any]:
        """Where a module's construct is written."""
        ...

    def alone_rewritten(
        self, call: int, way: str, backward: bool, edits: list[tuple[str, int, str]]
    ) -> dict[str, Any]:
        """How a call compiles with other definitions of its functions: name, line, text."""
        ...


class MendsOptimizer(Protocol):
    """A port whose optimizer can be changed, to prove a cause."""

    @property
    def optimizer_line(self) -> str | None:
        """``file:line`` of the user's code that made the optimizer last."""
        ...

    @property
    def optimizer_kind(self) -> str:
        """The framework's class of the optimizer that was made last, as `nn.Adam`."""
        ...

    def mend_optimizer(self, mending: dict[str, Any]) -> None:
        """From the next `start_training` the optimizer is changed so; {} ends it."""
        ...

    def leave_untouched(self, names: list[str]) -> None:
        """The reference computes no gradient for these parameters of the port."""
        ...

    def optimizer_edits(self, settings: dict[str, Any]) -> tuple[SourceEdit, ...]:
        """The edits that give the optimizer these settings, by the fields of a rule."""
        ...


#: All that a framework may declare.
OPTIONAL: tuple[type[Any], ...] = (
    Port,
    Diagnosable,
    BorrowsParameters,
    EmptiesTracks,
    ReplaysRules,
    EditsSource,
    MendsOptimizer,
    CompilesModules,
)

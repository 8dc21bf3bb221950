"""What isograd knows of a network, and the protocol through which it drives a framework.

The core sees networks only as the frozen values below; torch, MindSpore and the numpy fake fill
them in.  An adapter lives in a worker process (see `isograd.worker`), so everything that crosses
the protocol is a plain value or a numpy array.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from isograd.tensors import TensorValue


@dataclass(frozen=True)
class ParameterInfo:
    """A parameter or a buffer of a network.

    name: unique name by the framework's own convention, for example ``layer1.0.bn1.weight``.
    module: name of the owning module; attribute: its name within the module.
    shape, dtype: as numpy spells them, plus "bfloat16".
    tied_to: name of the parameter that shares its storage and comes first, or None.
    """

    name: str
    module: str
    attribute: str
    shape: tuple[int, ...]
    dtype: str
    trainable: bool
    is_buffer: bool = False
    tied_to: str | None = None


@dataclass(frozen=True)
class ModuleInfo:
    """A module (torch) or cell (MindSpore).

    name: as in `named_modules` / `cells_and_names`; the root is ``""``.
    kind: class name; library: whether the class belongs to the framework and not to the user.
    where: ``file:line`` of the class or, better, of the place where the module is built.
    arguments: of a library module, what its constructor was given or defaults to, as far as it is
    plain (numbers, words, tuples of them).
    """

    name: str
    kind: str
    library: bool
    settings: str = ""
    where: str | None = None
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class CallInfo:
    """One call of a module within an end-to-end forward pass, in the order of the calls' starts.

    occurrence: the number of the call of this module, from 0.
    parent: index in the list of calls of the enclosing call, or None for the root.
    input_shapes, output_shapes: of the tensors, in the order of `isograd.tree.flatten`.
    where: ``file:line`` of the user's code that makes the call, where it is known.
    """

    module: str
    occurrence: int
    parent: int | None
    input_shapes: tuple[tuple[int, ...], ...]
    output_shapes: tuple[tuple[int, ...], ...]
    where: str | None = None


@dataclass(frozen=True)
class Structure:
    """A network as a value: its modules, its parameters and buffers, and its calls.

    calls is empty until a forward pass has been recorded.
    """

    framework: str
    modules: tuple[ModuleInfo, ...]
    parameters: tuple[ParameterInfo, ...]
    calls: tuple[CallInfo, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Arithmetic:
    """How a pass is computed: natively, in float64, or natively with simulated rounding.

    alternative_kernels: another kernel path of the framework (torch: without oneDNN).
    input_noise: move floating inputs by up to one unit in the last place.
    operator_noise: move every operator's result by its rounding error; `biased` uses one sign
    throughout, because rounding of a kernel can be systematic.
    amplitude: multiplies the noise.
    """

    float64: bool = False
    alternative_kernels: bool = False
    input_noise: bool = False
    operator_noise: bool = False
    biased: bool = False
    amplitude: float = 1.0
    seed: int = 0


NATIVE = Arithmetic()
FLOAT64 = Arithmetic(float64=True)

Tensors = dict[str, TensorValue]


def in_slots(tensors: Tensors, word: str) -> tuple[TensorValue, ...]:
    """The tensors that are named WORD.0, WORD.1 and so on, in order.

    tensors, returns: any shapes and dtypes.
    """
    count = sum(1 for key in tensors if key.startswith(f"{word}."))
    return tuple(tensors[f"{word}.{i}"] for i in range(count))


#: What is measured on inputs near a number, by its sign, has floors of these names.
SIGNS = {-1: "negative", 1: "positive"}
#: Noise floors by ATen operator: pairs of typical input magnitude and floor, ascending.
Floors = dict[str, list[list[float]]]


@dataclass(frozen=True)
class ReplayRequest:
    """Run one recorded call again, alone, with given inputs and with given results of children.

    call: index of the call in the recorded list; pins: indices of calls inside it whose results
    are given instead of computed.
    inputs: a tensor for each slot, or None to keep what was recorded.
    pin_outputs: for each pin, a tensor for each output slot, or None likewise.
    output_cotangents, pin_cotangents: gradients that are fed in at the outputs of the call and
    at the inputs of its pins; None feeds nothing.
    parameters: those whose gradients are wanted; buffers: those wanted as the call leaves them.
    """

    call: int
    pins: tuple[int, ...]
    inputs: tuple[TensorValue | None, ...]
    pin_outputs: tuple[tuple[TensorValue | None, ...], ...]
    output_cotangents: tuple[TensorValue | None, ...] = ()
    pin_cotangents: tuple[tuple[TensorValue | None, ...], ...] = ()
    parameters: tuple[str, ...] = ()
    buffers: tuple[str, ...] = ()
    backward: bool = False


@dataclass(frozen=True)
class Shift:
    """Moves what one recorded call gets or gives, in a pass.

    where: "input", "output", "gradient.input" or "gradient.output"; values: what is added to each
    slot, None for nothing.
    """

    call: int
    where: str
    values: list[TensorValue | None]


@dataclass(frozen=True)
class DropoutSite:
    """A place where elements are dropped: probability is 0.0 where inactive.

    draws: the independent draws that the probability was measured by; 0 where the network's code
    names it.  where: ``file:line`` of the user's code that drops by a function.
    """

    module: str
    occurrence: int
    probability: float
    scale: float
    draws: int = 0
    where: str | None = None


@dataclass(frozen=True)
class MaskDraw:
    """Random numbers that are drawn by a recorded call's own code.

    call: index of the call in the recorded list; shape: one element for each independent number.
    where: ``file:line`` of the user's code that draws.  kind: one of `isograd.frameworks.kinds`.
    """

    call: int
    function: str
    shape: tuple[int, ...]
    where: str | None = None
    kind: str = "masks"


@dataclass(frozen=True)
class FunctionCall:
    """A function between modules with its result.

    module: the reference's module whose code calls it; sources: positions in the list of calls
    whose results are its inputs (empty where the framework cannot tell).
    where: ``file:line`` of the user's code that calls it.
    """

    module: str
    function: str
    sources: tuple[int, ...]
    value: TensorValue
    where: str | None = None


@dataclass(frozen=True)
class Place:
    """A function call in a module's own code: the index-th of this function within one call.

    function "module" is the call of the module itself.  Places are the same in every call of the
    module, so what is changed there is changed in all of them.
    """

    module: str
    function: str
    index: int


@dataclass(frozen=True)
class Operand:
    """A tensor that a function gets or yields, and where it comes from.

    source: ``event.I.SLOT`` of an earlier site, ``input.I`` of the replayed call,
    ``parameter.NAME``, or "other".
    """

    source: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class FunctionSite:
    """A function that the reference's code calls, with its arguments by torch's names.

    arguments: plain values, `Operand` for a tensor, tuples of these.
    kind: the class of the module where place.function is "module".
    origin: the instruction of the user's code that calls it, so that the rounds of a loop share
    one; "" where it is not known.
    """

    place: Place
    event: int
    arguments: dict[str, Any]
    outputs: tuple[Operand, ...]
    kind: str = ""
    values: tuple[TensorValue, ...] = ()
    origin: str = ""


@dataclass(frozen=True)
class Trial:
    """A hypothesis at a place with values for its parameters."""

    hypothesis: str
    place: Place
    values: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Intervention:
    """At a place, compute something else: what `change` makes of a call there, with these values.

    change gets the call (`isograd.diagnose.hypothesis.Call`) and the values.
    """

    place: Place
    change: Callable[[Any, Mapping[str, Any]], Any]
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class PortFix:
    """A change of the port for the time of one replay, to prove a cause.

    kind "rebuild": the library module `module` is built again with these constructor arguments
    changed, keeping its parameters; arguments by the port's own names.
    kind "replace": the value at `target` is computed by another function.  target is
    ``event.I`` (position in `trace` of the same request), ``output.I``, ``input_of.PIN.SLOT``
    (what reaches a pinned call) or ``pin.PIN.SLOT`` (what a pinned call gives).  function is one
    of torch's by isograd's names (`FunctionSite.function`), or "identity"; arguments by torch's
    names: plain constants, or references ``@event.I``, ``@input.I``, ``@pin.PIN.SLOT``,
    ``@parameter.NAME``, ``@argument.I`` (of the call that is replaced), ``@result`` (what would
    have stood at the target), a tensor's value (a mask that only the reference has); tuples of
    references where torch takes a sequence of tensors.
    """

    kind: str
    module: str = ""
    target: str = ""
    function: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SideSpec:
    """What one side of a case runs: callables as ``file.py:name`` or ``package.module:name``."""

    framework: str
    model: str
    folder: str
    model_kwargs: dict[str, Any] = field(default_factory=dict)
    loss: str | None = None
    optimizer: str | None = None
    #: Called with the network before every pass; puts back what it keeps where nobody sees it.
    reset: str | None = None
    #: CPU, GPU or Ascend; None leaves it to the framework.
    device: str | None = None


class Framework(Protocol):
    """What isograd asks of a framework; one object drives one network in one process.

    Tensors are named in results: ``output.0``, ``loss``, ``gradient.parameter.NAME``,
    ``gradient.input.0``, ``input_of.PIN.SLOT``, ``gradient.pin.PIN.SLOT``, ``buffer.NAME``,
    ``state.NAME``.
    A failing callable of the user's raises `UserCodeError`.
    """

    name: str
    #: Noise floors of the device profile, for passes with operator noise.
    floors: Floors

    def build(self, spec: SideSpec, seed: int) -> Structure:
        """Import the callables, seed the framework and build the network."""

    def describe(self) -> dict[str, str]:
        """Versions and the device: framework_version, python_version, numpy_version, device."""

    def state(self) -> Tensors:
        """All parameters and buffers by name, in their own shapes and dtypes."""

    def load_state(self, tensors: Tensors) -> None:
        """Overwrite parameters and buffers; unknown names and wrong shapes raise.

        tensors: the shapes of the network's, any dtypes.
        """

    def forward(
        self,
        mode: str,
        inputs: dict[str, TensorValue],
        targets: list[TensorValue],
        *,
        record: bool = False,
        backward: bool = False,
        arithmetic: Arithmetic = NATIVE,
    ) -> Tensors:
        """One end-to-end pass; with record, keep every call's tensors for `replay`.

        inputs, targets: any shapes and dtypes that the network and its loss take.
        returns: the network's shapes and dtypes, or float64 in that arithmetic.
        """

    def calls(self) -> tuple[CallInfo, ...]:
        """The calls of the recorded pass."""

    def recorded(self, call: int) -> Tensors:
        """A recorded call's tensors: input.I, output.I, gradient.input.I, gradient.output.I.

        returns: the shapes and dtypes that the pass had.
        """

    def replay(self, request: ReplayRequest, arithmetic: Arithmetic = NATIVE) -> Tensors:
        """Run one recorded call again, alone.

        returns: the call's shapes and dtypes, or float64 in that arithmetic.
        """

    def trace(self, request: ReplayRequest) -> tuple[FunctionCall, ...]:
        """The functions that one recorded call runs, without those inside its pins."""

    def forward_shifted(
        self,
        mode: str,
        inputs: dict[str, TensorValue],
        targets: list[TensorValue],
        backward: bool,
        shift: Shift,
        arithmetic: Arithmetic = NATIVE,
    ) -> Tensors:
        """An end-to-end pass in which a recorded call's inputs or outputs are moved by a shift.

        Buffers as the pass leaves them are among the results, as ``state.NAME``.

        inputs, targets: any shapes and dtypes that the network and its loss take.
        returns: the network's shapes and dtypes, or float64 in that arithmetic.
        """

    def loss(
        self,
        outputs: list[TensorValue | None],
        targets: list[TensorValue],
        arithmetic: Arithmetic = NATIVE,
    ) -> Tensors:
        """The loss of given outputs and its gradient with respect to them.

        outputs, targets: any shapes and dtypes that the loss takes; None for a recorded output.
        returns: a scalar and the outputs' shapes, in their dtypes or float64.
        """

    def start_training(self, track: str, arithmetic: Arithmetic = NATIVE) -> tuple[str, ...]:
        """Make a fresh optimizer over a copy of the network; the names that it updates."""

    def train_step(
        self,
        track: str,
        state: Tensors | None,
        inputs: dict[str, TensorValue],
        targets: list[TensorValue],
        gradients: Tensors | None = None,
        *,
        lent: bool = False,
    ) -> Tensors:
        """One optimizer step on a track, from its own or a given state; loss and state after.

        With gradients (by parameter name) forward and backward are replaced by them.  lent: the
        state may be the track's own memory, which is looked at before its next step.

        state, gradients: by name, in the shapes of the parameters and buffers, any dtypes.
        inputs, targets: any shapes and dtypes that the network and its loss take.
        returns: a scalar and the shapes of parameters and buffers, in their dtypes or float64.
        """

    def end_training(self) -> None:
        """Drop all tracks; the network is as it was before `start_training`."""

    def dropout_sites(self, mode: str, seed: int = 0) -> tuple[DropoutSite, ...]:
        """What the dropouts of the recorded pass would do in this mode, by experiment.

        seed: another one gives independent draws.
        """

    def draws(self) -> tuple[str, ...]:
        """The random functions that the recorded pass called, dropouts apart."""

    def draws_by_hand(self) -> bool:
        """Whether the recorded pass draws uniform or Bernoulli numbers outside the dropouts."""

    def keep_scale(self, keeps: bool) -> None:
        """Whether neutral dropout multiplies by 1 / (1 - p), as a mask drawn by hand does."""


class Port(Framework, Protocol):
    """A framework that plays the port: it can be changed for the time of one pass.

    Fixes act in the order of their targets and leave no trace, also where something raises; one
    that cannot be applied raises `UserCodeError`.
    """

    def replay(
        self,
        request: ReplayRequest,
        arithmetic: Arithmetic = NATIVE,
        fixes: tuple[PortFix, ...] = (),
    ) -> Tensors:
        """Run one recorded call again, alone, with these fixes."""

    def trace(
        self, request: ReplayRequest, fixes: tuple[PortFix, ...] = ()
    ) -> tuple[FunctionCall, ...]:
        """The functions that one recorded call runs; a fix keeps the positions before it."""

    def loss(
        self,
        outputs: list[TensorValue | None],
        targets: list[TensorValue],
        arithmetic: Arithmetic = NATIVE,
        fixes: tuple[PortFix, ...] = (),
    ) -> Tensors:
        """The loss of given outputs; fixes refer to them as ``@input.I``, ``@target.I``."""

    def trace_loss(
        self,
        outputs: list[TensorValue | None],
        targets: list[TensorValue],
        fixes: tuple[PortFix, ...] = (),
    ) -> tuple[FunctionCall, ...]:
        """The functions that the loss runs.

        outputs, targets: any shapes and dtypes that the loss takes; None for a recorded output.
        """

    def dropout_sites(
        self, mode: str, seed: int = 0, fixes: tuple[PortFix, ...] = ()
    ) -> tuple[DropoutSite, ...]:
        """What the dropouts of the recorded pass would do in this mode, with these fixes."""

    def fix_for(self, module: str, function: str, argument: str, value: Any) -> PortFix | None:
        """How a setting of a torch function is made on a library module; None if it has none."""

    def edit_text(self, fix: PortFix) -> tuple[str, str | None]:
        """The edit of the user's source that a fix makes, in words, and ``file:line``."""

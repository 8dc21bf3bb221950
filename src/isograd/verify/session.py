"""Two workers, two networks with the same weights: what every stage of the ladder works with."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Literal, Protocol

import numpy as np

from isograd.errors import IsogradError
from isograd.frameworks.base import ParameterInfo, Port, Structure, Tensors
from isograd.frameworks.capabilities import Diagnosable
from isograd.frameworks.registry import package_of
from isograd.model import Side
from isograd.pairing.parameters import pair_parameters
from isograd.pairing.results import ParameterPair, ParameterPairing
from isograd.progress import Progress
from isograd.tensors import Array, TensorKey, TensorValue, contiguous
from isograd.verify.case import Case
from isograd.verify.device_profile import floors_of
from isograd.verify.inputs import Nested, source_of
from isograd.verify.kept import Kept
from isograd.verify.part import WHOLE, Part
from isograd.worker.host import Worker
from isograd.worker.protocols import Chance, Networks, Passes
from isograd.worker.requests import PassRequest, StepRequest
from isograd.worker.warm import WarmWorkers


class _Closes(Protocol):
    """What a session closes when it ends."""

    def close(self) -> None:
        """Safe to call again."""


#: Starts a worker of a framework, for a side, in an interpreter: as `Worker` does.
StartWorker = Callable[[str, str, str | None], Worker]


class Session:
    """One verification: its case, its two workers, and how their tensors correspond."""

    def __init__(
        self,
        case: Case,
        seed: int,
        progress: Progress,
        part: Part = WHOLE,
        start: StartWorker | None = None,
    ) -> None:
        self.case = case
        self.part = part
        self.seed = seed
        self.progress = progress
        self._warm = WarmWorkers()
        self.start: StartWorker = start or self._start
        self.reference = self.start(case.reference.framework, "reference", case.reference_python)
        try:
            self.port = self.start(case.port.framework, "port", case.port_python)
        except BaseException:
            self.reference.close()
            self._warm.close()
            raise
        self._source = source_of(case, seed, self.reference)
        self.reference_structure = Structure("", (), ())
        self.port_structure = Structure("", (), ())
        self.pairing = ParameterPairing(())
        self.reference_state: Tensors = {}
        self.port_initial: Tensors = {}
        self.sides: tuple[Side, Side] | None = None
        #: What could not be asked, in words: a cause that was not looked for is none that is not.
        self.unanswered: list[str] = []
        self._reference_can: frozenset[str] = frozenset()
        self._port_can: frozenset[str] = frozenset()
        #: Whether neutral dropout multiplies by 1 / (1 - p), as masks that are drawn by hand do.
        self.scales_dropout = False
        #: Hypotheses that explained a module of this port; the next module is asked them first.
        self.explained_by: list[str] = []
        #: The process that compiles the port, once it has begun.
        self.compiled: _Closes | None = None
        self.kept = Kept()
        #: Modules whose borders the port was seen to draw elsewhere, for the next mode.
        self.moved_borders: set[str] = set()

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.reference.close()
        self.port.close()
        if self.compiled is not None:
            self.compiled.close()
        self._warm.close()

    def _start(self, framework: str, side: str, python: str | None = None) -> Worker:
        """A worker; those of a port that is compiled as well share the import of the framework."""
        is_shared = self.case.wants_compiled and package_of(framework) == self.case.port.framework
        return (self._warm.worker if is_shared else Worker)(framework, side, python)

    def enter(self, stage: str) -> None:
        """Send both workers where they are, for what they say when they die."""
        self.reference.stage = self.port.stage = stage

    def build(self) -> None:
        """Build both networks, run each once to see the order of its calls, and pair them."""
        ours = self.reference.begin(Networks.build, self.case.reference, self.seed)
        theirs = self.port.begin(Networks.build, self.case.port, self.seed)
        self.reference_structure = ours.answer()
        self.port_structure = theirs.answer()
        self._reference_can = frozenset(self.reference.ask(Networks.capabilities))
        self._port_can = frozenset(self.port.ask(Networks.capabilities))
        self.reference_state = self.reference.ask(Networks.state)
        self.port_initial = self.port.ask(Networks.state)
        self.sides = (self._side(self.reference), self._side(self.port))
        if {self.reference.framework, self.port.framework} == {"torch", "mindspore"}:
            self._set_floors()
        self._note_calls()
        self._settle_dropout()
        states = {"reference": self.reference_state, "port": self.port_initial}

        def values(side: Literal["reference", "port"], name: str) -> Array:
            return states[side][name].values

        self.pairing = pair_parameters(
            self.reference_structure,
            self.port_structure,
            rename=self.case.rename,
            values=values,
        )

    def _set_floors(self) -> None:
        floors = floors_of(self.reference, self.port, self.progress.note)
        self.reference.ask(Networks.set_floors, floors)

    def _note_calls(self) -> None:
        self.enter("forward")
        request = self.pass_request(self.case.modes[0], record=True)
        ours = self.reference.begin(Passes.forward, request)
        theirs = self.port.begin(Passes.forward, request)
        ours.answer()
        calls = self.reference.ask(Passes.calls)
        self.reference_structure = dataclasses.replace(self.reference_structure, calls=calls)
        theirs.answer()
        calls = self.port.ask(Passes.calls)
        self.port_structure = dataclasses.replace(self.port_structure, calls=calls)

    def counts(self, key: str) -> bool:
        """Whether a difference of this tensor matters: of gradients of the inputs if asked for.

        Nobody trains on them but in adversarial training and in networks that feed one another.
        """
        return self.case.input_gradients or TensorKey(key).kind != "gradient.input"

    def _settle_dropout(self) -> None:
        """Where one side draws its masks by hand, dropout scales what it keeps as they do."""
        ours = self.reference.begin(Chance.draws_by_hand)
        drawn = self.port.ask(Chance.draws_by_hand), ours.answer()
        self.scales_dropout = any(drawn)
        for worker in (self.reference, self.port):
            worker.ask(Networks.keep_scale, self.scales_dropout)

    def rebuild_port(self) -> None:
        """Start the port's worker again after it has died."""
        self.port.close()
        stage = self.port.stage
        self.port = self.start(self.case.port.framework, "port", self.case.port_python)
        self.port.stage = stage
        self.port.ask(Networks.build, self.case.port, self.seed)
        self.port.ask(Networks.keep_scale, self.scales_dropout)

    @staticmethod
    def _side(worker: Worker) -> Side:
        found = worker.ask(Networks.describe)
        return Side(
            found["framework"],
            found["framework_version"],
            found["python_version"],
            found["device"],
            tuple(filter(None, found.get("changed", "").split("; "))),
        )

    def inputs(self, step: int = 0) -> dict[str, Nested]:
        """The model's arguments of one step."""
        return self._source.inputs(step)

    def targets(self, step: int = 0) -> list[Nested]:
        """The loss's further arguments of one step."""
        return self._source.targets(step)

    def pass_request(
        self, mode: str, step: int = 0, *, backward: bool = False, record: bool = False
    ) -> PassRequest:
        """An end-to-end pass on the inputs and targets of one step."""
        return PassRequest(mode, self.inputs(step), self.targets(step), backward, record)

    def step_request(self, step: int, state: Tensors | None = None) -> StepRequest:
        """A training step on the inputs and targets of one step, from a state or from its own.

        state: by name, the shapes and dtypes of the parameters and buffers.
        """
        return StepRequest(state, self.inputs(step), self.targets(step))

    @property
    def can_diagnose(self) -> bool:
        """Whether the reference shows its functions, so that causes can be looked for."""
        return Diagnosable.__name__ in self._reference_can

    @property
    def can_fix(self) -> bool:
        """Whether the port can be changed for a pass, so that causes can be proved."""
        return Port.__name__ in self._port_can

    def note_unanswered(self, what: str, error: IsogradError) -> None:
        """Keep for the report that a question found no answer, and why."""
        note = f"{what}: {error.what}"
        if note not in self.unanswered:
            self.unanswered.append(note)

    def transfer(self, state: Tensors) -> Tensors:
        """The reference's parameters and buffers as the port holds them.

        state: the reference's shapes, any dtypes.
        returns: the port's shapes, the same dtypes.
        """
        result: Tensors = {}
        for pair in self.pairing.pairs:
            if not all(name in state for name in pair.reference):
                continue
            arrays = pair.transform.apply([state[name].values for name in pair.reference])
            dtype = state[pair.reference[0]].dtype
            for name, array in zip(pair.port, _spread(arrays, pair.port), strict=True):
                result[name] = TensorValue(contiguous(array), dtype)
        return result

    def as_reference(self, tensors: Mapping[str, TensorValue], summed: bool = False) -> Tensors:
        """The port's parameter-like tensors under the reference's names and layouts.

        With summed, tensors that the port keeps apart for one tied reference are added, as
        gradients are.

        tensors: the port's shapes, any dtypes.
        returns: the reference's shapes, the same dtypes.
        """
        result: Tensors = {}
        for pair in self.pairing.pairs:
            if not all(name in tensors for name in pair.port):
                continue
            arrays = pair.transform.invert([tensors[name].values for name in pair.port])
            dtype = tensors[pair.port[0]].dtype
            for name, array in zip(pair.reference, arrays, strict=False):
                if summed and pair.untied and name in result:
                    array = np.add(array, result[name].values)
                result[name] = TensorValue(contiguous(array), dtype)
        return result

    def port_names(self, names: Iterable[str]) -> list[str]:
        """The port's parameters that correspond to these of the reference."""
        wanted = set(names)
        found: list[str] = []
        for pair in self.pairing.pairs:
            if wanted.intersection(pair.reference):
                found += [name for name in pair.port if name not in found]
        return found

    def pair_of(self, name: str) -> ParameterPair | None:
        """The pair that holds this parameter of the reference."""
        return next((p for p in self.pairing.pairs if name in p.reference), None)

    def infos(self) -> tuple[dict[str, ParameterInfo], dict[str, ParameterInfo]]:
        """Parameters and buffers by name, of both sides."""
        first, second = self.reference_structure.parameters, self.port_structure.parameters
        return {p.name: p for p in first}, {p.name: p for p in second}


def _spread(arrays: list[Array], names: tuple[str, ...]) -> list[Array]:
    """One array for several tied names."""
    return arrays * len(names) if len(arrays) == 1 and len(names) > 1 else arrays

"""Tries a first case: both networks are built and run once, so that the case runs as written."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from isograd.errors import IsogradError, UserCodeError
from isograd.frameworks.base import SideSpec, Structure, Tensors, in_slots
from isograd.init.guessing import input_candidates, target_candidates
from isograd.tensors import TensorValue
from isograd.verify.arguments import Argument
from isograd.verify.inputs import make_argument
from isograd.worker.host import Worker
from isograd.worker.protocols import Networks, Passes
from isograd.worker.requests import PassRequest

_MOST_TRIES = 60


@dataclass(frozen=True)
class Wanted:
    """An argument of the network: what is known of it, or which module it goes into."""

    key: str
    known: Argument | None
    consumer: str | None = None


@dataclass(frozen=True)
class Tried:
    """What a network took; problem: what it said where it took nothing."""

    arguments: tuple[Argument, ...] | None
    outputs: tuple[TensorValue, ...] = ()
    problem: str = ""


class Probe:
    """One side's worker; leaves nothing behind."""

    def __init__(self, spec: SideSpec, side: str, python: str | None = None) -> None:
        self._spec = spec
        self._worker = Worker(spec.framework, side, python)

    def __enter__(self) -> Probe:
        return self

    def __exit__(self, *rest: object) -> None:
        self._worker.close()

    def inputs(self, wanted: Sequence[Wanted]) -> Tried:
        """The first combination of inputs with which the network runs forward."""
        structure = self._build(None)
        said = "nothing is known of its inputs"
        for arguments in itertools.islice(_combinations(wanted, structure), _MOST_TRIES):
            try:
                found = self._forward(wanted, arguments, ())
            except UserCodeError as error:
                said = error.what
                continue
            return Tried(tuple(arguments), in_slots(found, "output"))
        return Tried(None, problem=said)

    def targets(
        self,
        loss: str,
        kind: str,
        known: Sequence[Argument | None],
        wanted: Sequence[Wanted],
        inputs: Tried,
    ) -> Tried:
        """The first combination of targets with which the loss is computed."""
        assert inputs.arguments is not None
        self._build(loss)
        guessed = target_candidates(inputs.outputs, kind)
        choices = [[spec] if spec is not None else guessed for spec in known]
        said = "nothing is known of its targets"
        for targets in itertools.islice(itertools.product(*choices), _MOST_TRIES):
            try:
                self._forward(wanted, inputs.arguments, targets)
            except UserCodeError as error:
                said = error.what
                continue
            return Tried(targets)
        return Tried(None, problem=said)

    def runs(
        self,
        loss: str | None,
        wanted: Sequence[Wanted],
        inputs: Sequence[Argument],
        targets: Sequence[Argument],
    ) -> str:
        """Nothing where the network and its loss run on these, else what they said."""
        try:
            self._build(loss)
            self._forward(wanted, inputs, targets)
        except IsogradError as error:
            return error.what
        return ""

    def _build(self, loss: str | None) -> Structure:
        return self._worker.ask(Networks.build, replace(self._spec, loss=loss), 0)

    def _forward(
        self, wanted: Sequence[Wanted], inputs: Sequence[Argument], targets: Sequence[Argument]
    ) -> Tensors:
        given = {
            want.key: make_argument(spec, (0, 0, i, 0))
            for i, (want, spec) in enumerate(zip(wanted, inputs, strict=True))
        }
        answers = [make_argument(spec, (0, 0, i, 1)) for i, spec in enumerate(targets)]
        return self._worker.ask(Passes.forward, PassRequest("train", given, answers))


def _combinations(wanted: Sequence[Wanted], structure: Structure) -> Iterator[tuple[Argument, ...]]:
    """Known arguments as they are, unknown ones by the layers that they go into."""
    choices: list[Sequence[Argument]] = [
        [want.known] if want.known is not None else input_candidates(structure, want.consumer)
        for want in wanted
    ]
    # Arguments of the same kind mostly have the same size, so the candidates go side by side first.
    if len(choices) > 1 and all(choices):
        longest = max(len(choice) for choice in choices)
        for i in range(longest):
            yield tuple(choice[min(i, len(choice) - 1)] for choice in choices)
    yield from itertools.product(*choices)

"""Stages update, training and inference: optimizers on equal gradients, steps from equal states.

Free-running losses are chaotic: a correct port leaves 1 ‰ within 50 steps (docs/thresholds.md).
So the optimizer is fed the reference's own gradients, and training is re-synchronised with the
reference's parameters and statistics at every step.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from isograd.diagnose.update.problem import UPDATE_TRACKS
from isograd.frameworks.base import FLOAT64, NATIVE, Arithmetic, Tensors
from isograd.frameworks.rules import watched
from isograd.metrics import Float64
from isograd.model import Finding, LossCurves, Severity, Stage
from isograd.noise.envelope import (
    END_TO_END_THRESHOLD,
    ISOLATED_THRESHOLD,
    SECOND_LOOK_VARIANTS,
    Comparison,
    Measured,
    compare,
    measured,
)
from isograd.tensors import TensorKey, gradients_of_parameters, keyed, tensor_value
from isograd.verify.kept import KeptStep
from isograd.verify.parameters import fix_at
from isograd.verify.session import Session
from isograd.worker.protocols import Fixes, Networks, Rules, Training
from isograd.worker.requests import StepRequest

#: Fed gradients up to this size are kept for the proof; larger ones are computed again.
_KEPT_BYTES = 256 << 20

_TRAINING_TRACKS: dict[str, Arithmetic] = {
    "float64": FLOAT64,
    "plain": NATIVE,
    "other": Arithmetic(alternative_kernels=True),
    "noise": Arithmetic(input_noise=True, operator_noise=True, seed=11),
    "biased": Arithmetic(operator_noise=True, biased=True, seed=13),
    "loud": Arithmetic(input_noise=True, operator_noise=True, amplitude=8.0, seed=14),
}
#: Added where something leaves the envelope of those above, and may return.
_SECOND_LOOK_TRACKS: dict[str, Arithmetic] = {
    f"again {number}": arithmetic for number, arithmetic in enumerate(SECOND_LOOK_VARIANTS)
}


@dataclass
class StepsResult:
    """The judgements of a stage that takes steps.

    worst: for each tensor of the reference, its worst comparison and the step of it; first: the
    first step at which it left the envelope; untouched: parameters that the reference computes no
    gradient for, so that its optimizer leaves them alone.
    """

    checked: int = 0
    worst: dict[str, tuple[int, Comparison]] = field(default_factory=dict)
    untouched: set[str] = field(default_factory=set)
    first: dict[str, int] = field(default_factory=dict)

    def note(self, name: str, step: int, comparison: Comparison, threshold: float) -> None:
        """Take one comparison into account."""
        self.checked += 1
        known = self.worst.get(name)
        if known is None or not comparison.ratio <= known[1].ratio:
            self.worst[name] = (step, comparison)
        if not comparison.ratio <= threshold:
            self.first.setdefault(name, step)


@dataclass
class UpdateRecord:
    """What a search for the causes needs of an update stage: watched elements, bounded.

    indices: flat indices by parameter of the reference; port: their values after each step.
    fed: the gradients of each step under the port's names, as long as they are few.
    """

    indices: Tensors = field(default_factory=dict)
    port: dict[str, list[Float64]] = field(default_factory=dict)
    fed: list[Tensors] = field(default_factory=list)
    kept_bytes: int = 0

    def begin(self, session: Session, gradients: Tensors) -> None:
        """Choose the elements by the first gradients, and send them to the reference.

        gradients: by parameter, in its shape and any float dtype.
        """
        self.indices = {n: tensor_value(watched(v.values)) for n, v in gradients.items()}
        session.reference.ask(Rules.watch_update, "float64", self.indices)

    def note(self, found: Tensors) -> None:
        """Take the port's parameters after a step.

        found: by parameter, in its shape and any float dtype.
        """
        for name, value in found.items():
            if name in self.indices:
                chosen = value.values.reshape(-1)[self.indices[name].values]
                self.port.setdefault(name, []).append(chosen.astype(np.float64))

    def keep(self, moved: Tensors) -> None:
        """Keep what was fed to the port, if all of it stays small.

        moved: by parameter, in its shape and dtype.
        """
        self.kept_bytes += sum(v.values.nbytes for v in moved.values())
        if self.kept_bytes <= _KEPT_BYTES:
            self.fed.append(moved)


def replay_updates(
    session: Session, first: int = 0
) -> tuple[StepsResult, list[float], list[Finding], UpdateRecord]:
    """Feed the reference's gradients to both optimizers; also the reference's free losses.

    first: the batch of the first step; another one gives other gradients.
    """
    steps = session.case.steps
    reference, port = session.reference, session.port
    updated = set(reference.ask(Training.start_training, "native", NATIVE))
    for track, arithmetic in UPDATE_TRACKS.items():
        reference.ask(Training.start_training, track, arithmetic)
    port_updated = set(port.ask(Training.start_training, "port", NATIVE))
    findings = list(_left_out(session, updated, port_updated))
    result, losses, record = StepsResult(), [], UpdateRecord()
    for step in range(steps):
        session.progress.advance(step, steps, f"step {step}")
        native = reference.ask(
            Training.train_step, "native", session.step_request(first + step), ("loss", "gradient")
        )
        losses.append(float(native["loss"].values.sum()))
        gradients: Tensors = {key: value for key, value in keyed(native) if key.is_gradient}
        plain = gradients_of_parameters(native)
        result.untouched = {n for n in updated if n not in plain}
        if step == 0:
            port.ask(Fixes.leave_untouched, session.port_names(result.untouched))
            record.begin(session, plain)
        moved: Tensors = {
            TensorKey.parameter(n).gradient: v for n, v in session.transfer(plain).items()
        }
        ours = reference.begin(
            Training.measure_step, tuple(UPDATE_TRACKS), StepRequest(gradients=gradients)
        )
        theirs = port.begin(Training.train_step, "port", StepRequest(gradients=moved), ("state",))
        expected = measured(ours.answer())
        found = _state(session, theirs.answer())
        record.note(found)
        record.keep(moved)
        for name, comparison in _compare_states(session, expected, found, trainable=True):
            result.note(name, step, comparison, ISOLATED_THRESHOLD)
    reference.ask(Training.end_training)
    port.ask(Training.end_training)
    return result, losses, findings, record


def begin_alike(session: Session) -> bool:
    """Give the port the reference's parameters; whether it had others.

    Forward methods may write to their own (forced weight norm, as in Karras' networks): after the
    stages before, both sides hold what their own rounding has left.
    """
    state: Tensors = session.reference.ask(Networks.state)
    held = session.as_reference(session.port.ask(Networks.state))
    infos, _ = session.infos()
    trained = [name for name, info in infos.items() if info.trainable and name in held]
    if all(np.array_equal(state[name].values, held[name].values) for name in trained):
        return False
    session.port.ask(Networks.load_state, session.transfer(state))
    return True


def _left_out(session: Session, ours: set[str], theirs: set[str]) -> Iterator[Finding]:
    """Parameters that only one of the two optimizers updates."""
    first, second = session.infos()
    for pair in session.pairing.pairs:
        info = first[pair.reference[0]]
        if not info.trainable or not second[pair.port[0]].trainable:
            continue
        here = any(name in ours for name in pair.reference)
        there = any(name in theirs for name in pair.port)
        if here and not there:
            yield Finding(
                "update.left_out",
                Severity.EFFECTIVE,
                Stage.UPDATE,
                info.module,
                f"the port's optimizer does not hold {pair.port[0]}, so {info.attribute} is "
                "never updated",
                fix=fix_at(session, second[pair.port[0]].module, "give it to the optimizer"),
            )


def resynchronised_steps(
    session: Session,
    granted: Mapping[str, dict[str, Any]] | None = None,
    *,
    looks_again: bool = True,
) -> tuple[StepsResult, Tensors]:
    """Train both sides, each step from the reference's state; the last state is returned.

    granted: rules by parameter that the reference follows as well, because stage update has
    found and reported that the port's optimizer does: what differs then is something else.
    looks_again: whether what leaves the envelope is measured with more tracks, as statistics of a
    few values multiply the noise of one run in ten, and an optimizer that divides by the gradient's
    magnitude makes a whole step of one that rounding takes to zero; in vain where the stages
    before explain it.
    returns: beside the result the state: the shapes and dtypes of the reference's parameters and
    buffers.
    """
    session.reference.ask(Rules.grant_rules, dict(granted or {}))
    start: Tensors = session.reference.ask(Networks.state)
    result, state = _steps(session, start, _TRAINING_TRACKS)
    if looks_again and result.first:
        session.reference.ask(Networks.load_state, start)
        session.port.ask(Networks.load_state, session.transfer(start))
        result, state = _steps(session, start, _TRAINING_TRACKS | _SECOND_LOOK_TRACKS)
    session.reference.ask(Rules.grant_rules, {})
    return result, state


def _steps(
    session: Session, state: Tensors, tracks: Mapping[str, Arithmetic]
) -> tuple[StepsResult, Tensors]:
    """The steps of a training from a state, within the envelope of these tracks."""
    steps = session.case.steps
    reference, port = session.reference, session.port
    reference.ask(Training.start_training, "native", NATIVE)
    for track, arithmetic in tracks.items():
        reference.ask(Training.start_training, track, arithmetic)
    port.ask(Training.start_training, "port", NATIVE)
    result = StepsResult()
    session.kept.begin_steps()
    for step in range(steps):
        session.progress.advance(step, steps, f"step {step}")
        moved = session.step_request(step, session.transfer(state))
        theirs = port.begin(Training.train_step, "port", moved, ("loss", "state"))
        request = session.step_request(step, state)
        expected = measured(reference.ask(Training.measure_step, tuple(tracks), request))
        answer = theirs.answer()
        session.kept.note_step(step, KeptStep(state, expected, answer))
        found = _state(session, answer)
        for name, comparison in _compare_states(session, expected, found, trainable=False):
            result.note(name, step, comparison, END_TO_END_THRESHOLD)
        if answer["loss"].shape == expected["loss"].values.shape:
            comparison = compare("loss", expected["loss"], answer["loss"])
            result.note("loss", step, comparison, END_TO_END_THRESHOLD)
        native = reference.ask(
            Training.train_step, "native", session.step_request(step), ("state",)
        )
        state = {k[6:]: v for k, v in native.items() if k.startswith("state.")}
    reference.ask(Training.end_training)
    port.ask(Training.end_training)
    return result, state


def _state(session: Session, answer: Tensors) -> Tensors:
    return session.as_reference({k[6:]: v for k, v in answer.items() if k.startswith("state.")})


def _compare_states(
    session: Session, expected: dict[str, Measured], found: Tensors, trainable: bool
) -> Iterator[tuple[str, Comparison]]:
    infos, _ = session.infos()
    for name, measure in expected.items():
        if not name.startswith("state."):
            continue
        key = name.removeprefix("state.")
        value = found.get(key)
        info = infos.get(key)
        if value is None or info is None or info.tied_to is not None:
            continue
        wanted = info.trainable if trainable else info.trainable or _is_statistic(info.attribute)
        if wanted and value.shape == measure.values.shape:
            yield key, compare(key, measure, value)


def _is_statistic(attribute: str) -> bool:
    return attribute in ("running_mean", "running_var")


def free_losses(session: Session, reference: list[float]) -> LossCurves:
    """The port's free-running losses beside the reference's, by the migration guide's rule."""
    session.port.ask(Training.start_training, "port", NATIVE)
    port: list[float] = []
    for step in range(session.case.steps):
        request = session.step_request(step)
        answer = session.port.ask(Training.train_step, "port", request, ("loss",))
        port.append(float(answer["loss"].values.sum()))
    session.port.ask(Training.end_training)
    permille = [
        1000.0 * abs(theirs - ours) / abs(ours) if ours else math.inf
        for ours, theirs in zip(reference, port, strict=True)
    ]
    out = next((i for i, value in enumerate(permille) if not value <= 1.0), None)
    return LossCurves(tuple(reference), tuple(port), tuple(permille), out)

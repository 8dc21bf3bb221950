"""The runs of stage compiled: passes in both modes and training steps, every way beside eager."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from isograd.frameworks.base import FLOAT64, NATIVE, Arithmetic, Tensors
from isograd.frameworks.capabilities import CompilesModules
from isograd.noise.envelope import END_TO_END_VARIANTS, Measured, measured
from isograd.tensors import Role, keyed
from isograd.verify.compiled.judge import WayResult, by_reference, note
from isograd.verify.compiled.port import CompiledPort, Request
from isograd.verify.kept import STEPS, KeptStep
from isograd.verify.session import Session
from isograd.worker.protocols import Networks, Passes, Training

#: The runs whose spread is the envelope of a step.
_TRACKS: dict[str, Arithmetic] = {
    "float64": FLOAT64,
    "plain": NATIVE,
    "other": Arithmetic(alternative_kernels=True),
    "noise": Arithmetic(input_noise=True, operator_noise=True, seed=21),
    "biased": Arithmetic(operator_noise=True, biased=True, seed=22),
    "loud": Arithmetic(input_noise=True, operator_noise=True, amplitude=8.0, seed=23),
}


class WayRuns:
    """Runs the port some ways and judges them; `results` holds what was seen, by way."""

    def __init__(self, session: Session, port: CompiledPort, ways: Sequence[str]) -> None:
        self._session, self._port = session, port
        self.results = {way: WayResult(way) for way in ways}
        case = session.case
        self._has_loss = case.reference.loss is not None
        trains = any(p.trainable for p in session.reference_structure.parameters)
        self._trains = case.reference.optimizer is not None and trains and "train" in case.modes
        self._done = 0

    def run(self) -> dict[str, WayResult]:
        """All passes and steps."""
        for mode in reversed(self._session.case.modes):
            if self._takes_steps(mode):
                self._steps()
            else:
                self._pass(mode)
        return self.results

    def first_requests(self) -> Iterator[Request]:
        """What `run` asks first of all that compiles, in its order."""
        session = self._session
        for mode in reversed(session.case.modes):
            for way in self.results:
                if self._takes_steps(mode):
                    state = session.port.ask(Networks.state)
                    given = (state, session.inputs(), session.targets(), True)
                    yield CompilesModules.step, (way, *given)
                else:
                    yield CompilesModules.once, (way, *self._once(mode))

    def _takes_steps(self, mode: str) -> bool:
        return mode == self._session.case.modes[0] and self._trains

    def _once(self, mode: str) -> tuple[str, dict[str, Any], list[Any], bool, bool]:
        """The arguments of a pass: mode, inputs, targets, backward, and whether it must run.

        A pass in the second mode need not, where no module reads its mode.
        """
        session = self._session
        is_first = mode == session.case.modes[0]
        return mode, session.inputs(), session.targets(), self._has_loss and is_first, is_first

    def _open(self) -> list[WayResult]:
        return [r for r in self.results.values() if r.refusal is None]

    def _advance(self, way: str, what: str) -> None:
        modes = self._session.case.modes
        each = (STEPS if self._trains else 1) + len(modes) - 1
        total = each * len(self.results)
        self._session.progress.advance(self._done, total, f"{what} under {words_of(way)}")
        self._done += 1

    def _pass(self, mode: str) -> None:
        arguments = self._once(mode)
        answers = []
        for result in self._open():
            self._advance(result.way, f"{mode} mode")
            answer = self._port.ask(CompilesModules.once, result.way, *arguments)
            answers.append((result, answer))
        if all("unread" in answer for _, answer in answers):
            return
        expected, eager = self._eager(mode, arguments[3])
        for result, answer in answers:
            self._take(result, answer, mode, expected, eager, 0)

    def _take(
        self,
        result: WayResult,
        answer: dict[str, Any],
        mode: str,
        expected: dict[str, Measured],
        eager: Tensors,
        step: int,
    ) -> None:
        """Judge an answer; the first that is refused or differs says in which mode."""
        was_clean = result.is_clean
        if "tensors" in answer:
            note(result, expected, eager, by_reference(self._session, answer["tensors"]), step)
        else:
            result.refusal = answer
        if was_clean and not result.is_clean:
            result.mode = mode

    def _steps(self) -> None:
        """Steps in training mode, each from the reference's state."""
        session = self._session
        state: Tensors = session.reference.ask(Networks.state)
        own: Tensors = session.port.ask(Networks.state)
        first = self._first("train")
        count = min(STEPS, session.case.steps)
        kept = session.kept.steps_from(state, count)
        started: set[str] = set()
        held = own
        for step, taken in enumerate(kept or self._taken(state, own, count)):
            # What has no partner stands where the eager steps had left it, for every way.
            moved = own if step == 0 else {**held, **session.transfer(taken.state)}
            held = {k[6:]: v for k, v in taken.port.items() if k.startswith("state.")}
            expected = self._wanted(taken.reference)
            eager = by_reference(session, taken.port)
            if step == 0:
                expected, eager = expected | first[0], first[1] | eager
            given = moved, session.inputs(step), session.targets(step)
            for result in self._open():
                self._one_step(result, started, step, given, expected, eager)

    def _taken(self, state: Tensors, own: Tensors, count: int) -> Iterator[KeptStep]:
        """Steps as stage training takes them, where it has kept none from this state."""
        session = self._session
        reference, port = session.reference, session.port
        reference.ask(Training.start_training, "native", NATIVE)
        for track, arithmetic in _TRACKS.items():
            reference.ask(Training.start_training, track, arithmetic)
        port.ask(Training.start_training, "port", NATIVE)
        for step in range(count):
            request = session.step_request(step, own if step == 0 else session.transfer(state))
            theirs = port.begin(Training.train_step, "port", request, ("loss", "state"))
            request = session.step_request(step, state)
            errors = reference.ask(Training.measure_step, tuple(_TRACKS), request)
            yield KeptStep(state, measured(errors), theirs.answer())
            native = reference.ask(
                Training.train_step, "native", session.step_request(step), ("state",)
            )
            state = {k[6:]: v for k, v in native.items() if k.startswith("state.")}
        reference.ask(Training.end_training)
        port.ask(Training.end_training)

    def _first(self, mode: str) -> tuple[dict[str, Measured], Tensors]:
        """What the first step is compared with beyond loss and state: outputs and gradients."""
        expected, eager = self._eager(mode, backward=True)
        eager = {k: v for k, v in eager.items() if k.startswith(("output", "gradient.parameter"))}
        return {k: m for k, m in keyed(expected) if k.is_plain(Role.OUTPUT)}, eager

    def _eager(self, mode: str, backward: bool) -> tuple[dict[str, Measured], Tensors]:
        """A pass of the reference with its envelope, and the port's own eager pass."""
        session = self._session
        kept = session.kept.passed(mode, backward)
        if kept is not None:
            reference, port = kept.reference, kept.port
        else:
            request = session.pass_request(mode, backward=backward)
            theirs = session.port.begin(Passes.forward, request)
            errors = session.reference.ask(Passes.measure_forward, request, END_TO_END_VARIANTS)
            reference, port = measured(errors), theirs.answer()
        expected: dict[str, Measured] = {
            key: one for key, one in keyed(reference) if key.kind != "gradient.input"
        }
        return expected, by_reference(session, port)

    def _wanted(self, expected: dict[str, Measured]) -> dict[str, Measured]:
        infos, _ = self._session.infos()

        def is_wanted(key: str) -> bool:
            if not key.startswith("state."):
                return True
            info = infos.get(key.removeprefix("state."))
            return info is not None and (
                info.trainable or info.attribute in ("running_mean", "running_var")
            )

        return {k: m for k, m in expected.items() if is_wanted(k)}

    def _one_step(
        self,
        result: WayResult,
        started: set[str],
        step: int,
        given: tuple[Tensors, Any, Any],
        expected: dict[str, Measured],
        eager: Tensors,
    ) -> None:
        way = result.way
        if step and way not in started:
            return  # its optimizer was lost with a process that ended
        started.add(way)
        self._advance(way, f"training step {step}")
        answer = self._port.ask(CompilesModules.step, way, *given, step == 0)
        if self._port.has_ended:
            started.clear()
        if "refused" in answer and step == 0 and self._gradients_alone(result, given, eager):
            result.notes.append(
                f"the optimizer's step does not compile under {words_of(way)} "
                f"({answer['refused']}); the gradients do, and the optimizer runs eagerly"
            )
            started.discard(way)
            return
        self._take(result, answer, "train", expected, eager, step)

    def _gradients_alone(
        self, result: WayResult, given: tuple[Tensors, Any, Any], eager: Tensors
    ) -> bool:
        """Whether the gradients compile without the optimizer; then they are judged."""
        _, inputs, targets = given
        answer = self._port.ask(
            CompilesModules.once, result.way, "train", inputs, targets, True, True
        )
        if "tensors" not in answer:
            return False
        self._take(result, answer, "train", self._eager("train", True)[0], eager, 0)
        return True


def words_of(way: str) -> str:
    """A way as a reader would call it."""
    return {"jit": "jit", "graph": "GRAPH_MODE", "own": "the port's own jit and mode"}[way]

"""Causes of what one unit's replay found: named on the reference's side, proved on the port's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from isograd.diagnose.decide import Diagnosis, NamedCause
from isograd.diagnose.hypothesis import Surroundings
from isograd.diagnose.library import all_hypotheses
from isograd.diagnose.matched_filter import INTERVAL_DEVIATIONS
from isograd.errors import IsogradError
from isograd.frameworks.base import NATIVE, FunctionCall, PortFix, Tensors, Trial
from isograd.model import Cause, Evidence, Fix, Stage
from isograd.tensors import Array
from isograd.verify.explain import (
    PortSide,
    Subject,
    as_cause,
    ask,
    ask_quietly,
    fix_of,
    judged_as_reference,
    prove,
    wanted_keys,
)
from isograd.verify.half_precision import half_cause
from isograd.verify.replay import Replayer, forward_only
from isograd.verify.session import Session
from isograd.verify.unit_result import UnitResult, with_misshapen
from isograd.worker.protocols import Causes, Passes
from isograd.worker.requests import SubjectRequest

#: Envelope relative to the tensor above which something may hide in the noise: sixteen-bit
#: floats (4e-3, 5e-4) and kernels that the device profile found to be coarse.
_COARSE = 1e-5


def _is_coarse(result: UnitResult) -> bool:
    for tensor in result.tensors:
        if tensor.stage is Stage.FORWARD and tensor.comparison is not None:
            if tensor.comparison.evidence.allowed > _COARSE:
                return True
    return False


@dataclass
class UnitCauses:
    """Diagnoses units of one recorded pass."""

    session: Session
    replayer: Replayer
    mode: str
    #: What was granted to explain the units so far, for passes that go on beyond it.
    granted: list[Trial] = field(default_factory=list)

    def diagnose(
        self, result: UnitResult, stage: Stage, fixed: tuple[Trial, ...], without: str = ""
    ) -> Diagnosis | None:
        """What a stage of a unit is explained by, with causes in `fixed` granted.

        without: a module within the unit in which the cause is not.
        """
        if result.requests is None:
            return None
        self.replayer.settle()
        subject = self._subject(result, without)
        likely = tuple(self.session.explained_by)
        found = ask(self.session, subject, stage, result.port, fixed, likely)
        for cause in found.causes if found is not None else ():
            if cause.trial not in self.granted:
                self.granted.append(cause.trial)
            if cause.name not in likely:
                self.session.explained_by.append(cause.name)
        return found

    def diagnose_quietly(self, result: UnitResult) -> Diagnosis | None:
        """A small change that hides in the noise of coarse arithmetic, if there is one."""
        assert result.requests is not None
        wanted = wanted_keys(Stage.FORWARD, result.port)
        if not wanted or not _is_coarse(result):
            return None
        self.replayer.settle()
        subject = self._subject(result)
        found = ask_quietly(self.session, subject, result.port, wanted)
        return found if found is not None and found.causes else None

    def prove(
        self,
        result: UnitResult,
        stage: Stage,
        known: Diagnosis,
        fixed: tuple[Trial, ...],
        quiet: bool = False,
    ) -> tuple[list[Cause], Fix | None, tuple[PortFix, ...]]:
        """The causes as the report holds them, proved where a fix mends the port, and the fix.

        The fix comes in words and as it was made.  Nothing is proved where it changes less than
        is known of the port's error: an interval of alpha that holds 0 allows no change at all.
        quiet: the error was within the noise, so its projection must be gone, not its magnitude.
        """
        self.replayer.settle()
        fixes: tuple[PortFix, ...] = ()
        if not fixed:
            trials = tuple(cause.trial for cause in known.causes) if quiet else ()
            side = self._side(result, stage, trials)
            fixes = prove(self.session, self._subject(result), known.causes, side)
        if any(cause.alpha_low <= 0.0 for cause in known.causes):
            fixes = ()
        port_module = self.replayer.port_calls[result.unit.port].module
        causes = [as_cause(cause, bool(fixes)) for cause in known.causes]
        return causes, fix_of(self.session, fixes, port_module), fixes

    def agrees(
        self,
        result: UnitResult,
        stage: Stage,
        fixes: tuple[PortFix, ...],
        quiet_trials: tuple[Trial, ...],
    ) -> bool:
        """Whether a unit agrees, in one stage, once the port is fixed so."""
        try:
            return self._side(result, stage, quiet_trials).agrees(fixes)
        except IsogradError as error:
            self.session.note_unanswered(f"{self._name(result)} was not run with its fix", error)
            return False

    def in_half(
        self, result: UnitResult, errors: Sequence[Evidence]
    ) -> tuple[Cause, Fix | None] | None:
        """The cause where the port computes in sixteen bits, and its fix; see `half_precision`."""
        if result.requests is None:
            return None
        self.replayer.settle()
        side = self._side(result, Stage.FORWARD, ())
        try:
            found = half_cause(
                self.session.reference.ask(Passes.trace, result.requests[0]),
                side.trace(),
                errors,
                side.agrees,
            )
        except IsogradError as error:
            self.session.note_unanswered(f"{self._name(result)} was not traced", error)
            return None
        if found is None:
            return None
        port_module = self.replayer.port_calls[result.unit.port].module
        return found.cause, fix_of(self.session, found.fixes, port_module)

    def module_of(self, cause: NamedCause, result: UnitResult) -> str:
        """The module whose code holds the cause: what is done to a child is its caller's code."""
        calls, hypothesis = self.replayer.reference_calls, all_hypotheses()[cause.trial.hypothesis]
        place, own = cause.trial.place, calls[result.unit.reference].module
        pinned = {calls[pin].module for pin, _ in result.unit.pins}
        if place.module not in pinned:
            is_own = place.function != "module" or hypothesis.within
            return place.module if is_own else own
        called = next(pin for pin, _ in result.unit.pins if calls[pin].module == place.module)
        caller = calls[called].parent
        return own if caller is None else calls[caller].module

    def _name(self, result: UnitResult) -> str:
        return self.replayer.reference_calls[result.unit.reference].module or "the network"

    def _subject(self, result: UnitResult, without: str = "") -> Subject:
        assert result.requests is not None
        module = self.replayer.reference_calls[result.unit.reference].module
        around = Surroundings(module, self.mode, without=without)
        return Subject(result.requests[0], surroundings=around)

    def _side(self, result: UnitResult, stage: Stage, quiet_trials: tuple[Trial, ...]) -> PortSide:
        assert result.requests is not None
        port, request = self.session.port, result.requests[1]
        short = forward_only(request)
        wanted = wanted_keys(stage, result.port)

        def trace() -> tuple[FunctionCall, ...]:
            return port.ask(Passes.trace, request)

        def ends() -> dict[str, Array]:
            answer = port.ask(Passes.replay, short)
            return {
                k: v.values for k, v in answer.items() if k.startswith(("output.", "input_of."))
            }

        def agrees(fixes: tuple[PortFix, ...]) -> bool:
            asked = request if stage is Stage.BACKWARD else short
            answer = port.ask(Passes.replay, asked, NATIVE, fixes)
            if result.places is None:
                return False
            named = self.replayer.named(answer, result.places)
            named = with_misshapen(named, answer, result.reference)
            if quiet_trials:
                return self._has_gone(result, named, wanted, quiet_trials)
            return judged_as_reference(result.reference, named, wanted)

        named = {f"@input.{i}": v.values for i, v in enumerate(request.inputs) if v is not None}
        for pin, outputs in enumerate(request.pin_outputs):
            named |= {f"@pin.{pin}.{i}": v.values for i, v in enumerate(outputs) if v is not None}
        return PortSide(trace, ends, named, self._cells(result), agrees)

    def _has_gone(
        self, result: UnitResult, port: Tensors, wanted: tuple[str, ...], trials: tuple[Trial, ...]
    ) -> bool:
        """Whether nothing of the change that the trials make is left in the port's error."""
        assert result.requests is not None
        subject = SubjectRequest(result.requests[0])
        alpha, deviation = self.session.reference.ask(Causes.project, subject, port, wanted, trials)
        return bool(abs(alpha) <= max(INTERVAL_DEVIATIONS * deviation, 0.1))

    def _cells(self, result: UnitResult) -> list[str]:
        """Library modules of the port that the unit computes itself, not its pinned children."""
        calls = self.replayer.port_calls
        root = calls[result.unit.port].module
        pinned = [calls[pin].module for _, pin in result.unit.pins]

        def inside(name: str, container: str) -> bool:
            return not container or name == container or name.startswith(f"{container}.")

        return [
            m.name
            for m in self.session.port_structure.modules
            if m.library and inside(m.name, root) and not any(inside(m.name, p) for p in pinned)
        ]

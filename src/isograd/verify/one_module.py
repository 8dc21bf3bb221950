"""One module alone: its calls replayed, and every hypothesis tried on what they yield."""

from __future__ import annotations

import math
from collections.abc import Sequence

from isograd.diagnose.decide import Diagnosis, NamedCause, Tried
from isograd.diagnose.matched_filter import INTERVAL_DEVIATIONS
from isograd.errors import WorkerError
from isograd.frameworks.base import CallInfo, Trial
from isograd.model import (
    Attempt,
    CallDiagnosis,
    Cause,
    ComparedTensor,
    Fix,
    PlacedCause,
    Severity,
    Stage,
    StageDiagnosis,
)
from isograd.noise.envelope import ISOLATED_THRESHOLD
from isograd.verify.end_to_end import PassResult
from isograd.verify.findings import words
from isograd.verify.isolated import IsolatedStage
from isograd.verify.parameters import fix_at
from isograd.verify.session import Session
from isograd.verify.unit_result import TensorResult, UnitResult
from isograd.verify.units import Unit

#: Of a module that is called often, hypotheses are tried on this many calls, the worst ones.
_MOST_DIAGNOSED = 3
_UNASKED = (
    "the hypotheses could not be tried: the reference's framework has no means for it, or the "
    "reference failed under them"
)


class OneModule:
    """Replays the calls of one module and diagnoses them."""

    def __init__(self, session: Session, stage: IsolatedStage, module: str, mode: str) -> None:
        self._session = session
        self._stage = stage
        self._module = module
        self._shown = f"{module or 'the network'} ({mode} mode)"
        self._calls: tuple[CallInfo, ...] = stage.replayer.reference_calls
        self._port_calls: tuple[CallInfo, ...] = stage.replayer.port_calls
        self._total = 0
        self.port_module = ""
        self.notes: list[str] = []

    def diagnose(self, units: Sequence[Unit]) -> list[CallDiagnosis]:
        """All calls of the module: compared, and the worst ones explained."""
        self.port_module = self._port_calls[units[0].port].module
        self._total = len(units)
        found = []
        for result in self._stage.replayer.run(units, self._replaying):
            if result.crashed:
                raise WorkerError(
                    f"the port's worker ended while it replayed {self._shown}: {result.failure}",
                    "Run the port on its own; `isograd verify` goes on with the other modules.",
                )
            found.append(result)
        self._stage.replayer.settle()
        failed = [result for result in found if self._stage.fails(result)]
        results = self._stage.with_borders_moved(found, failed) if failed else found
        kept = {result.unit.reference: result for result in results}
        chosen = self._chosen(list(kept.values()))
        return [self._outcome(one, kept.get(one.unit.reference), chosen) for one in found]

    def _outcome(
        self, first: UnitResult, judged: UnitResult | None, chosen: set[int]
    ) -> CallDiagnosis:
        if judged is None:
            return self._freed(first)
        return self._diagnosed(judged, first.unit.reference in chosen)

    def _replaying(self, number: int, unit: Unit) -> None:
        self._session.progress.advance(number, self._total, self._shown)

    def _chosen(self, results: list[UnitResult]) -> set[int]:
        """The calls on which hypotheses are tried: the worst that differ, or the worst of all."""
        judged = [result for result in results if result.tensors]
        differing = [result for result in judged if self._stage.fails(result)]
        worst = sorted(differing or judged, key=_worst, reverse=True)
        most = _MOST_DIAGNOSED if differing else 1
        if len(differing) > most:
            self.notes.append(
                f"{len(differing)} calls differ; hypotheses were tried on the {most} worst"
            )
        return {result.unit.reference for result in worst[:most]}

    def _freed(self, result: UnitResult) -> CallDiagnosis:
        """A call that differs only because the port draws its borders elsewhere."""
        note = "the port draws its borders elsewhere; with the code around it, it agrees"
        return CallDiagnosis(self._name(result.unit), self._given(result.unit), note=note)

    def _diagnosed(self, result: UnitResult, is_chosen: bool) -> CallDiagnosis:
        name, given = self._name(result.unit), self._given(result.unit)
        if result.failure:
            return self._failed(result)
        stages: tuple[StageDiagnosis, ...] = ()
        note = ""
        if is_chosen:
            self._session.progress.advance(0, 1, f"trying hypotheses on {self._shown}")
            differs = self._stage.fails(result)
            stages = tuple(self._explained(result) if differs else self._agreeing(result))
            if differs and not any(stage.causes for stage in stages):
                note = self._first_to_differ(result)
        tensors = tuple(_compared(tensor) for tensor in result.tensors)
        return CallDiagnosis(name, given, tensors, stages, result.backward_failure, note)

    def _failed(self, result: UnitResult) -> CallDiagnosis:
        ours = self._calls[result.unit.reference].output_shapes
        theirs = self._port_calls[result.unit.port].output_shapes
        tensors: tuple[ComparedTensor, ...] = ()
        if ours != theirs:
            problem = f"in its own run the port yields shapes {theirs} instead of {ours}"
            tensors = (ComparedTensor(Stage.FORWARD, "output", True, None, problem=problem),)
        name, given = self._name(result.unit), self._given(result.unit)
        return CallDiagnosis(name, given, tensors, failure=result.failure)

    def _first_to_differ(self, result: UnitResult) -> str:
        culprit = self._stage.culprit(result, Stage.FORWARD)
        if culprit is None:
            return ""
        where = culprit.module or "the network"
        return f"the first function to differ is {culprit.function} in {where}"

    def _explained(self, result: UnitResult) -> list[StageDiagnosis]:
        """Stage after stage, each beyond the causes of those before."""
        found: list[StageDiagnosis] = []
        wrong = [t for t in result.tensors if not t.ratio <= ISOLATED_THRESHOLD]
        fixed: tuple[Trial, ...] = ()
        for stage in (Stage.FORWARD, Stage.BACKWARD, Stage.TRAINING):
            if not any(t.stage is stage for t in wrong):
                continue
            known = self._stage.causes.diagnose(result, stage, fixed)
            found.append(self._proved(result, stage, known, fixed))
            if stage is not Stage.FORWARD:
                continue
            if known is None or not known.causes:
                break  # what differs later follows from this
            fixed = tuple(cause.trial for cause in known.causes)
            wrong = [t for t in wrong if known.ratios.get(t.key, 0.0) > ISOLATED_THRESHOLD]
        return found

    def _proved(
        self,
        result: UnitResult,
        stage: Stage,
        known: Diagnosis | None,
        fixed: tuple[Trial, ...],
        quiet: bool = False,
    ) -> StageDiagnosis:
        if known is None or not known.causes:
            fix = fix_at(self._session, self.port_module, "the port builds this module here")
            return stage_diagnosis(stage, known, [], fix)
        causes, proved, _ = self._stage.causes.prove(result, stage, known, fixed, quiet)
        fix = proved or fix_at(self._session, self.port_module, "the port builds this module here")
        severity = Severity.BELOW_NOISE if quiet else Severity.EFFECTIVE
        return stage_diagnosis(stage, known, causes, fix, severity)

    def _agreeing(self, result: UnitResult) -> list[StageDiagnosis]:
        """What hides in the noise, or else how far the hypotheses are from explaining anything."""
        quiet = self._stage.causes.diagnose_quietly(result)
        if quiet is not None:
            return [self._proved(result, Stage.FORWARD, quiet, (), quiet=True)]
        known = self._stage.causes.diagnose(result, Stage.FORWARD, ())
        return [stage_diagnosis(Stage.FORWARD, known, severity=Severity.EQUIVALENT)]

    def _name(self, unit: Unit) -> str:
        call = self._calls[unit.reference]
        total = sum(1 for c in self._calls if c.module == call.module)
        return f"call {call.occurrence + 1} of {total}"

    def _given(self, unit: Unit) -> tuple[str, ...]:
        return tuple(self._calls[pin].module for pin, _ in unit.pins)


def stage_diagnosis(
    stage: Stage,
    known: Diagnosis | None,
    causes: Sequence[Cause] = (),
    fix: Fix | None = None,
    severity: Severity = Severity.EFFECTIVE,
) -> StageDiagnosis:
    """A diagnosis as the report holds it; `known` is None where it could not be asked."""
    if known is None:
        return StageDiagnosis(stage, severity, math.nan, None, (), (), fix, _UNASKED)
    named = known.causes if severity is not Severity.EQUIVALENT else ()
    placed = tuple(_placed(one, cause) for one, cause in zip(named, causes, strict=True))
    position = _named_position(known) if named else None
    attempts = tuple(_attempt(t, i == position) for i, t in enumerate(known.tried))
    before, after = known.ratio_before, known.ratio_after
    return StageDiagnosis(stage, severity, before, after, placed, attempts, fix)


def compared_loss(judged: PassResult) -> tuple[ComparedTensor, ...]:
    """The loss and its gradients, as the report holds them."""
    found = [
        ComparedTensor(Stage.LOSS, words(key), True, None, problem=problem)
        for key, problem in judged.problems.items()
    ]
    for key, comparison in judged.comparisons.items():
        differs = comparison.exceeds(ISOLATED_THRESHOLD)
        ratio, evidence = comparison.ratio, comparison.evidence
        found.append(ComparedTensor(Stage.LOSS, words(key), differs, ratio, evidence))
    return tuple(found)


def _compared(tensor: TensorResult) -> ComparedTensor:
    differs = not tensor.ratio <= ISOLATED_THRESHOLD
    comparison = tensor.comparison
    if comparison is None:
        return ComparedTensor(tensor.stage, tensor.what, differs, None, problem=tensor.problem)
    return ComparedTensor(tensor.stage, tensor.what, differs, comparison.ratio, comparison.evidence)


def _placed(named: NamedCause, cause: Cause) -> PlacedCause:
    place = named.trial.place
    return PlacedCause(cause, place.module, place.function, named.interval)


def _named_position(known: Diagnosis) -> int | None:
    """Which of the tried hypotheses the causes were drawn from."""
    ids, last = " and ".join(cause.id for cause in known.causes), known.causes[-1]
    place = (last.trial.place.module, last.trial.place.function)
    for position, tried in enumerate(known.tried):
        if (tried.id, tried.ratio, tried.module, tried.function) == (ids, last.ratio, *place):
            return position
    return None


def _attempt(tried: Tried, is_named: bool) -> Attempt:
    reach = INTERVAL_DEVIATIONS * tried.deviation
    return Attempt(
        tried.id,
        tried.text,
        tried.module,
        tried.function,
        tried.ratio,
        tried.alpha,
        (tried.alpha - reach, tried.alpha + reach),
        tried.accepted,
        tried.reason,
        is_named,
    )


def _worst(result: UnitResult) -> float:
    return max(tensor.ratio for tensor in result.tensors)

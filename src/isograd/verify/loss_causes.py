"""Causes of what differs in the loss alone: named on the reference's side, proved on the port's."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from isograd.diagnose.decide import Diagnosis
from isograd.diagnose.hypothesis import Surroundings
from isograd.errors import IsogradError
from isograd.frameworks.base import FunctionCall, PortFix, Tensors, Trial
from isograd.model import Cause, Finding, Fix, Stage
from isograd.noise.envelope import ISOLATED_VARIANTS, Measured, measured
from isograd.tensors import Array, TensorValue
from isograd.verify.confirm import PROOF_BATCH, rotated
from isograd.verify.explain import (
    PortSide,
    Subject,
    as_cause,
    ask,
    fix_of,
    judged_as_reference,
    prove,
    wanted_keys,
)
from isograd.verify.loss_alone import LossRun
from isograd.verify.session import Session
from isograd.worker.protocols import Passes


def with_causes(
    session: Session, findings: Sequence[Finding], run: LossRun
) -> tuple[list[Finding], tuple[Trial, ...]]:
    """The loss's findings with their causes, one for each, and what was granted for them."""
    if not findings:
        return [], ()
    known = diagnose_loss(session, run)
    if known is None or not known.causes:
        return list(findings), ()
    causes, fix = prove_loss(session, run, known)
    first = findings[-1]
    named = [dataclasses.replace(first, cause=cause, fix=fix or first.fix) for cause in causes]
    return [*findings[:-1], *named], _trials(known)


def diagnose_loss(session: Session, run: LossRun) -> Diagnosis | None:
    """What the port's loss is explained by; None where it could not be asked."""
    return ask(session, _subject(run), Stage.LOSS, run.port)


def prove_loss(session: Session, run: LossRun, known: Diagnosis) -> tuple[list[Cause], Fix | None]:
    """The causes as the report holds them, proved where a fix mends the port, and the fix."""
    subject = _subject(run)
    side = _side(session, subject, run.reference, run.port)
    fixes = prove(session, subject, known.causes, side)
    if fixes and not _holds_again(session, run, fixes):
        fixes = ()
    causes = [as_cause(cause, bool(fixes)) for cause in known.causes]
    return causes, fix_of(session, fixes, "")


def _holds_again(session: Session, run: LossRun, fixes: tuple[PortFix, ...]) -> bool:
    """Whether on other pairs of outputs and targets the loss differs, and agrees once fixed."""
    outputs = [v and TensorValue(rotated(v.values), v.dtype) for v in run.outputs]
    targets = session.targets(PROOF_BATCH)
    try:
        errors = session.reference.begin(Passes.measure_loss, outputs, targets, ISOLATED_VARIANTS)
        before = session.port.ask(Passes.loss, outputs, targets)
        after = session.port.ask(Passes.loss, outputs, targets, fixes)
        reference = measured(errors.answer())
    except IsogradError as error:
        session.note_unanswered("the loss's fix was not tried on other targets", error)
        return False
    wanted = wanted_keys(Stage.LOSS, run.port)
    return not judged_as_reference(reference, before, wanted) and judged_as_reference(
        reference, after, wanted
    )


def _subject(run: LossRun) -> Subject:
    return Subject(None, run.outputs, run.targets, Surroundings(is_loss=True))


def _trials(known: Diagnosis) -> tuple[Trial, ...]:
    return tuple(cause.trial for cause in known.causes)


def _side(
    session: Session, subject: Subject, reference: dict[str, Measured], port: Tensors
) -> PortSide:
    worker = session.port
    outputs, targets = list(subject.outputs), list(subject.targets)

    def trace() -> tuple[FunctionCall, ...]:
        return worker.ask(Passes.trace_loss, outputs, targets)

    def agrees(fixes: tuple[PortFix, ...]) -> bool:
        found = worker.ask(Passes.loss, outputs, targets, fixes)
        return judged_as_reference(reference, found, wanted_keys(Stage.LOSS, port))

    def ends() -> dict[str, Array]:
        return {"loss": port["loss"].values} if "loss" in port else {}

    named = {f"@input.{i}": v.values for i, v in enumerate(subject.outputs) if v is not None}
    for i, target in enumerate(subject.targets):
        if isinstance(target, TensorValue):
            named[f"@target.{i}"] = target.values
    return PortSide(trace, ends, named, (), agrees)

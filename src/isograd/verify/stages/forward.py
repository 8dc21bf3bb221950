"""Stage forward: every module alone on the reference's inputs, and the network end to end."""

from __future__ import annotations

import math

from isograd.model import Cause, Severity, Stage
from isograd.tensors import Role, TensorKey
from isograd.verify.end_to_end import PassResult, record_pass
from isograd.verify.findings import dropout_findings, output_findings
from isograd.verify.isolated import IsolatedStage
from isograd.verify.isolated_result import IsolatedResult
from isograd.verify.parameters import ambiguous_gaps
from isograd.verify.severity import severity_below_noise, severity_of, severity_of_gradients
from isograd.verify.stages.context import LAST, StageContext, StageOutcome

#: Two estimates of one number may be this far apart, relative.
_ONE_NUMBER = 0.1


def run(context: StageContext) -> StageOutcome:
    """Compare outputs in all modes; also keeps the gradients for the stage backward."""
    session, outcome = context.session, StageOutcome(Stage.FORWARD)
    for mode in reversed(session.case.modes):
        _run_mode(context, outcome, mode)
    if context.keeper is not None:
        context.keeper.close()
    _raise_what_is_loud_elsewhere(list(context.isolated.values()))
    for mode in session.case.modes:
        outcome.take(context.isolated[mode])
    context.compare_whole(outcome, ("output",))
    if session.part.module is None:
        outcome.add(output_findings(session, context.passes), LAST)
    if not outcome.diverges:
        # A guessed pairing that neither a trial nor the forward pass confirms is a gap.
        outcome.gaps += ambiguous_gaps(session)
    modes = " and ".join(session.case.modes)
    outcome.detail = f"{modes} mode, every module alone and end to end"
    return outcome


def _run_mode(context: StageContext, outcome: StageOutcome, mode: str) -> None:
    session = context.session
    backward = session.case.reference.loss is not None and mode == session.case.modes[0]
    whole = record_pass(session, mode, backward, is_first=True)
    if context.keeper is not None:
        context.keeper.keep_pass(session, mode)
    isolated = IsolatedStage(session, mode, backward).run()
    context.passes[mode], context.isolated[mode] = whole, isolated
    _judge_severity(context, mode, backward, whole, isolated)
    outcome.checked += isolated.checked.get(Stage.FORWARD, 0)
    compared = map(TensorKey, whole.comparisons)
    outcome.checked += sum(1 for key in compared if key.is_plain(Role.OUTPUT))
    outcome.modules += isolated.modules
    outcome.notes += [note for note in isolated.notes if note not in outcome.notes]
    found = dropout_findings(session, mode)
    outcome.add((f for f in found if session.part.contains(f.module)), LAST)


def _judge_severity(
    context: StageContext, mode: str, backward: bool, whole: PassResult, isolated: IsolatedResult
) -> None:
    session = context.session
    for one in isolated.found:
        if one.is_loud:
            severity = Severity.EFFECTIVE
        elif one.quiet:
            severity = severity_below_noise(session, mode, backward, whole, one.quiet)
        elif one.shift is not None:
            severity = severity_of(session, mode, backward, whole, one.shift.shift)
        elif one.gradients:
            shifts = [tensor.shift for tensor in one.gradients]
            severity = severity_of_gradients(session, mode, whole, shifts)
        else:
            continue
        one.change(severity=severity)


def _raise_what_is_loud_elsewhere(results: list[IsolatedResult]) -> None:
    """A cause that matters in one module matters in the others: it is one line of the port."""
    found = [finding for isolated in results for finding in isolated.findings]
    loud = [finding.cause for finding in found if finding.cause is not None and finding.diverges]
    for isolated in results:
        for one in isolated.found:
            cause = one.finding.cause
            if one.finding.severity is Severity.BELOW_NOISE and cause is not None:
                if any(_is_one_fault(cause, other) for other in loud):
                    one.change(severity=Severity.EFFECTIVE)


def _is_one_fault(cause: Cause, other: Cause) -> bool:
    if cause.id != other.id:
        return False
    ours, theirs = cause.port, other.port
    if isinstance(ours, float) and isinstance(theirs, float):
        return math.isclose(ours, theirs, rel_tol=_ONE_NUMBER)
    return ours == theirs

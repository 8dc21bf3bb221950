"""Stage loss: the loss alone, on the same outputs."""

from __future__ import annotations

from isograd.model import Stage
from isograd.verify.end_to_end import record_pass
from isograd.verify.findings import loss_findings
from isograd.verify.loss_alone import run_loss
from isograd.verify.loss_causes import with_causes
from isograd.verify.stages.context import StageContext, StageOutcome


def run(context: StageContext) -> StageOutcome:
    """Compare the losses and their gradients at the outputs."""
    session = context.session
    if not context.passes:  # the forward stage was not asked for
        record_pass(session, session.case.modes[0], False)
    found = run_loss(session)
    outcome = StageOutcome(
        Stage.LOSS, len(found.judged.comparisons), "the loss alone, on the same outputs"
    )
    findings, context.granted_loss = with_causes(
        session, list(loss_findings(session, found.judged)), found
    )
    outcome.add(findings)
    return outcome

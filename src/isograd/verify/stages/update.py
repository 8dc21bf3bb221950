"""Stage update: optimizer steps of both sides on the reference's gradients."""

from __future__ import annotations

from isograd.model import Stage
from isograd.verify.confirm import PROOF_BATCH
from isograd.verify.findings import module_of, step_findings
from isograd.verify.stages.context import StageContext, StageOutcome
from isograd.verify.training import begin_alike, free_losses, replay_updates
from isograd.verify.update_causes import explain_updates


def run(context: StageContext) -> StageOutcome:
    """Compare the parameters after each step, and name the rule that differs."""
    session, outcome = context.session, StageOutcome(Stage.UPDATE)
    result, losses, findings, record = replay_updates(session)
    if result.first and begin_alike(session):
        result, losses, findings, record = replay_updates(session)
    left_out = {finding.module for finding in findings}
    explained = explain_updates(
        session,
        record,
        result,
        findings,
        lambda: set(replay_updates(session, PROOF_BATCH)[0].first),
    )
    context.granted_rules = explained.granted
    outcome.add(explained.findings)
    wrong = {
        name: step
        for name, step in result.first.items()
        if name in explained.unexplained and module_of(session, name) not in left_out
    }
    outcome.add(step_findings(session, Stage.UPDATE, result, wrong), 1.0)
    outcome.checked = result.checked
    outcome.detail = f"{session.case.steps} optimizer steps on the reference's gradients"
    outcome.divergent = bool(result.first)
    outcome.losses = free_losses(session, losses)
    context.has_trained = True
    return outcome

"""Stage training: whole training steps, each from the reference's state."""

from __future__ import annotations

from isograd.model import Stage
from isograd.verify.findings import step_findings
from isograd.verify.stages.context import LAST, StageContext, StageOutcome
from isograd.verify.training import resynchronised_steps
from isograd.worker.protocols import Networks


def run(context: StageContext) -> StageOutcome:
    """Compare losses, parameters and running statistics after each step."""
    session, outcome = context.session, StageOutcome(Stage.TRAINING)
    for isolated in context.isolated.values():
        if isolated.checked.get(Stage.TRAINING):
            outcome.take(isolated)
    differs = bool(context.diverging(outcome))
    granted = context.grant(outcome)
    explained = differs and not granted
    own = bool(outcome.findings) and not granted
    result, state = resynchronised_steps(
        session, context.granted_rules, looks_again=not explained and not own
    )
    outcome.detail = (
        f"{session.case.steps} steps, each from the reference's state, with running statistics"
    )
    if granted and differs:
        outcome.detail += "; judged beyond the named causes"
    if result.first and not explained and not own:
        outcome.add(step_findings(session, Stage.TRAINING, result, result.first), LAST)
    elif result.first and not own:
        outcome.detail = (
            f"{len(result.first)} tensors differ after a step, as the stages before say"
        )
    outcome.checked = result.checked + sum(
        isolated.checked.get(Stage.TRAINING, 0) for isolated in context.isolated.values()
    )
    outcome.divergent = bool(result.first)
    session.reference.ask(Networks.load_state, state)
    session.port.ask(Networks.load_state, session.transfer(state))
    return outcome

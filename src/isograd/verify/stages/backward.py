"""Stage backward: gradients of activations and parameters, alone and end to end."""

from __future__ import annotations

from isograd.model import Stage
from isograd.tensors import TensorKey
from isograd.verify.stages.context import StageContext, StageOutcome


def run(context: StageContext) -> StageOutcome:
    """Judge the gradients that the stage forward has measured."""
    mode = context.session.case.modes[0]
    isolated = context.isolated[mode]
    outcome = StageOutcome(Stage.BACKWARD)
    outcome.take(isolated)
    following = isolated.following.get(Stage.BACKWARD, 0)
    if not any(finding.diverges for finding in isolated.findings):
        following = 0  # they follow from what reaches nothing
    context.compare_whole(outcome, ("gradient",))
    whole = context.passes[mode]
    outcome.checked = isolated.checked.get(Stage.BACKWARD, 0)
    outcome.checked += sum(1 for key in whole.comparisons if TensorKey(key).is_gradient)
    outcome.detail = "gradients of activations and parameters, alone and end to end"
    if following and not outcome.findings:
        outcome.detail = f"{following} gradients differ, all in modules whose forward pass differs"
    outcome.divergent = following > 0
    if not (outcome.checked or outcome.findings or following or outcome.gaps or whole.one_sided):
        outcome.skipped = "neither network has a gradient"
    return outcome

"""Stage inference: the outputs in eval mode after the training steps."""

from __future__ import annotations

import dataclasses

from isograd.model import Stage
from isograd.noise.envelope import END_TO_END_THRESHOLD
from isograd.verify.end_to_end import record_pass
from isograd.verify.isolated import IsolatedStage
from isograd.verify.stages.context import Ranked, StageContext, StageOutcome


def run(context: StageContext) -> StageOutcome:
    """Compare the outputs; where nothing before explains a difference, every module alone."""
    session, outcome = context.session, StageOutcome(Stage.INFERENCE)
    earlier = [] if context.grant(outcome) else [f for f in context.findings if f.diverges]
    whole = record_pass(session, "eval", False)
    worst = whole.worst("output")
    wrong = bool(whole.problems) or (worst is not None and worst[1].exceeds(END_TO_END_THRESHOLD))
    outcome.checked, outcome.divergent = len(whole.comparisons), wrong
    outcome.detail = "eval mode after the training steps" if context.has_trained else "eval mode"
    if wrong and not earlier:
        context.isolated["inference"] = isolated = IsolatedStage(session, "eval", False).run()
        outcome.findings = [
            Ranked(dataclasses.replace(one.finding, stage=Stage.INFERENCE), one.position)
            for one in isolated.found
        ]
        if not outcome.diverges:
            context.passes = {"eval": whole}
            context.compare_whole(outcome, ("output",))
    elif wrong:
        outcome.detail += "; differs, as the stages before say"
    return outcome

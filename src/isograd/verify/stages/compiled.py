"""Stage compiled: the port under MindSpore's static graph, against its own eager run."""

from __future__ import annotations

from isograd.model import Stage, StageVerdict
from isograd.verify.compiled.stage import run_compiled
from isograd.verify.stages.context import StageContext, StageOutcome


def run(context: StageContext) -> StageOutcome:
    """Compare outputs, gradients and training steps; a port that does not compile is an error."""
    found = run_compiled(context.session, context.port_compiled)
    outcome = StageOutcome(Stage.COMPILED, found.checked, found.detail, notes=list(found.notes))
    outcome.add(found.findings)
    if found.refused and not outcome.diverges:
        outcome.verdict = StageVerdict.ERROR
    return outcome

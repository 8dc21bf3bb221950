"""Stage parameters: both networks are built, paired, and given the same weights."""

from __future__ import annotations

from isograd.model import Stage
from isograd.verify.choice import require_module
from isograd.verify.keep import Keeper
from isograd.verify.prepare import prepare
from isograd.verify.stages.context import Ranked, StageContext, StageOutcome


def run(context: StageContext) -> StageOutcome:
    """Compare names, shapes and initial distributions of the parameters."""
    session = context.session
    session.build()
    if session.part.module is not None:
        require_module(session, session.part.module)
    session.enter(Stage.PARAMETERS.value)
    prepared = prepare(session)
    if context.keep is not None:
        context.keeper = Keeper(context.keep, session)
    # A layer without weights may hold constants in MindSpore (GroupNorm, affine=False).
    has_parameters = bool(prepared.checked or prepared.findings or prepared.gaps)
    return StageOutcome(
        Stage.PARAMETERS,
        prepared.checked,
        prepared.detail,
        [
            Ranked(finding, position)
            for position, finding in enumerate(prepared.findings)
            if session.part.contains(finding.module)
        ],
        list(prepared.gaps),
        list(prepared.notes),
        skipped="" if has_parameters else "no parameters to compare",
    )

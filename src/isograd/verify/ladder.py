"""The ladder: stage after stage, from parameters to the static graph, into one report."""

from __future__ import annotations

import time
from pathlib import Path

from isograd.grouping import by_cause_and_line
from isograd.model import (
    Gap,
    LossCurves,
    ModuleRatio,
    PairedParameters,
    Stage,
    StageResult,
    StageVerdict,
    Verdict,
    VerifyReport,
)
from isograd.noise.envelope import END_TO_END_THRESHOLD, ISOLATED_THRESHOLD
from isograd.progress import Progress
from isograd.verify.case import Case, read_case
from isograd.verify.compiled.stage import begin_compiled
from isograd.verify.part import WHOLE, Part, why_skipped
from isograd.verify.session import Session, StartWorker
from isograd.verify.stages import STAGES
from isograd.verify.stages.context import Ranked, StageContext, StageOutcome

_NOTHING_COMPARED = "the networks return no tensor that both have, so nothing was compared"


def verify_case(
    case: Path | Case,
    *,
    seed: int,
    keep: Path | None,
    progress: Progress,
    part: Part = WHOLE,
    start: StartWorker | None = None,
) -> VerifyReport:
    """Verify a case or a case file; raises `IsogradError` where the work cannot be done.

    start: what starts the workers; of many cases `WarmWorkers.worker` imports frameworks once.
    """
    if not isinstance(case, Case):
        case = read_case(case)
    with Session(case, seed, progress, part, start) as session:
        return Ladder(session, keep).climb()


class Ladder:
    """Collects what the stages say."""

    def __init__(self, session: Session, keep: Path | None) -> None:
        self._session = session
        self._context = StageContext(session, keep)
        self._results: dict[Stage, StageResult] = {}
        self._findings: list[Ranked] = []
        self._gaps: list[Gap] = []
        self._modules: list[ModuleRatio] = []
        self._notes: list[str] = []
        self._losses: LossCurves | None = None

    def climb(self) -> VerifyReport:
        """Run all stages and report."""
        begin = time.monotonic()
        for stage in STAGES:
            why = why_skipped(self._session, stage)
            if why:
                self._results[stage] = _skipped(stage, why)
            else:
                self._run(stage)
            if stage is Stage.PARAMETERS and not why_skipped(self._session, Stage.COMPILED):
                # Compiling takes long, and a core is free while the two networks take turns.
                self._context.port_compiled = begin_compiled(self._session)
                self._session.compiled = self._context.port_compiled
        self._notes += self._session.unanswered
        if self._session.part.sentence:
            self._notes.insert(0, self._session.part.sentence)
        return self._report(time.monotonic() - begin)

    def _run(self, stage: Stage) -> None:
        self._session.enter(stage.value)
        self._session.progress.stage(stage)
        begin = time.monotonic()
        outcome = STAGES[stage](self._context)
        elapsed_s = time.monotonic() - begin
        self._findings += outcome.findings
        self._context.findings += [one.finding for one in outcome.findings]
        self._gaps += [gap for gap in outcome.gaps if gap not in self._gaps]
        self._notes += [note for note in outcome.notes if note not in self._notes]
        self._modules += outcome.modules
        self._losses = outcome.losses or self._losses
        if outcome.skipped:
            self._results[stage] = _skipped(stage, outcome.skipped)
        else:
            self._results[stage] = self._judged(outcome, elapsed_s)

    def _judged(self, outcome: StageOutcome, elapsed_s: float) -> StageResult:
        stage = outcome.stage
        wrong = outcome.divergent or outcome.diverges
        has_gaps = any(gap.stage is stage for gap in self._gaps)
        said = wrong or has_gaps or outcome.verdict is not None
        if not said and not outcome.checked:
            self._gaps.append(Gap(stage, f"stage {stage.value}", _NOTHING_COMPARED))
            has_gaps = True
        verdict = StageVerdict.EQUIVALENT
        if wrong:
            verdict = StageVerdict.DIVERGENT
        elif has_gaps:
            verdict = StageVerdict.ERROR
        return StageResult(
            stage, outcome.verdict or verdict, outcome.checked, elapsed_s, outcome.detail
        )

    def _pairs(self) -> tuple[PairedParameters, ...]:
        return tuple(
            PairedParameters(p.reference, p.port, p.how, type(p.transform).__name__.lower())
            for p in self._session.pairing.pairs
        )

    def _report(self, elapsed_s: float) -> VerifyReport:
        order = list(Stage)
        ranked = sorted(self._findings, key=lambda r: (order.index(r.finding.stage), r.position))
        findings = by_cause_and_line(one.finding for one in ranked)
        verdict = Verdict.EQUIVALENT
        if any(f.diverges for f in findings) or any(
            r.verdict is StageVerdict.DIVERGENT for r in self._results.values()
        ):
            verdict = Verdict.DIVERGENT
        elif self._gaps or any(
            r.verdict is StageVerdict.ERROR and r.stage is not Stage.COMPILED
            for r in self._results.values()
        ):
            verdict = Verdict.INCOMPLETE
        sides = self._session.sides
        return VerifyReport(
            verdict,
            str(self._session.case.path),
            sides[0] if sides else None,
            sides[1] if sides else None,
            tuple(self._results[stage] for stage in order),
            findings,
            tuple(self._gaps),
            tuple(self._modules),
            self._losses,
            self._pairs(),
            tuple(self._notes),
            self._session.seed,
            elapsed_s,
            {"isolated": ISOLATED_THRESHOLD, "end_to_end": END_TO_END_THRESHOLD},
        )


def _skipped(stage: Stage, why: str) -> StageResult:
    return StageResult(stage, StageVerdict.SKIPPED, 0, 0.0, f"skipped: {why}")

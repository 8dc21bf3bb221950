"""The ladder: stage after stage, from parameters to inference, into one report."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from isograd.frameworks.base import Trial
from isograd.grouping import by_cause_and_line
from isograd.model import (
    Cause,
    Finding,
    Gap,
    LossCurves,
    ModuleRatio,
    PairedParameters,
    Severity,
    Stage,
    StageResult,
    StageVerdict,
    Verdict,
    VerifyReport,
)
from isograd.noise.envelope import (
    END_TO_END_THRESHOLD,
    ISOLATED_THRESHOLD,
)
from isograd.progress import Progress
from isograd.verify.case import Case, read_case
from isograd.verify.choice import require_module
from isograd.verify.compiled.port import CompiledPort
from isograd.verify.compiled.stage import begin_compiled, run_compiled
from isograd.verify.confirm import PROOF_BATCH
from isograd.verify.end_to_end import PassResult, look_again, record_pass
from isograd.verify.findings import (
    dropout_findings,
    loss_findings,
    module_of,
    step_findings,
    whole_findings,
)
from isograd.verify.isolated import IsolatedStage
from isograd.verify.isolated_result import IsolatedResult
from isograd.verify.keep import Keeper
from isograd.verify.loss_alone import run_loss
from isograd.verify.loss_causes import with_causes
from isograd.verify.parameters import ambiguous_gaps
from isograd.verify.part import WHOLE, Part, why_skipped
from isograd.verify.prepare import prepare
from isograd.verify.session import Session, StartWorker
from isograd.verify.severity import severity_below_noise, severity_of, severity_of_gradients
from isograd.verify.training import (
    begin_alike,
    free_losses,
    replay_updates,
    resynchronised_steps,
)
from isograd.verify.update_causes import explain_updates
from isograd.worker.protocols import Causes, Networks

_NOTHING_COMPARED = "the networks return no tensor that both have, so nothing was compared"
#: Two estimates of one number may be this far apart, relative.
_ONE_NUMBER = 0.1


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
    """Collects results, findings and gaps while the stages are climbed."""

    def __init__(self, session: Session, keep: Path | None) -> None:
        self._session = session
        self._keep = keep
        self._keeper: Keeper | None = None
        self._results: dict[Stage, StageResult] = {}
        self._findings: list[tuple[float, Finding]] = []
        self._gaps: list[Gap] = []
        self._modules: list[ModuleRatio] = []
        self._notes: list[str] = []
        self._losses: LossCurves | None = None
        self._seconds: dict[Stage, float] = {}
        self._isolated: dict[str, IsolatedResult] = {}
        self._passes: dict[str, PassResult] = {}
        self._granted_rules: dict[str, dict[str, Any]] = {}
        self._granted_loss: tuple[Trial, ...] = ()
        self._port_compiled: CompiledPort | None = None

    def climb(self) -> VerifyReport:
        """Run all stages and report."""
        begin = time.monotonic()
        rungs = {
            Stage.PARAMETERS: self._parameters,
            Stage.FORWARD: self._forward,
            Stage.LOSS: self._loss,
            Stage.BACKWARD: self._backward,
            Stage.UPDATE: self._update,
            Stage.TRAINING: self._training,
            Stage.INFERENCE: self._inference,
            Stage.COMPILED: self._compiled,
        }
        for stage, run in rungs.items():
            why = why_skipped(self._session, stage)
            if why:
                self._skip(stage, why)
            else:
                self._timed(stage, run)
            if stage is Stage.PARAMETERS and not why_skipped(self._session, Stage.COMPILED):
                # Compiling takes long, and a core is free while the two networks take turns.
                self._session.compiled = self._port_compiled = begin_compiled(self._session)
        self._notes += self._session.unanswered
        if self._session.part.sentence:
            self._notes.insert(0, self._session.part.sentence)
        return self._report(time.monotonic() - begin)

    def _timed(self, stage: Stage, run: Callable[[], None]) -> None:
        self._session.enter(stage.value)
        self._session.progress.stage(stage)
        begin = time.monotonic()
        run()
        self._seconds[stage] = time.monotonic() - begin
        found = self._results[stage]
        self._results[stage] = dataclasses.replace(
            found, elapsed_s=found.elapsed_s + self._seconds[stage]
        )

    def _skip(self, stage: Stage, why: str) -> None:
        self._results[stage] = StageResult(stage, StageVerdict.SKIPPED, 0, 0.0, f"skipped: {why}")

    def _set(self, stage: Stage, checked: int, detail: str, divergent: bool = False) -> None:
        wrong = divergent or any(f.stage is stage and f.diverges for _, f in self._findings)
        verdict = StageVerdict.DIVERGENT if wrong else StageVerdict.EQUIVALENT
        gaps = any(g.stage is stage for g in self._gaps)
        if not wrong and not checked and not gaps:
            self._gaps.append(Gap(stage, f"stage {stage.value}", _NOTHING_COMPARED))
            gaps = True
        if not wrong and gaps:
            verdict = StageVerdict.ERROR
        self._results[stage] = StageResult(stage, verdict, checked, 0.0, detail)

    def _add(self, finding: Finding, position: float = 0.0) -> None:
        self._findings.append((position, finding))

    def _parameters(self) -> None:
        session = self._session
        session.build()
        if session.part.module is not None:
            require_module(session, session.part.module)
        session.enter(Stage.PARAMETERS.value)
        prepared = prepare(session)
        for position, finding in enumerate(prepared.findings):
            if session.part.contains(finding.module):
                self._add(finding, position)
        self._gaps += prepared.gaps
        self._notes += prepared.notes
        if self._keep is not None:
            self._keeper = Keeper(self._keep, session)
        if session.reference_structure.parameters or session.port_structure.parameters:
            self._set(Stage.PARAMETERS, prepared.checked, prepared.detail)
        else:
            self._skip(Stage.PARAMETERS, "neither network has parameters")

    def _forward(self) -> None:
        session = self._session
        has_loss = session.case.reference.loss is not None
        checked = 0
        worst = 0.0
        for mode in reversed(session.case.modes):
            backward = has_loss and mode == session.case.modes[0]
            whole = record_pass(session, mode, backward, is_first=True)
            if self._keeper is not None:
                self._keeper.keep_pass(session, mode)
            isolated = IsolatedStage(session, mode, backward).run()
            self._passes[mode], self._isolated[mode] = whole, isolated
            self._judge_severity(mode, backward, whole, isolated)
            checked += isolated.checked.get(Stage.FORWARD, 0)
            checked += sum(1 for k in whole.comparisons if k.startswith("output"))
            worst = max([worst, *(m.ratio or 0.0 for m in isolated.modules)])
            self._modules += isolated.modules
            self._notes += [n for n in isolated.notes if n not in self._notes]
            for finding in dropout_findings(session, mode):
                if session.part.contains(finding.module):
                    self._add(finding, math.inf)
        if self._keeper is not None:
            self._keeper.close()
        self._raise_what_is_loud_elsewhere()
        for mode in session.case.modes:
            self._take(Stage.FORWARD, mode)
        modes = " and ".join(session.case.modes)
        self._whole(Stage.FORWARD, ("output",))
        self._settle_ambiguous()
        self._set(Stage.FORWARD, checked, f"{modes} mode, every module alone and end to end")

    def _judge_severity(
        self, mode: str, backward: bool, whole: PassResult, isolated: IsolatedResult
    ) -> None:
        session = self._session
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

    def _raise_what_is_loud_elsewhere(self) -> None:
        """A cause that matters in one module matters in the others: it is one line of the port."""
        found = [f for isolated in self._isolated.values() for f in isolated.findings]
        loud = [f.cause for f in found if f.cause is not None and f.diverges]
        for isolated in self._isolated.values():
            for one in isolated.found:
                cause = one.finding.cause
                if one.finding.severity is Severity.BELOW_NOISE and cause is not None:
                    if any(_is_one_fault(cause, other) for other in loud):
                        one.change(severity=Severity.EFFECTIVE)

    def _take(self, stage: Stage, mode: str) -> None:
        """Move a mode's findings of a stage into the report, once for each module and kind."""
        isolated = self._isolated[mode]
        for one in isolated.found:
            finding = one.finding
            if finding.stage is not stage:
                continue
            known = next(
                (i for i, (_, f) in enumerate(self._findings) if _is_same(f, finding)), None
            )
            if known is None:
                self._add(finding, one.position)
                continue
            place, before = self._findings[known]
            kept = before
            if finding.cause is not None and (
                before.cause is None or (finding.cause.proved and not before.cause.proved)
            ):
                kept = dataclasses.replace(kept, cause=finding.cause, fix=finding.fix)
            if finding.severity is Severity.EFFECTIVE:
                kept = dataclasses.replace(kept, severity=Severity.EFFECTIVE)
            self._findings[known] = (place, kept)
        self._gaps += [g for g in isolated.gaps if g.stage is stage and g not in self._gaps]

    def _whole(self, stage: Stage, prefixes: tuple[str, ...]) -> None:
        """End to end: an own finding only where no module explains the difference."""
        if self._session.part.module is not None:
            return
        if any(f.diverges for _, f in self._findings) and stage is not Stage.INFERENCE:
            return
        for mode, once in list(self._passes.items()):
            whole = self._passes[mode] = look_again(self._session, mode, once, prefixes)
            known = any(f.stage is stage for _, f in self._findings)
            for finding in whole_findings(self._session, stage, mode, whole, prefixes):
                if finding.diverges or not known:
                    self._add(finding, math.inf)

    def _settle_ambiguous(self) -> None:
        """A guessed pairing that neither a trial nor the forward pass confirms is a gap."""
        if any(f.stage is Stage.FORWARD and f.diverges for _, f in self._findings):
            self._gaps += list(ambiguous_gaps(self._session))

    def _loss(self) -> None:
        session = self._session
        if not self._passes:  # the forward stage was not asked for
            record_pass(session, session.case.modes[0], False)
        run = run_loss(session)
        findings = list(loss_findings(session, run.judged))
        findings, self._granted_loss = with_causes(session, findings, run)
        for finding in findings:
            self._add(finding)
        checked = len(run.judged.comparisons)
        self._set(Stage.LOSS, checked, "the loss alone, on the same outputs")

    def _backward(self) -> None:
        mode = self._session.case.modes[0]
        isolated, whole = self._isolated[mode], self._passes[mode]
        self._take(Stage.BACKWARD, mode)
        following = isolated.following.get(Stage.BACKWARD, 0)
        if not any(f.diverges for f in isolated.findings):
            following = 0  # they follow from what reaches nothing
        self._whole(Stage.BACKWARD, ("gradient",))
        checked = isolated.checked.get(Stage.BACKWARD, 0)
        checked += sum(1 for k in whole.comparisons if k.startswith("gradient"))
        detail = "gradients of activations and parameters, alone and end to end"
        own = any(f.stage is Stage.BACKWARD for _, f in self._findings)
        if following and not own:
            detail = f"{following} gradients differ, all in modules whose forward pass differs"
        gaps = any(g.stage is Stage.BACKWARD for g in self._gaps)
        if not (checked or own or following or gaps or whole.one_sided):
            self._skip(Stage.BACKWARD, "neither network has a gradient")
            return
        self._set(Stage.BACKWARD, checked, detail, divergent=following > 0)

    def _update(self) -> None:
        result, losses, findings, record = replay_updates(self._session)
        if result.first and begin_alike(self._session):
            result, losses, findings, record = replay_updates(self._session)
        left_out = {f.module for f in findings}
        explained = explain_updates(
            self._session,
            record,
            result,
            findings,
            lambda: set(replay_updates(self._session, PROOF_BATCH)[0].first),
        )
        self._granted_rules = explained.granted
        for finding in explained.findings:
            self._add(finding)
        wrong = {
            n: s
            for n, s in result.first.items()
            if n in explained.unexplained and module_of(self._session, n) not in left_out
        }
        for finding in step_findings(self._session, Stage.UPDATE, result, wrong):
            self._add(finding, 1.0)
        steps = self._session.case.steps
        self._set(
            Stage.UPDATE,
            result.checked,
            f"{steps} optimizer steps on the reference's gradients",
            divergent=bool(result.first),
        )
        self._losses = free_losses(self._session, losses)

    def _grant(self) -> bool:
        """Let the reference follow the named causes from here on; whether nothing is unexplained.

        What then still differs is a fault of its own, so one run lists them all.
        """
        diverging = [f for _, f in self._findings if f.diverges]
        if any(f.cause is None or f.stage is Stage.PARAMETERS for f in diverging):
            return False
        if not all(isolated.can_grant for isolated in self._isolated.values()):
            return False
        trials: list[Trial] = []
        for isolated in self._isolated.values():
            trials += [t for t in isolated.granted if t not in trials]
        self._session.reference.ask(Causes.grant, tuple(trials), self._granted_loss)
        return True

    def _training(self) -> None:
        for mode, isolated in self._isolated.items():
            if isolated.checked.get(Stage.TRAINING):
                self._take(Stage.TRAINING, mode)
        differs = any(f.diverges for _, f in self._findings)
        granted = self._grant()
        explained = differs and not granted
        own = any(f.stage is Stage.TRAINING for _, f in self._findings) and not granted
        result, state = resynchronised_steps(
            self._session, self._granted_rules, looks_again=not explained and not own
        )
        steps = self._session.case.steps
        detail = f"{steps} steps, each from the reference's state, with running statistics"
        if granted and differs:
            detail += "; judged beyond the named causes"
        if result.first and not explained and not own:
            for finding in step_findings(self._session, Stage.TRAINING, result, result.first):
                self._add(finding, math.inf)
        elif result.first and not own:
            detail = f"{len(result.first)} tensors differ after a step, as the stages before say"
        checked = result.checked + sum(
            i.checked.get(Stage.TRAINING, 0) for i in self._isolated.values()
        )
        self._set(Stage.TRAINING, checked, detail, divergent=bool(result.first))
        self._session.reference.ask(Networks.load_state, state)
        self._session.port.ask(Networks.load_state, self._session.transfer(state))

    def _inference(self) -> None:
        session = self._session
        earlier = [] if self._grant() else [f for _, f in self._findings if f.diverges]
        whole = record_pass(session, "eval", False)
        worst = whole.worst("output")
        wrong = bool(whole.problems) or (
            worst is not None and worst[1].exceeds(END_TO_END_THRESHOLD)
        )
        trained = Stage.UPDATE in self._seconds
        detail = "eval mode after the training steps" if trained else "eval mode"
        if wrong and not earlier:
            self._isolated["inference"] = IsolatedStage(session, "eval", False).run()
            for one in self._isolated["inference"].found:
                found = dataclasses.replace(one.finding, stage=Stage.INFERENCE)
                self._add(found, one.position)
            if not any(f.diverges and f.stage is Stage.INFERENCE for _, f in self._findings):
                self._passes = {"eval": whole}
                self._whole(Stage.INFERENCE, ("output",))
        elif wrong:
            detail += "; differs, as the stages before say"
        self._set(Stage.INFERENCE, len(whole.comparisons), detail, divergent=wrong)

    def _compiled(self) -> None:
        found = run_compiled(self._session, self._port_compiled)
        for finding in found.findings:
            self._add(finding)
        self._notes += found.notes
        self._set(Stage.COMPILED, found.checked, found.detail)
        if found.refused and self._results[Stage.COMPILED].verdict is not StageVerdict.DIVERGENT:
            self._results[Stage.COMPILED] = dataclasses.replace(
                self._results[Stage.COMPILED], verdict=StageVerdict.ERROR
            )

    def _pairs(self) -> tuple[PairedParameters, ...]:
        return tuple(
            PairedParameters(p.reference, p.port, p.how, type(p.transform).__name__.lower())
            for p in self._session.pairing.pairs
        )

    def _report(self, elapsed_s: float) -> VerifyReport:
        order = list(Stage)
        ranked = sorted(
            enumerate(self._findings), key=lambda e: (order.index(e[1][1].stage), e[1][0], e[0])
        )
        findings = by_cause_and_line(finding for _, (_, finding) in ranked)
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


def _is_same(known: Finding, other: Finding) -> bool:
    """Whether both modes found the same: one cause is enough where the other mode abstains."""
    if (known.stage, known.code, known.module) != (other.stage, other.code, other.module):
        return False
    if known.cause is None or other.cause is None:
        return True
    return known.cause.id == other.cause.id


def _is_one_fault(cause: Cause, other: Cause) -> bool:
    if cause.id != other.id:
        return False
    ours, theirs = cause.port, other.port
    if isinstance(ours, float) and isinstance(theirs, float):
        return math.isclose(ours, theirs, rel_tol=_ONE_NUMBER)
    return ours == theirs

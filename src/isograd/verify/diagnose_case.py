"""`isograd diagnose`: one module, or the loss, alone, with every hypothesis that was tried."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path

from isograd.errors import UsageError
from isograd.model import (
    CallDiagnosis,
    DiagnoseReport,
    Finding,
    ListedModule,
    Severity,
    Stage,
    Verdict,
)
from isograd.noise.envelope import ISOLATED_THRESHOLD
from isograd.progress import Progress
from isograd.verify.case import Case, read_case
from isograd.verify.choice import LOSS, NETWORK, called_modules, require_module, require_partner
from isograd.verify.compiled.stage import diagnose_compiled
from isograd.verify.end_to_end import require_numbers
from isograd.verify.findings import dropout_findings
from isograd.verify.isolated import IsolatedStage
from isograd.verify.loss_alone import run_loss
from isograd.verify.loss_causes import diagnose_loss, prove_loss
from isograd.verify.one_module import OneModule, compared_loss, stage_diagnosis
from isograd.verify.prepare import prepare
from isograd.verify.session import Session
from isograd.worker.protocols import Passes


def list_modules(path: Path, *, seed: int, progress: Progress) -> tuple[ListedModule, ...]:
    """The modules of a case's reference that a pass calls; raises `IsogradError`."""
    with Session(read_case(path), seed, progress) as session:
        progress.stage(Stage.PARAMETERS)
        session.build()
        return called_modules(session)


def diagnose_case(
    case: Path | Case, module: str, *, mode: str | None, seed: int, progress: Progress
) -> DiagnoseReport:
    """Replay one module of a case, or of a case file, alone and try every hypothesis on it.

    module: the reference's name, "network" for the root's own code, "loss" for the loss.
    mode: "train" or "eval"; None is the case's first.  Raises `UsageError` where the case has no
    such module or mode, `IsogradError` where the work cannot be done.
    """
    if not isinstance(case, Case):
        case = read_case(case)
    chosen = _mode_of(case, mode)
    if module == LOSS and case.reference.loss is None:
        raise UsageError(f"{case.path} names no loss", "Name one with `loss` in both sections.")
    begin = time.monotonic()
    with Session(case, seed, progress) as session:
        report = _diagnosed(session, module, chosen)
    return dataclasses.replace(report, elapsed_s=time.monotonic() - begin)


def _mode_of(case: Case, mode: str | None) -> str:
    if mode is None:
        return case.modes[0]
    if mode not in case.modes:
        raise UsageError(
            f"{case.path} asks for {case.modes[0]} mode only, so {mode} mode cannot be diagnosed",
            'Leave out --mode, or write mode = "both" under [verify] in the case.',
        )
    return mode


def _diagnosed(session: Session, module: str, mode: str) -> DiagnoseReport:
    session.progress.stage(Stage.PARAMETERS)
    session.build()
    name = "" if module == NETWORK else module
    if module != LOSS:
        require_module(session, name)
    prepared = prepare(session)
    notes = [*prepared.notes, *_shadowed(session, module)]
    backward = session.case.reference.loss is not None and mode == session.case.modes[0]
    if module == LOSS:
        session.enter(Stage.LOSS.value)
        session.progress.stage(Stage.LOSS)
        _record(session, mode, backward=False)
        return _report(session, LOSS, mode, [_loss(session)], [], notes)
    session.enter(Stage.FORWARD.value)
    session.progress.stage(Stage.FORWARD)
    _record(session, mode, backward)
    stage = IsolatedStage(session, mode, backward)
    units = stage.units()
    calls = session.reference.ask(Passes.calls)
    require_partner(calls, units, name, mode)
    one = OneModule(session, stage, name, mode)
    diagnosed = one.diagnose([u for u in units if calls[u.reference].module == name])
    findings = [f for f in prepared.findings if f.module == name]
    findings += [f for f in dropout_findings(session, mode) if f.module == name]
    notes += [note for note in (*one.notes, *stage.notes) if note not in notes]
    if not any(call.differs for call in diagnosed) and one.port_module is not None:
        session.progress.stage(Stage.COMPILED)
        findings += diagnose_compiled(session, one.port_module, mode, backward)
    report = _report(session, name, mode, diagnosed, findings, notes)
    return dataclasses.replace(report, port_module=one.port_module)


def _shadowed(session: Session, module: str) -> list[str]:
    """A module of the reference that has one of the two names with a meaning of their own."""
    names = {m.name for m in session.reference_structure.modules}
    if module not in (LOSS, NETWORK) or module not in names:
        return []
    return [f"the reference also has a module named {module}, which was not diagnosed"]


def _record(session: Session, mode: str, backward: bool) -> None:
    """Record a pass on both sides; nothing is judged end to end."""
    request = session.pass_request(mode, backward=backward, record=True)
    ours = session.reference.begin(Passes.forward, request)
    theirs = session.port.begin(Passes.forward, request)
    native = ours.answer()
    theirs.answer()
    require_numbers(native, mode, session.case.reference.framework)


def _loss(session: Session) -> CallDiagnosis:
    """The loss alone, on the recorded outputs."""
    run = run_loss(session)
    tensors = compared_loss(run.judged)
    session.progress.advance(0, 1, "trying hypotheses on the loss")
    known = diagnose_loss(session, run)
    if not any(tensor.differs for tensor in tensors):
        stage = stage_diagnosis(Stage.LOSS, known, severity=Severity.EQUIVALENT)
    elif known is None or not known.causes:
        stage = stage_diagnosis(Stage.LOSS, known)
    else:
        stage = stage_diagnosis(Stage.LOSS, known, *prove_loss(session, run, known))
    return CallDiagnosis("on the reference's outputs", tensors=tensors, stages=(stage,))


def _report(
    session: Session,
    module: str,
    mode: str,
    calls: list[CallDiagnosis],
    findings: list[Finding],
    notes: list[str],
) -> DiagnoseReport:
    kinds = {m.name: m.kind for m in session.reference_structure.modules}
    sides = session.sides
    return DiagnoseReport(
        _verdict(calls, findings),
        str(session.case.path),
        module,
        "" if module == LOSS else kinds.get(module, ""),
        None,
        mode,
        sides[0] if sides else None,
        sides[1] if sides else None,
        tuple(calls),
        tuple(findings),
        (*notes, *session.unanswered),
        session.seed,
        thresholds={"isolated": ISOLATED_THRESHOLD},
    )


def _verdict(calls: list[CallDiagnosis], findings: list[Finding]) -> Verdict:
    if any(call.differs for call in calls) or any(finding.diverges for finding in findings):
        return Verdict.DIVERGENT
    if any(call.failure for call in calls):
        return Verdict.INCOMPLETE
    return Verdict.EQUIVALENT

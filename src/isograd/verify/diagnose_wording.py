"""The sentences and numbers of `isograd diagnose`, shared by its text and its page."""

from __future__ import annotations

import math

from isograd.model import (
    Attempt,
    CallDiagnosis,
    ComparedTensor,
    DiagnoseReport,
    PlacedCause,
    Severity,
    StageDiagnosis,
    Verdict,
)
from isograd.report.words import count_text, number_text, printable, ratio_text
from isograd.verify import wording

#: Bounds of alpha are written up to here; wider ones say nothing.
_WIDEST = 10.0
NO_HYPOTHESIS = "no hypothesis of isograd applies to this code"


def subject_text(report: DiagnoseReport) -> str:
    """What was diagnosed: its name, class and partner, and the mode."""
    if _is_loss(report):
        return f"the loss, on the outputs of {printable(report.mode)} mode"
    kind = f" ({printable(report.kind)})" if report.kind else ""
    partner = ""
    if report.port_module is not None and report.port_module != report.module:
        partner = f", in the port {wording.module_name(report.port_module)}"
    return f"{wording.module_name(report.module)}{kind}{partner}, {printable(report.mode)} mode"


def _is_loss(report: DiagnoseReport) -> bool:
    return report.module == "loss" and not report.kind


def sentence(report: DiagnoseReport) -> str:
    """The answer in one sentence."""
    name = "the loss" if _is_loss(report) else wording.module_name(report.module)
    tensors = [tensor for call in report.calls for tensor in call.tensors]
    calls = count_text(len(report.calls), "call")
    if report.verdict is Verdict.EQUIVALENT:
        worst = max((t.ratio for t in tensors if t.ratio is not None), default=0.0)
        return (
            f"{name} agrees: {count_text(len(tensors), 'tensor')} of {calls} within "
            f"rounding noise, the worst {ratio_text(worst)} ×."
        )
    if report.verdict is Verdict.INCOMPLETE:
        failure = next((call.failure for call in report.calls if call.failure), "")
        return f"{name} could not be judged: {printable(failure).rstrip('.')}."
    return f"{name} differs: {_reason(report)}."


def _reason(report: DiagnoseReport) -> str:
    stages = [stage for call in report.calls for stage in call.stages]
    known = next((stage for stage in stages if stage.causes), None)
    if known is not None:
        text = " and ".join(wording.cause_text(placed.cause) for placed in known.causes)
        return f"{text}{_place(known.fix.where if known.fix else None)}"
    finding = next((finding for finding in report.findings if finding.diverges), None)
    if finding is not None:
        text = wording.cause_text(finding.cause) if finding.cause else printable(finding.message)
        return f"{text}{_place(finding.fix.where if finding.fix else None)}"
    where = next((stage.fix.where for stage in stages if stage.fix), None)
    return f"the cause is {wording.UNKNOWN_CAUSE}{_place(where)}"


def _place(where: str | None) -> str:
    return f"; fix: {printable(where)}" if where else ""


def call_title(report: DiagnoseReport, call: CallDiagnosis) -> str:
    """Which call, and what was given to it."""
    if not call.given:
        return printable(call.name)
    names = [_below(report, name) or wording.module_name(name) for name in call.given]
    return f"{printable(call.name)}, given the results of {', '.join(dict.fromkeys(names))}"


def _below(report: DiagnoseReport, module: str) -> str:
    """The name of a module from the diagnosed one on; "" for that one itself and for the loss."""
    start = f"{report.module}." if report.module else ""
    if module == report.module or _is_loss(report):
        return ""
    return printable(module.removeprefix(start))


def shown_tensors(call: CallDiagnosis, most: int) -> list[ComparedTensor]:
    """At most `most` tensors: those that differ first, each kind by its ratio."""
    return sorted(call.tensors, key=lambda t: (not t.differs, -_weight(t)))[:most]


def _weight(tensor: ComparedTensor) -> float:
    ratio = tensor.ratio
    return math.inf if ratio is None or math.isnan(ratio) else ratio


def tensor_cells(tensor: ComparedTensor) -> tuple[str, str, str, str]:
    """Name, elements that differ, error, and error over the noise."""
    name = printable(tensor.what)
    evidence = tensor.evidence
    if evidence is None:
        return name, printable(tensor.problem), "", ""
    counted = f"{evidence.differing:,} / {evidence.total:,}"
    error = f"{evidence.error:.1e}" if math.isfinite(evidence.error) else "not finite"
    ratio = "" if tensor.ratio is None else f"{ratio_text(tensor.ratio)} ×"
    return name, counted, error, ratio


def attempts_title(stage: StageDiagnosis) -> str:
    """The heading of the table of hypotheses."""
    before = ""
    if math.isfinite(stage.ratio_before):
        before = f" (error {ratio_text(stage.ratio_before)} × the noise without any)"
    return f"Hypotheses tried on the stage {stage.stage.value}, best first{before}"


def attempt_place(report: DiagnoseReport, attempt: Attempt) -> str:
    """The function that a hypothesis changes, and the module below whose code calls it."""
    module = _below(report, attempt.module)
    if attempt.function == "module":
        return f"around {module or 'the module'}"
    function = printable(attempt.function)
    return f"{module}: {function}" if module else function


def alpha_text(attempt: Attempt) -> str:
    """How much of the hypothesis' change is in the error, with its interval."""
    low, high = attempt.interval
    if not all(math.isfinite(part) for part in (attempt.alpha, low, high)):
        return "says nothing"
    if high - low > _WIDEST or abs(attempt.alpha) > _WIDEST:
        return f"{attempt.alpha:.3g} ± {(high - low) / 2:.1g}"
    return f"{_share(attempt.alpha)} ({_share(low)} to {_share(high)})"


def _share(value: float) -> str:
    """With two decimals, and zero without a sign."""
    return f"{round(value, 2) + 0.0:.2f}"


def residual_text(attempt: Attempt) -> str:
    """What is left of the error under the hypothesis, over the noise."""
    return f"{ratio_text(attempt.ratio)} ×" if math.isfinite(attempt.ratio) else "does not fit"


def standing(attempt: Attempt, stage: StageDiagnosis) -> str:
    """Whether a hypothesis is the cause, and if not, why not."""
    if not attempt.accepted:
        return f"no: {printable(attempt.reason)}" if attempt.reason else "no"
    if stage.severity is Severity.EQUIVALENT:
        return "within the noise"
    if attempt.is_named:
        return "named"
    ids = [placed.cause.id for placed in stage.causes]
    return "the same, at another value" if attempt.id in ids else "explains it too"


def strongest(stage: StageDiagnosis) -> Attempt | None:
    """Of hypotheses on a module that agrees, the one whose change would fit best."""
    clear = [
        a for a in stage.attempts if math.isfinite(a.alpha) and a.interval[1] - a.interval[0] <= 2.0
    ]
    return min(clear, key=lambda a: abs(a.alpha - 1.0), default=None)


def outcome_lines(stage: StageDiagnosis) -> list[str]:
    """Cause, estimated number, alternatives and fix of a stage; or why there is none."""
    if stage.note:
        return [printable(stage.note), *_fix_lines(stage)]
    if stage.severity is Severity.EQUIVALENT:
        return [_strongest_line(stage)]
    if not stage.causes:
        lines = [] if stage.attempts else [NO_HYPOTHESIS]
        return [*lines, f"cause: {wording.UNKNOWN_CAUSE}", *_fix_lines(stage)]
    lines = []
    if stage.severity is not Severity.EFFECTIVE:
        lines.append(f"{stage.severity.value}: {wording.SEVERITY_MEANINGS[stage.severity]}")
    for placed in stage.causes:
        lines += [*wording.cause_lines(placed.cause), *_number_lines(placed)]
    if stage.ratio_after is not None:
        lines.append(
            f"residual: {ratio_text(stage.ratio_before)} × the noise before, "
            f"{ratio_text(stage.ratio_after)} × under the cause"
        )
    return [*lines, *_fix_lines(stage)]


def _number_lines(placed: PlacedCause) -> list[str]:
    if placed.number is None:
        return []
    low, high = placed.number
    value = number_text(placed.cause.port)
    return [f"estimated: {value}, {number_text(low)} to {number_text(high)}"]


def _fix_lines(stage: StageDiagnosis) -> list[str]:
    return [] if stage.fix is None else [f"fix: {wording.fix_text(stage.fix)}"]


def _strongest_line(stage: StageDiagnosis) -> str:
    if not stage.attempts:
        return NO_HYPOTHESIS
    best = strongest(stage)
    if best is None:
        return "no hypothesis changes anything here by more than the noise"
    return (
        f"strongest hypothesis: {printable(best.text)} [{printable(best.id)}] explains "
        f"{alpha_text(best)} of the change that it would make: it is not in the port"
    )

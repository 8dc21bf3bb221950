"""The sentences and numbers of `isograd verify`, which its text and its page share.

Nothing here decides anything: a report value goes in, words come out.  Every string that comes
from a network passes `printable`, because names are the user's and may hold anything.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from isograd.grouping import listed
from isograd.model import (
    Cause,
    Evidence,
    Finding,
    Fix,
    LossCurves,
    Severity,
    Side,
    Stage,
    StageVerdict,
    Verdict,
    VerifyReport,
)
from isograd.report.words import (
    count_text,
    index_text,
    number_text,
    printable,
    ratio_text,
)

_STAGES = list(Stage)
_SEVERITIES = list(Severity)
#: What the noise of a stage belongs to.
_SUBJECTS = {
    Stage.PARAMETERS: "this parameter",
    Stage.LOSS: "the loss",
    Stage.UPDATE: "this update",
    Stage.TRAINING: "this step",
}
#: What each stage compares, in one sentence.
STAGE_MEANINGS = {
    Stage.PARAMETERS: "Every parameter and buffer has a counterpart of the same shape and role.",
    Stage.FORWARD: "Every layer gives the same output for the same input.",
    Stage.LOSS: "The same output and targets give the same loss.",
    Stage.BACKWARD: "Every layer gives the same gradients for the same gradient.",
    Stage.UPDATE: "The optimizer makes the same step from the same gradients.",
    Stage.TRAINING: "Several optimizer steps in a row stay together.",
    Stage.INFERENCE: "The trained network gives the same output in evaluation mode.",
    Stage.COMPILED: "MindSpore's static graph computes what the port computes eagerly.",
}
SEVERITY_MEANINGS = {
    Severity.EFFECTIVE: "differs, and the difference reaches the result",
    Severity.MASKED: "differs, but later layers hide it on these inputs",
    Severity.BELOW_NOISE: "differs by less than rounding does",
    Severity.EQUIVALENT: "written differently, computes the same",
}
#: Findings about initial values: a section of their own.
INITIAL = "parameter.initialisation"
INITIAL_TITLE = "Initial values are drawn otherwise (only training from scratch notices)"
UNKNOWN_CAUSE = "not known to isograd, and it does not guess"


def module_name(name: str) -> str:
    """A module's name; the root has none of its own."""
    return printable(name) if name else "the whole network"


def who(finding: Finding) -> str:
    """The module of a finding, or all that differ by the same line and cause."""
    if len(finding.modules) < 2:
        return module_name(finding.module)
    return printable(listed([module_name(name) for name in finding.modules]))


def place(finding: Finding) -> str:
    """Where a finding is: `layer1.0.bn1 (forward, step 0)`."""
    mode = f", {finding.mode} mode" if finding.mode else ""
    return f"{who(finding)} ({finding.stage.value}{mode}, step {finding.step})"


def explanation(finding: Finding, *, is_first: bool) -> list[str]:
    """The lines below a finding's headline: evidence, cause and fix, as far as they are known."""
    lines = [] if finding.evidence is None else _evidence_lines(finding.evidence, finding)
    if is_first:
        lines.append(_first_line(finding))
    if finding.severity is not Severity.EFFECTIVE:
        lines.append(f"{finding.severity.value}: {SEVERITY_MEANINGS[finding.severity]}")
    if finding.cause is not None:
        lines += cause_lines(finding.cause)
    elif finding.ratio is not None and finding.diverges:
        lines.append(f"cause: {UNKNOWN_CAUSE}")
    if finding.fix is not None:
        lines.append(f"{fix_word(finding.fix)}: {fix_text(finding.fix)}")
    return lines


def fix_word(fix: Fix) -> str:
    """`fix` for an edit that can be applied, else `look at`."""
    return "fix" if fix.is_edit else "look at"


def _evidence_lines(evidence: Evidence, finding: Finding) -> list[str]:
    tensor = "" if evidence.tensor in ("", "output") else f" of {printable(evidence.tensor)}"
    share = 100 * evidence.differing / evidence.total if evidence.total else 0.0
    counted = f"{evidence.differing:,} / {evidence.total:,} elements{tensor} ({share:.1f} %)"
    if evidence.first_index is not None:
        counted += f", first at {index_text(evidence.first_index)}"
    lines = [counted, _error_line(evidence, finding)]
    if evidence.greatest_index is not None:
        lines.append(
            f"greatest difference at {index_text(evidence.greatest_index)}: "
            f"{number_text(evidence.greatest_reference)} in the reference, "
            f"{number_text(evidence.greatest_port)} in the port"
        )
    if evidence.note:
        lines.append(printable(evidence.note))
    return lines


def _error_line(evidence: Evidence, finding: Finding) -> str:
    ratio = finding.ratio
    if ratio is None and evidence.allowed > 0:
        ratio = evidence.error / evidence.allowed
    if not math.isfinite(evidence.error):
        return "error not finite: one side has NaN or infinity where the other has a number"
    error = f"error {evidence.error:.1e}"
    if ratio is None:
        return f"{error}, allowed {evidence.allowed:.1e}"
    subject = _SUBJECTS.get(finding.stage, "this layer")
    return f"{error}, {ratio_text(ratio)} × the rounding noise of {subject}"


def _first_line(finding: Finding) -> str:
    if finding.ratio is None or finding.stage in _SUBJECTS:
        return "all stages before agree: this is the first divergence"
    if finding.isolated:
        return "inputs of this layer agree: this is the first divergence"
    return "inputs of this layer differ too: the divergence begins here or just before"


def cause_lines(cause: Cause) -> list[str]:
    """A cause with how well it is established and its id, and what else it could be."""
    lines = [f"cause: {cause_text(cause)} ({_standing(cause)}) {id_text(cause)}"]
    others = other_ids(cause)
    if others:
        lines.append(f"cannot be distinguished from: {', '.join(others)}")
    return lines


def cause_text(cause: Cause) -> str:
    """A cause in words; its id with both values where there are none."""
    if cause.text:
        return printable(cause.text)
    if cause.reference is None and cause.port is None:
        return printable(cause.id)
    return (
        f"{printable(cause.id)} is {number_text(cause.port)} in the port,"
        f" {number_text(cause.reference)} in the reference"
    )


def id_text(cause: Cause) -> str:
    """The id of a cause as it can be searched for: `[softmax.axis]`."""
    return f"[{printable(cause.id)}]"


def other_ids(cause: Cause) -> list[str]:
    """What the data cannot tell apart from a cause, but for other numbers of the same id."""
    return [printable(o) for o in cause.alternatives if not o.startswith(f"{cause.id} ")]


def _standing(cause: Cause) -> str:
    """How well a cause is established."""
    if cause.proved:
        return "proved by re-running with the fix"
    if cause.alpha is not None and cause.interval is not None:
        low, high = cause.interval
        share = f"{cause.alpha:.2f} of the error, {low:.2f} to {high:.2f}"
        return f"explains {share}; not proved on the port"
    return "not proved on the port"


def fix_text(fix: Fix) -> str:
    """Where to change what."""
    return ": ".join(printable(part) for part in (fix.where, fix.text) if part)


def why_lines(finding: Finding) -> list[str]:
    """Of a finding in short: its cause and fix on one line, as far as they are known."""
    parts = []
    if finding.cause is not None:
        proved = "proved" if finding.cause.proved else "not proved"
        parts.append(f"cause: {cause_text(finding.cause)} ({proved}) {id_text(finding.cause)}")
    if finding.fix is not None:
        parts.append(f"{fix_word(finding.fix)}: {fix_text(finding.fix)}")
    return ["; ".join(parts)] if parts else []


def further_title(report: VerifyReport) -> str:
    """The heading of the findings below the first divergence, or of those that change nothing."""
    if first_finding(report) is None:
        return "Findings that change no result"
    return "Further findings, worst first"


def first_finding(report: VerifyReport) -> Finding | None:
    """The finding that `report.first_divergence` speaks of."""
    return next((finding for finding in report.findings if finding.diverges), None)


def further_findings(report: VerifyReport) -> list[Finding]:
    """All findings but the first divergence, worst first."""
    first = first_finding(report)
    rest = (f for f in report.findings if f is not first and f.code != INITIAL)
    return worst_first(rest)


def initial_findings(report: VerifyReport) -> list[Finding]:
    """The rows of the section about initial values: one for each kind of layer."""
    return [finding for finding in report.findings if finding.code == INITIAL]


def initial_line(finding: Finding) -> str:
    """One row: what is drawn otherwise, what to write, and where."""
    what = printable(finding.message.partition(";")[0])
    if finding.fix is None:
        return what
    where = f" ({finding.fix.where})" if finding.fix.where else ""
    return f"{what}: write {printable(finding.fix.text + where)}"


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """Findings by severity, then by ratio; what is structural or not finite comes before."""
    return sorted(findings, key=lambda f: (_SEVERITIES.index(f.severity), -_weight(f.ratio)))


def _weight(ratio: float | None) -> float:
    return math.inf if ratio is None or math.isnan(ratio) else ratio


def side_text(side: Side | None) -> str:
    """What a side ran on."""
    if side is None:
        return "did not start"
    return printable(
        f"{side.framework} {side.framework_version}, Python {side.python_version}, {side.device}"
    )


def shown_steps(losses: LossCurves, most: int) -> list[int]:
    """At most `most` steps of the loss curves: evenly chosen, with both ends and the parting."""
    count = min(len(losses.reference), len(losses.port), len(losses.relative_permille))
    if count <= most:
        return list(range(count))
    chosen = {round(k * (count - 1) / (most - 1)) for k in range(most)}
    if losses.first_step_out is not None and 0 <= losses.first_step_out < count:
        chosen.add(losses.first_step_out)
    return sorted(chosen)


def losses_sentence(losses: LossCurves) -> str:
    """Both ends of the loss curves, and whether they part, on one line."""
    last = min(len(losses.reference), len(losses.port)) - 1
    if last < 0:
        return "Loss: none was computed."
    ends = dict.fromkeys((0, last))
    shown = ", ".join(
        f"{losses.reference[k]:.6f} and {losses.port[k]:.6f} at step {k}" for k in ends
    )
    return f"Loss, reference and port on their own: {shown}. {parting_text(losses)}"


def parting_text(losses: LossCurves) -> str:
    """Where the loss curves part, by the migration guide's own rule."""
    if losses.first_step_out is None:
        return "By the migration guide's rule the two curves stay together."
    return f"By the migration guide's rule the two curves part at step {losses.first_step_out}."


def _not_at_random(report: VerifyReport) -> str:
    found = [f for f in report.findings if f.severity is Severity.BELOW_NOISE]
    if not found:
        return ""
    return f", but {len(found)} not at random: {_in_short(found[0])}"


def verdict_sentence(report: VerifyReport) -> str:
    """The answer in one sentence."""
    compared = sum(result.checked for result in report.stages)
    if report.verdict is Verdict.EQUIVALENT:
        return (
            f"Equivalent{_eagerly(report)}: {count_text(compared, 'comparison')} in "
            f"{count_text(sum(1 for r in report.stages if r.checked), 'stage')}, "
            f"and every difference is within rounding noise{_not_at_random(report)}."
        )
    if report.verdict is Verdict.INCOMPLETE:
        return (
            f"Incomplete: nothing differs in {count_text(compared, 'comparison')}, but "
            f"{count_text(len(report.gaps), 'gap')} must be closed before the port can be "
            "called equivalent."
        )
    diverging = sum(1 for finding in report.findings if finding.diverges)
    first = first_finding(report)
    where = "" if first is None else f"; the first is {_in_short(first)}"
    return f"Divergent: {count_text(diverging, 'difference')}{where}."


def _eagerly(report: VerifyReport) -> str:
    """What the verdict does not say: how the port behaves in MindSpore's static graph."""
    if report.port is None or report.port.framework != "mindspore":
        return ""
    found = next((r for r in report.stages if r.stage is Stage.COMPILED), None)
    if found is None or found.verdict is StageVerdict.SKIPPED:
        return " in an eager run"
    if found.verdict is StageVerdict.ERROR:
        return " in an eager run only (the port does not compile)"
    return ""


def _in_short(finding: Finding) -> str:
    """Where a finding is, why, and where to change what."""
    text = place(finding)
    if finding.cause is not None:
        text += f": {cause_text(finding.cause)}"
    if finding.fix is not None and finding.fix.where:
        text += f"; {fix_word(finding.fix)}: {printable(finding.fix.where)}"
    return text

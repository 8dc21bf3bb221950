"""What an editor shows for the name under the pointer."""

from __future__ import annotations

from lsprotocol import types

from isograd.knowledge.store import Knowledge
from isograd.lsp.analysis import Analysis, LocatedUse
from isograd.lsp.wording import evidence
from isograd.scan.model import Answer, Hazard


def hover(analysis: Analysis, knowledge: Knowledge, offset: int) -> types.Hover | None:
    """The uses and the hazards at an offset, or None where there is none."""
    uses = analysis.uses_between(offset, offset)
    hazards = analysis.hazards_between(offset, offset)
    if not uses:
        return None
    narrowest = min(uses, key=lambda found: found.end - found.start)
    parts = [_of_use(narrowest, knowledge), *(_of_hazard(found.hazard) for found in hazards)]
    return types.Hover(
        contents=types.MarkupContent(types.MarkupKind.Markdown, "\n\n---\n\n".join(parts)),
        range=analysis.lines.range(narrowest.start, narrowest.end),
    )


def _of_use(found: LocatedUse, knowledge: Knowledge) -> str:
    answer = found.use.answer
    arrow = f" → `{answer.target}`" if answer.target else ""
    lines = [f"**`{answer.api}`**{arrow}: {answer.status}"]
    entry = knowledge.find(answer.api)
    if entry is not None and entry.mint and entry.mint != answer.target:
        lines.append(f"Also `{entry.mint}`.")
    if answer.note:
        lines.append(answer.note)
    lines += _way_out(answer)
    if answer.effort and answer.status != "missing":
        lines.append(f"Rewrite: {answer.effort}.")
    lines.append(evidence(answer) or _unexecuted(answer))
    if entry is not None and entry.verified is not None and entry.verified.detail:
        lines.append(entry.verified.detail)
    return "\n\n".join(line for line in lines if line)


def _way_out(answer: Answer) -> list[str]:
    lines = []
    if answer.way:
        lines.append(f"Way out: {answer.way}.")
    if answer.advice:
        fence = "````" if "```" in answer.advice else "```"
        is_code = "(" in answer.advice and not answer.advice.rstrip().endswith(".")
        lines.append(f"{fence}python\n{answer.advice}\n{fence}" if is_code else answer.advice)
    return lines


def _unexecuted(answer: Answer) -> str:
    return "" if answer.status == "unknown" else "Not executed on this device."


def _of_hazard(hazard: Hazard) -> str:
    device = f" ({hazard.device})" if hazard.device else ""
    return f"**Hazard `{hazard.code}`**{device}: {hazard.message}\n\n{hazard.advice}"

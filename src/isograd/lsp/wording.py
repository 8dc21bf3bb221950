"""What is known of a use in words, for diagnostics, hovers and completions alike."""

from __future__ import annotations

from isograd.scan.model import Answer


def sentence(answer: Answer) -> str:
    """One or two sentences: what MindSpore has, and what to do."""
    note = _ended(answer.note)
    if answer.status == "supported":
        return f"{answer.api} is {answer.target or 'supported'} in MindSpore. {note}".rstrip()
    if answer.status == "differs":
        target = f" ({answer.target})" if answer.target else ""
        return f"{answer.api} differs in MindSpore{target}: {note}".rstrip(": ")
    if answer.status == "missing":
        parts = [f"{answer.api} is missing in MindSpore.", note]
        if answer.way:
            parts.append(f"Way out: {answer.way}.")
        return " ".join(part for part in parts if part)
    return f"{answer.api} is unknown: {note or 'nothing is known of it.'}"


def evidence(answer: Answer) -> str:
    """What was executed, on which versions and device; empty where nothing was."""
    if answer.verified is None:
        return ""
    facts = dict(answer.verified)
    verdicts = [
        f"{name} {'agrees' if facts[name] else 'disagrees'}"
        for name in ("forward", "gradient")
        if facts[name] is not None
    ]
    if not verdicts:
        return ""
    versions = f"torch {facts['torch']} and MindSpore {facts['mindspore']}, {facts['device']}"
    if facts.get("compiled"):
        verdicts.append(f"in the static graph {facts['compiled']}")
    return f"Executed on {versions}: {', '.join(verdicts)}."


def _ended(text: str) -> str:
    text = text.strip()
    if not text:
        return ""
    text = text[0].upper() + text[1:] if text[:1].isalpha() and text[:2] not in ("it",) else text
    return text if text.endswith((".", "!", "?")) else f"{text}."

"""What the compiler says when it refuses, reduced to one sentence and the user's line."""

from __future__ import annotations

import re
import traceback

from isograd.frameworks.user_code import _is_users

_SECTION = re.compile(r"^-{20,}\s*$", re.MULTILINE)
_PLACE = re.compile(r"In file (?P<file>[^\n]+?):(?P<line>\d+)(?:~\d+)?, \d+~\d+")
_TRACE = "The Traceback of Net Construct Code"
#: The compiler's own advice and links say nothing of the user's line.
_TAIL = re.compile(
    r"\s*(?:More details please refer to|For more details, please refer to|Please refer to|"
    r"Get instructions about|, Please confirm whether).*$",
    re.DOTALL,
)
_HANDLING = re.compile(
    r"When handling script '(?P<script>.+?) in graph mode', the inputs should be constant, but "
    r"found variable '.*?' to be nonconstant",
    re.DOTALL,
)
_LONGEST = 240


def reduced(text: str) -> str:
    """The first sentence of a compiler's message; what kernel is missing where nothing else is."""
    head = _SECTION.split(text.strip())[0].strip()
    if not head:
        found = re.search(r"Unsupported op \[(\w+)\] on (\w+)", text)
        if found is not None:
            return f"the operator {found[1]} has no kernel on this device ({found[2]})"
        head = _first_words(text)
    handling = _HANDLING.search(head)
    if handling is not None:
        return f"{handling['script']} runs as plain Python, outside the graph"
    sentence = " ".join(_TAIL.sub("", head).split())
    sentence = sentence.replace("Type Join Failed:", "").rstrip(". ")
    return sentence[:_LONGEST] or "the compiler gave no reason"


def _first_words(text: str) -> str:
    """The first line that is neither a rule nor the title of a section."""
    lines = [line.strip() for line in text.splitlines()]
    told = [line for line in lines if line and not line.startswith(("-", "#"))]
    return told[0] if told else ""


def users_place(text: str, folder: str) -> tuple[str, int] | None:
    """The innermost line of the user's in a compiler's message.

    folder: of isograd's own texts, whose lines are no user's.
    """
    at = text.find(_TRACE)
    for part in (text[at:] if at >= 0 else "", text):
        found = [
            (match["file"], int(match["line"]))
            for match in _PLACE.finditer(part)
            if _is_users(match["file"]) and not match["file"].startswith(folder)
        ]
        if found:
            return found[-1]
    return None


def raised_place(error: BaseException, folder: str) -> tuple[str, int] | None:
    """The innermost line of the user's in a traceback."""
    frames = [
        (frame.filename, frame.lineno or 0)
        for frame in traceback.extract_tb(error.__traceback__)
        if _is_users(frame.filename) and not frame.filename.startswith(folder)
    ]
    return frames[-1] if frames else None

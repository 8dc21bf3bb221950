"""A file whose training loops are written anew, with the lines of the reference."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from isograd.convert.file import FileEdit
from isograd.convert.text import narrow, wide
from isograd.convert.training.joints import Joint, joints_of
from isograd.convert.training.model import StepPlan
from isograd.convert.training.write import Writer
from isograd.convert.training.write_joint import JointWriter


@dataclass(frozen=True)
class Rewritten:
    """A text with its loops written anew; origins: the reference's line of each of its lines."""

    text: str
    origins: tuple[int, ...]


def joints_in(file: FileEdit, plans: list[StepPlan], drawing: Collection[str]) -> list[Joint]:
    """The pairs of a file's steps that are written as one; drawing: APIs that draw."""
    found = joints_of(plans, file, drawing)
    return [one for one in found if JointWriter(file, one, set(), set(), averages=False).agrees]


def rewritten(
    file: FileEdit, plans: list[StepPlan], joints: list[Joint], averages: bool
) -> Rewritten:
    """The file's text with a compiled step in place of each loop's parts.

    joints: as `joints_in`.  averages: whether several processes may train together.
    """
    original = file.text.original
    edits: list[tuple[int, int, str]] = []
    used = {*file.tree.used, *file.tree.stored}
    taken = set(used)
    # Directly before its loop each step has its own name: two loops may use one, unless one of them
    # is in the other.
    loops = {plan.loop for plan in plans}
    outermost = {
        loop: next((one for one in reversed([*file.tree.above(loop)]) if one in loops), loop)
        for loop in loops
    }
    by_loop = {loop: set(used) for loop in outermost.values()}
    by_first = {id(one.first): one for one in joints}
    seconds = {id(one.second) for one in joints}
    for plan in plans:
        own = by_loop[outermost[plan.loop]]
        if id(plan) in by_first:
            edits += JointWriter(file, by_first[id(plan)], taken, own, averages).edits()
        elif id(plan) not in seconds:
            edits += Writer(file, plan, taken, own, averages).edits()
    edits = list(dict.fromkeys(edits))  # two loops may call one method
    return edited(original, edits)


def edited(original: str, edits: list[tuple[int, int, str]]) -> Rewritten:
    """A text (Latin-1 form) with replacements by their places."""
    edits = sorted(edits, key=lambda edit: (edit[0], edit[1]))
    parts: list[str] = []
    origins: list[int] = []
    at, line = 0, 1
    for start, end, new in edits:
        kept = original[at:start]
        parts += [kept, new]
        origins += _lines(kept, line)
        line += kept.count("\n")
        origins += [line] * new.count("\n")
        line += original[start:end].count("\n")
        at = end
    rest = original[at:]
    parts.append(rest)
    origins += [*_lines(rest, line), line + rest.count("\n")]
    return Rewritten(wide("".join(parts)), tuple(origins))


def edited_again(
    first: Rewritten | None, text: str, edits: list[tuple[int, int, str]]
) -> Rewritten:
    """A text that may have been written anew before, with the lines of the reference."""
    again = edited(narrow(text), edits)
    if first is None:
        return again
    return Rewritten(again.text, tuple(first.origins[line - 1] for line in again.origins))


def _lines(text: str, first: int) -> list[int]:
    return [first + number for number in range(text.count("\n"))]

"""A cause as a document: what is tried, where, and two networks that differ in it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from isograd.diagnose.hypothesis import Example, FunctionHypothesis
from isograd.diagnose.other_causes import Source
from isograd.explain.run import Causes, Explanation
from isograd.report.document import Code, Document, Lines, Outcome, Section

_MOST_FUNCTIONS = 12
_BLANK = re.compile(r"\{(\w+)[^}]*\}")


def document(report: Explanation | Causes) -> Document:
    """Draw one cause, or the list of all."""
    if isinstance(report, Causes):
        sentence = f"isograd names {len(report.ids)} causes; `isograd explain CAUSE` says more."
        return Document(
            "isograd explain", Outcome("causes", sentence), (Lines("Causes", report.ids),)
        )
    sections = [part for one in report.hypotheses for part in _hypothesis(one)]
    if report.rules:
        sections.append(Lines("Rules of the optimizer that are tried", report.rules))
    sections += [part for one in report.checks for part in _check(one)]
    words = [_words(one.text) for one in report.hypotheses] or [*report.rules, *report.sources]
    sentence = f"{report.cause}: {words[0]}."
    return Document(f"isograd explain {report.cause}", Outcome("cause", sentence), tuple(sections))


def _hypothesis(one: FunctionHypothesis) -> Iterator[Section]:
    shown = list(one.functions[:_MOST_FUNCTIONS])
    more = len(one.functions) - len(shown)
    where = "any function" if one.functions == ("*",) else ", ".join(shown)
    facts = [f"At {where}{f' and {more} more' if more > 0 else ''}."]
    if one.argument is not None:
        facts.append(f"Changes the argument {one.argument}.")
    if one.number is not None:
        facts.append(f"Estimates {one.number.name}.")
    yield Lines(f"{one.name}: {_words(one.text)}", facts)
    for example in one.examples[:1]:
        yield Code("A reference, and a port with this fault", _code(example))


def _check(one: Source) -> Iterator[Section]:
    yield Lines(one.what[:1].upper() + one.what[1:], (one.seen, one.advice))
    if one.reference:
        code = f"# reference\n{one.reference}\n# port\n{one.port}\n"
        yield Code("A reference, and a port with this fault", code)


def _words(text: str) -> str:
    """The words of a hypothesis, with its blanks by their names."""
    return _BLANK.sub(lambda found: found[1].upper(), text)


def _code(example: Example) -> str:
    sides = []
    for number, (side, code) in enumerate(
        (("reference", example.reference), ("port", example.port))
    ):
        modules = [f"self.{name} = {pair[number]}" for name, pair in example.modules.items()]
        sides.append("\n".join([f"# {side}", *modules, code.strip()]))
    return "\n".join(sides) + "\n"

"""The page docs/hypotheses.md, written from the library by `python -m` of this module.

The introduction is introduction.md beside this file; texts, functions and examples come from the
hypotheses themselves, so the page cannot say anything else than what is tried.  A test compares it
with the file.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from isograd.diagnose.hypothesis import Example, FunctionHypothesis
from isograd.diagnose.library import all_hypotheses
from isograd.diagnose.other_causes import OTHER_SOURCES
from isograd.diagnose.update.hypotheses import HYPOTHESES as UPDATE_HYPOTHESES
from isograd.diagnose.update.hypotheses import RuleHypothesis

_INTRODUCTION = Path(__file__).with_name("introduction.md")
_MOST_FUNCTIONS = 12


def page() -> str:
    """The whole page in Markdown."""
    library = by_id(all_hypotheses().values())
    parts = [_INTRODUCTION.read_text(encoding="utf-8"), *_index(library)]
    parts += ["## Functions of the network and of the loss\n"]
    for cause_id, hypotheses in sorted(library.items()):
        parts += _section(cause_id, hypotheses)
    parts += _updates()
    return "\n".join(parts)


def known_ids() -> set[str]:
    """Every cause id that isograd can name."""
    ids = {one.id for one in (*all_hypotheses().values(), *UPDATE_HYPOTHESES)}
    return ids | {source.id for source in OTHER_SOURCES}


def by_id(hypotheses: Iterable[FunctionHypothesis]) -> dict[str, list[FunctionHypothesis]]:
    """Hypotheses by their cause id, in the order of the library."""
    found: dict[str, list[FunctionHypothesis]] = {}
    for one in hypotheses:
        found.setdefault(one.id, []).append(one)
    return found


def _index(library: Mapping[str, list[FunctionHypothesis]]) -> Iterator[str]:
    """Every cause id with where it is found."""
    updates = {one.id for one in UPDATE_HYPOTHESES}
    yield "## All cause ids\n\n| id | found by |\n|---|---|"
    for cause_id in sorted(known_ids()):
        ways = []
        if cause_id in library:
            anchor = cause_id.replace(".", "")
            count = len(library[cause_id])
            ways.append(f"[{count} hypothes{'is' if count == 1 else 'es'}](#{anchor})")
        if cause_id in updates:
            ways.append("[rules of the optimizer](#rules-of-the-optimizer)")
        ways += [f"{s.what} (`{s.file}`)" for s in OTHER_SOURCES if s.id == cause_id]
        yield f"| `{cause_id}` | {'; '.join(ways)} |"
    yield ""


def _section(cause_id: str, hypotheses: Iterable[FunctionHypothesis]) -> Iterator[str]:
    yield f"### `{cause_id}`\n"
    for one in hypotheses:
        yield f"**{one.name}**: {_text(one.text)}. {_facts(one)}\n"
        for example in one.examples:
            yield _example(example)


def _text(text: str) -> str:
    """The words of a hypothesis, with its blanks in italics."""
    return re.sub(r"\{(\w+)[^}]*\}", r"*\1*", text).replace("|", "\\|")


def _facts(one: FunctionHypothesis) -> str:
    shown = [f"`{name}`" for name in one.functions[:_MOST_FUNCTIONS]]
    more = len(one.functions) - len(shown)
    where = ", ".join(shown) + (f" and {more} more" if more > 0 else "")
    where = "any function" if one.functions == ("*",) else where
    facts = [f"At {where}."]
    if one.argument is not None:
        facts.append(f"Changes the argument `{one.argument}`.")
    if one.number is not None:
        facts.append(f"Estimates `{one.number.name}`.")
    if one.backward:
        facts.append("Changes gradients only.")
    if one.statistics:
        facts.append("Changes running statistics only.")
    if one.quiet:
        facts.append("Looked for within the noise too.")
    return " ".join(facts)


def _example(example: Example) -> str:
    """The two networks of an example as code."""
    about = []
    if example.is_loss:
        about.append("a loss")
    if example.mode != "train":
        about.append(f"{example.mode} mode")
    if example.port_value is not None:
        about.append(f"named: {example.port_value}")
    title = f" ({', '.join(about)})" if about else ""
    sides = []
    for number, (side, code) in enumerate(
        (("reference", example.reference), ("port", example.port))
    ):
        lines = [f"# {side}{title if number == 0 else ''}"]
        lines += [f"self.{name} = {pair[number]}" for name, pair in example.modules.items()]
        sides.append("\n".join([*lines, code.strip()]))
    return "```python\n" + "\n".join(sides) + "\n```\n"


def _updates() -> Iterator[str]:
    """The table of rules, and what stands beside it."""
    yield "## Rules of the optimizer\n"
    yield (
        "Stage update feeds both optimizers the reference's gradients. Where the port moves "
        "otherwise, these rules are\ntried on the reference's, one by one and several together, "
        "in the order of likelihood.\n"
    )
    yield "| id | rule | estimated | changed |\n|---|---|---|---|"
    for one in UPDATE_HYPOTHESES:
        yield _rule(one)
    for source in OTHER_SOURCES:
        if source.file == "diagnose/update/hypotheses.py":
            yield f"| `{source.id}` | {source.what} | | |"
    yield ""


def _rule(one: RuleHypothesis) -> str:
    estimated = ", ".join(f"`{number.name}`" for number in one.numbers)
    changed = [f"`{name}` = {getattr(value, 'value', value)}" for name, value in one.fixed.items()]
    changed += [f"`{name}` the other way" for name in one.toggled]
    return f"| `{one.id}` | {one.name} | {estimated} | {', '.join(changed)} |"


if __name__ == "__main__":
    sys.stdout.write(page())

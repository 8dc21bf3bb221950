"""`isograd explain`: a cause from the texts and examples of the hypothesis library."""

from __future__ import annotations

import difflib
from dataclasses import asdict, dataclass
from typing import Any

from isograd.diagnose.documentation import by_id, known_ids
from isograd.diagnose.hypothesis import FunctionHypothesis
from isograd.diagnose.library import all_hypotheses
from isograd.diagnose.other_causes import OTHER_SOURCES, Source
from isograd.diagnose.update.hypotheses import HYPOTHESES as UPDATE_HYPOTHESES
from isograd.errors import UsageError
from isograd.report.base import Report

SCHEMA = "isograd/explain/1"
_MOST_SUGGESTED = 4
_LEAST_LIKENESS = 0.5


@dataclass(frozen=True)
class Explanation(Report):
    """What is known of one cause.

    hypotheses: what is tried on a module or a loss; rules: what is tried on an optimizer, in words;
    sources: other checks that name the cause, in words; checks: the same, each with what shows it,
    what to do, and two lines of code.
    """

    cause: str
    hypotheses: tuple[FunctionHypothesis, ...]
    rules: tuple[str, ...]
    sources: tuple[str, ...]
    checks: tuple[Source, ...] = ()

    @property
    def needs_action(self) -> bool:
        """An explanation asks for nothing."""
        return False

    def to_data(self) -> dict[str, Any]:
        """What `--json` writes."""
        return {
            "schema": SCHEMA,
            "cause": self.cause,
            "hypotheses": [_data(one) for one in self.hypotheses],
            "rules": list(self.rules),
            "sources": list(self.sources),
            "checks": [asdict(one) for one in self.checks],
        }


@dataclass(frozen=True)
class Causes(Report):
    """All cause ids."""

    ids: tuple[str, ...]

    @property
    def needs_action(self) -> bool:
        """A list asks for nothing."""
        return False

    def to_data(self) -> dict[str, Any]:
        """What `--json` writes."""
        return {"schema": SCHEMA, "causes": list(self.ids)}


def explain(cause: str) -> Explanation:
    """What a cause means; raises `UsageError` with the nearest ids where there is no such cause."""
    known = known_ids()
    if cause not in known:
        raise UsageError(f"there is no cause {cause!r}", _suggestion(cause, known))
    hypotheses = by_id(all_hypotheses().values()).get(cause, [])
    rules = tuple(one.name for one in UPDATE_HYPOTHESES if one.id == cause)
    checks = tuple(source for source in OTHER_SOURCES if source.id == cause)
    sources = tuple(source.what for source in checks)
    return Explanation(cause, tuple(hypotheses), rules, sources, checks)


def all_causes() -> Causes:
    """Every cause that isograd can name."""
    return Causes(tuple(sorted(known_ids())))


def _suggestion(cause: str, known: set[str]) -> str:
    near = difflib.get_close_matches(cause, sorted(known), _MOST_SUGGESTED, _LEAST_LIKENESS)
    words = set(cause.replace("_", ".").split("."))
    alike = [one for one in sorted(known) if words & set(one.replace("_", ".").split("."))]
    found = list(dict.fromkeys([*near, *alike]))[:_MOST_SUGGESTED]
    everything = "`isograd explain` lists all."
    return f"Did you mean {' or '.join(found)}? {everything}" if found else everything.capitalize()


def _data(one: FunctionHypothesis) -> dict[str, Any]:
    return {
        "name": one.name,
        "text": one.text,
        "functions": list(one.functions),
        "argument": one.argument,
        "examples": [
            {
                "reference": example.reference,
                "port": example.port,
                "modules": {name: list(pair) for name, pair in example.modules.items()},
                "mode": example.mode,
                "is_loss": example.is_loss,
            }
            for example in one.examples
        ],
    }

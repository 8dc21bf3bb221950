"""What a rule is: a condition on the steps of a training, as a small unit.

A rule says what it looks for, with which thresholds and where they come from, and what to do.  Its
examples and counterexamples are its tests and its documentation.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from isograd.watch.observation import Network, StepRecord


class Severity(enum.Enum):
    """Whether a person must act: an alert makes the exit status 1, a notice does not."""

    ALERT = "alert"
    NOTICE = "notice"


@dataclass(frozen=True)
class Limit:
    """A threshold: its default, or None where the rule stays silent until a person sets one."""

    name: str
    default: float | None
    meaning: str


@dataclass(frozen=True)
class Hit:
    """A rule's condition holds at a step.

    value: what was measured; limit: what it is held against; facts: fill the rule's message.
    """

    value: float
    limit: float | None = None
    module: str = ""
    tensor: str = ""
    facts: Mapping[str, object] | None = None


Limits = Mapping[str, "float | None"]
#: Judges one step after the other; keeps what it needs of those before.
Check = Callable[[StepRecord], Iterable[Hit]]


@dataclass(frozen=True)
class Example:
    """A short training in which the rule must speak, or must not."""

    text: str
    records: Callable[[], tuple[Network, Sequence[StepRecord]]]


@dataclass(frozen=True)
class Rule:
    """A condition with its words.

    message: with {value}, {limit}, {module}, {tensor} and the hit's own facts.
    make: a fresh check for a run, from the thresholds and the network.
    source: where condition and thresholds come from.
    peers: the condition's name in other tools, as `MindInsight GV`.
    """

    code: str
    severity: Severity
    message: str
    advice: str
    make: Callable[[Limits, Network], Check]
    source: str
    limits: tuple[Limit, ...] = ()
    peers: tuple[str, ...] = ()
    examples: tuple[Example, ...] = ()
    counterexamples: tuple[Example, ...] = ()

    @property
    def is_asked_for(self) -> bool:
        """Whether the rule is silent until a person sets one of its thresholds."""
        return bool(self.limits) and all(limit.default is None for limit in self.limits)


class Streak:
    """Counts how many times in a row a condition has held, for each name."""

    def __init__(self, needed: float | None) -> None:
        self._needed = 1 if needed is None else int(needed)
        self._counts: dict[str, int] = {}

    def holds(self, name: str, condition: bool) -> bool:
        """Note the condition of one step; whether it has held often enough."""
        count = self._counts.get(name, 0) + 1 if condition else 0
        self._counts[name] = count
        return count >= self._needed


def number(limits: Limits, name: str) -> float:
    """A threshold that has a value."""
    found = limits[name]
    assert found is not None
    return found

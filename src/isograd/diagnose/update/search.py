"""Searches the hypotheses, alone and two or three together, that explain a part of the update.

A hypothesis is accepted where the port is back inside the envelope that is measured anew under
it, in every tensor at every step.  Simple ones come first: switches and single numbers, then a
free schedule, another kind of optimizer, then combinations on top of what explains most.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace

from isograd.diagnose.hypothesis import USUAL, Number
from isograd.diagnose.update.estimate import (
    Fit,
    deviations,
    explained_share,
    fit,
    intervals,
    rounded,
)
from isograd.diagnose.update.hypotheses import (
    HYPOTHESES,
    RuleHypothesis,
    other_kinds,
    schedule,
)
from isograd.diagnose.update.problem import Part, Updates
from isograd.frameworks.rules import Rule
from isograd.noise.envelope import ISOLATED_THRESHOLD

#: A clean port's ratio is about 1 (docs/thresholds.md); what fits worse than this, and twice as
#: badly as another, is not as likely.
_LIKELY_RATIO = 2.0
#: The search's envelope is that of the reference's rule; a hypothesis may have a wider one.
_WORTH_MEASURING = 100.0
_MOST_MEASURED = 8
_MOST_ALTERNATIVES = 4
_KEPT = (6, 4)
_SECONDS = 10.0


@dataclass(frozen=True)
class Combination:
    """Hypotheses that hold together."""

    members: tuple[RuleHypothesis, ...]

    @property
    def numbers(self) -> tuple[Number, ...]:
        """The numbers of all of them."""
        return tuple(u for m in self.members for u in m.numbers)

    def apply(self, rule: Rule, values: tuple[float, ...]) -> Rule:
        """The reference's rule changed by all of them."""
        for member in self.members:
            count = len(member.numbers)
            rule = member.change(rule, values[:count])
            values = values[count:]
        return rule

    def admits(self, other: RuleHypothesis, rule: Rule) -> bool:
        """Whether another hypothesis may join."""
        mine: set[str] = set().union(*(m.fields() for m in self.members))
        ids = {m.id for m in self.members}
        return not mine & other.fields() and other.id not in ids and other.name != "frozen"


@dataclass(frozen=True)
class Explanation:
    """What explains a part: the hypotheses and their numbers.

    ratio: the port's worst error over the envelope under them, of all tensors of the part.
    share: how much of the change is in the port's error, with its interval.
    others: explanations that are as good.
    """

    combination: Combination
    values: tuple[float, ...]
    known: tuple[tuple[float, float], ...]
    ratio: float
    share: float
    share_interval: tuple[float, float]
    others: tuple[Explanation, ...] = ()
    kind: str = ""

    @property
    def alternatives(self) -> tuple[str, ...]:
        """What the data cannot tell apart from it, by its ids."""
        mine = " + ".join(self.ids)
        found = dict.fromkeys(" + ".join(o.ids) for o in self.others)
        return tuple(ids for ids in found if ids != mine and mine != "optimizer.frozen")

    def apply(self, rule: Rule) -> Rule:
        """The port's rule where the reference has this one."""
        return self.combination.apply(rule, self.values)

    @property
    def ids(self) -> tuple[str, ...]:
        """The cause ids."""
        return tuple(m.id for m in self.combination.members)


@dataclass(frozen=True)
class _Tried:
    combination: Combination
    fit: Fit
    ratio: float = math.inf
    kind: str = ""

    @property
    def numbers(self) -> tuple[Number, ...]:
        """The numbers that were estimated."""
        return self.combination.numbers


class Search:
    """One part's search; combinations are tried until a deadline of `time.process_time`."""

    def __init__(self, updates: Updates, names: Iterable[str], deadline: float = math.inf) -> None:
        self._updates = updates
        self._part: Part = updates.part(names)
        self._deadline = min(deadline, time.process_time() + _SECONDS)

    def run(self) -> Explanation | None:
        """The simplest explanation, or None."""
        rule = self._part.rule
        singles = [Combination((h,)) for h in HYPOTHESES if h.applies(rule)]
        tried = [self._fit(c) for c in singles]
        found = self._accept(tried)
        if found is None:
            found = self._accept([self._fit(Combination((schedule(rule),)))])
        if found is None:
            kinds = [(name, self._fit(Combination((h,)))) for name, h in other_kinds(rule)]
            found = self._accept([replace(t, kind=name) for name, t in kinds])
        for kept in _KEPT:
            if found is not None:
                break
            tried = self._together(tried, kept)
            found = self._accept(tried)
        return found or self._accept(self._with_schedule(singles))

    def _with_schedule(self, singles: list[Combination]) -> list[_Tried]:
        """Each hypothesis beside any learning rate at any step."""
        free, rule = schedule(self._part.rule), self._part.rule
        found = []
        for one in singles:
            member = one.members[0]
            if member.id == "optimizer.lr" or not one.admits(free, rule):
                continue
            if time.process_time() > self._deadline:
                break
            found.append(self._on_top(self._fit(one), free))
        return found

    def _fit(self, combination: Combination, start: tuple[float, ...] | None = None) -> _Tried:
        rule = self._part.rule
        found = fit(self._part, lambda v: combination.apply(rule, v), combination.numbers, start)
        return _Tried(combination, found)

    def _together(self, tried: list[_Tried], kept: int) -> list[_Tried]:
        """The best of these, each with every other single hypothesis on top."""
        best = sorted((t for t in tried if math.isfinite(t.fit.cost)), key=lambda t: t.fit.cost)
        found: list[_Tried] = []
        seen: set[frozenset[str]] = set()
        for first in best[:kept]:
            for other in HYPOTHESES:
                keys = frozenset({*(m.name for m in first.combination.members), other.name})
                rule = first.combination.apply(self._part.rule, first.fit.values)
                sensible = other.applies(rule) and first.combination.admits(other, rule)
                if keys in seen or not sensible or time.process_time() > self._deadline:
                    continue
                seen.add(keys)
                found.append(self._on_top(first, other))
        return found

    def _on_top(self, first: _Tried, other: RuleHypothesis) -> _Tried:
        combination = Combination((*first.combination.members, other))
        held, rule = first.fit.values, self._part.rule
        added = fit(self._part, lambda v: combination.apply(rule, (*held, *v)), other.numbers)
        return self._fit(combination, (*held, *added.values))

    def _measured(self, rule: Rule) -> float:
        return max(self._updates.ratios(dict.fromkeys(self._part.names, rule)).values())

    def _accept(self, tried: list[_Tried]) -> Explanation | None:
        ranked = sorted(range(len(tried)), key=lambda i: tried[i].fit.worst)
        accepted: list[tuple[int, _Tried]] = []
        for i in ranked[:_MOST_MEASURED]:
            one = tried[i]
            if one.fit.worst > _WORTH_MEASURING and i != ranked[0]:
                break
            if not math.isfinite(one.fit.worst):
                break
            ratio = self._measured(one.combination.apply(self._part.rule, one.fit.values))
            if ratio <= ISOLATED_THRESHOLD:
                accepted.append((i, replace(one, ratio=ratio)))
        if not accepted:
            return None
        limit = max(_LIKELY_RATIO, 2.0 * min(t.ratio for _, t in accepted))
        likely = sorted((e for e in accepted if e[1].ratio <= limit), key=_simplicity)
        every: dict[tuple[str, ...], Explanation] = {}
        for _, one in likely:
            ids = tuple(m.id for m in one.combination.members)
            if ids not in every and len(every) < _MOST_ALTERNATIVES:
                every[ids] = self._explanation(one)
        winner, *others = every.values()
        return replace(winner, others=tuple(others))

    def _explanation(self, winner: _Tried) -> Explanation:
        combination, rule, numbers = winner.combination, self._part.rule, winner.numbers

        def rule_of(values: tuple[float, ...]) -> Rule:
            return combination.apply(rule, values)

        part = self._updates.under(self._part, rule_of(winner.fit.values))
        found = fit(part, rule_of, numbers, winner.fit.values)
        noise = deviations(part, self._updates, rule_of(found.values))
        known = intervals(part, rule_of, numbers, found.values, noise)
        shown = tuple(max(rule.lr) if u.name == "lr" else 1.0 for u in numbers)
        values, ratio = found.values, winner.ratio
        for better in (rounded(part, rule_of, numbers, found, shown, known), found.values):
            measured = self._measured(rule_of(better))
            if measured <= ISOLATED_THRESHOLD:
                values, ratio = better, measured
                break
        else:
            values = winner.fit.values
        share, share_interval = explained_share(part, rule_of(values), noise)
        return Explanation(
            combination, values, tuple(known), ratio, share, share_interval, (), winner.kind
        )


def _simplicity(entry: tuple[int, _Tried]) -> tuple[int, int, int]:
    order, tried = entry
    members, numbers = tried.combination.members, tried.combination.numbers
    if len(members) > 1:
        return len(numbers), 0, sum(_ORDER.get(m.name, 0) for m in members)
    if members[0].id == "optimizer.kind":
        return len(numbers), 0, order
    unlikely = 2 if len(numbers) > 1 or members[0].rank > USUAL else 0
    # A factor of 8 or 1024 is more often a loss scale than a learning rate or an eps.
    if len(numbers) == 1 and numbers[0].name == "gradient_scale":
        power = math.log2(abs(tried.fit.values[0])) if tried.fit.values[0] else 0.0
        unlikely = -int(abs(power) > 2.5 and abs(power - round(power)) < 1e-4)
    return 0, unlikely, order


_ORDER = {h.name: i for i, h in enumerate(HYPOTHESES)}

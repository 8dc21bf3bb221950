"""Parts of the network whose updates differ in the same way, and what explains each.

Parameters that the reference treats alike are searched together; those that the found rule does
not explain are searched again as a part of their own.  Equal explanations are joined.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from isograd.diagnose.update.problem import Updates
from isograd.diagnose.update.search import Explanation, Search
from isograd.frameworks.rules import Rule
from isograd.noise.envelope import ISOLATED_THRESHOLD

_MOST_PARTS = 4
_SAME_NUMBER = 1e-5
#: After this no further part is searched; what is left is not explained.
_SECONDS = 40.0
#: A share of the change that is known no better than this (its interval's width) may be anything
#: that is linear in a gradient which is mostly noise (a bias before a normalisation).
_VAGUE = 0.1


@dataclass(frozen=True)
class Blame:
    """Parameters and the rule that the port follows for them; None where nothing explains it.

    silent: parameters that agree under the reference's rule and under this one as well (their
    gradients are zero, or what changes has no effect on them).
    rules: the port's rule by parameter; groups: the reference's parameter groups;
    causes: the ids, with `optimizer.no_decay` where decay reaches the wrong parameters.
    """

    names: tuple[str, ...]
    groups: tuple[int, ...]
    explanation: Explanation | None
    rules: dict[str, Rule]
    causes: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()


def blame_rules(updates: Updates, ratios: dict[str, float]) -> list[Blame]:
    """Explain the parameters that differ, given with their ratios."""
    buckets: dict[tuple[Rule, bool], list[str]] = {}
    unknown: list[str] = []
    for name in sorted(ratios, key=lambda n: -ratios[n]):
        watched = updates.parameters.get(name)
        if watched is None or watched.rule is None:
            unknown.append(name)
            continue
        still = bool(len(watched.port) > 1 and np.array_equal(watched.port[0], watched.port[-1]))
        buckets.setdefault((watched.rule, still), []).append(name)
    found: list[Blame] = []
    deadline = time.process_time() + _SECONDS
    # What stands still last: it may only have no gradient worth a step under the found rule.
    for (rule, _), names in sorted(buckets.items(), key=lambda entry: entry[0][1]):
        _explain_bucket(updates, rule, names, found, deadline)
    merged = _merge(found)
    explained = [_with_silent(updates, b, set(ratios)) for b in merged if b.explanation]
    result = [replace(b, causes=_ids(updates, b)) for b in explained]
    unknown += [n for b in merged if b.explanation is None for n in b.names]
    if unknown:
        result.append(Blame(tuple(unknown), _groups(updates, unknown), None, {}))
    return result


def _explain_bucket(
    updates: Updates, rule: Rule, names: list[str], found: list[Blame], deadline: float
) -> None:
    remaining = list(names)
    known = [b.explanation for b in found if b.explanation is not None]
    for explanation in known:
        remaining = _adopt(updates, rule, remaining, explanation, found)
    for _ in range(_MOST_PARTS):
        if not remaining:
            return
        if found and time.process_time() > deadline:
            break
        searched = _search(updates, rule, remaining, deadline)
        if searched is None:
            break
        remaining = _adopt(updates, rule, remaining, searched, found)
    if remaining:
        # What little noise allows is no cause where its neighbours follow another rule.
        vague = [b for b in found if b.explanation is not None and set(b.names) <= set(names)]
        vague = [b for b in vague if b.explanation is not None and _is_vague(b.explanation)]
        remaining += [n for b in vague for n in b.names]
        found[:] = [b for b in found if b not in vague]
        found.append(Blame(tuple(remaining), _groups(updates, remaining), None, {}))


def _is_vague(explanation: Explanation) -> bool:
    low, high = explanation.share_interval
    return high - low > _VAGUE


def _search(updates: Updates, rule: Rule, names: list[str], deadline: float) -> Explanation | None:
    """All of them together; else one alone, then those that are like it."""
    together = Search(updates, names, deadline).run()
    if together is not None or len(names) == 1:
        return together
    for lead in (names[0], names[-1]):
        alone = Search(updates, [lead], deadline).run()
        if alone is None:
            continue
        alike = _fitting(updates, rule, names, alone)
        better = Search(updates, alike, deadline).run() if len(alike) > 1 else None
        return better or alone
    return None


def _fitting(
    updates: Updates, rule: Rule, names: Iterable[str], explanation: Explanation
) -> list[str]:
    there = explanation.apply(rule)
    ratios = updates.ratios(dict.fromkeys(names, there))
    return [n for n, ratio in ratios.items() if ratio <= ISOLATED_THRESHOLD]


def _adopt(
    updates: Updates,
    rule: Rule,
    names: list[str],
    explanation: Explanation,
    found: list[Blame],
) -> list[str]:
    """Note the parameters that it explains; those that are left."""
    if not names:
        return []
    fitting = _fitting(updates, rule, names, explanation)
    if fitting:
        there = explanation.apply(rule)
        rules = dict.fromkeys(fitting, there)
        found.append(Blame(tuple(fitting), _groups(updates, fitting), explanation, rules))
    return [n for n in names if n not in fitting]


def _groups(updates: Updates, names: Iterable[str]) -> tuple[int, ...]:
    every = {updates.parameters[n].group for n in names if n in updates.parameters}
    return tuple(sorted(every))


def _merge(found: list[Blame]) -> list[Blame]:
    merged: list[Blame] = []
    for blame in found:
        for i, other in enumerate(merged):
            if _same(blame.explanation, other.explanation):
                merged[i] = replace(
                    other,
                    names=other.names + blame.names,
                    groups=tuple(sorted({*other.groups, *blame.groups})),
                    rules=other.rules | blame.rules,
                )
                break
        else:
            merged.append(blame)
    return merged


def _same(first: Explanation | None, second: Explanation | None) -> bool:
    if first is None or second is None:
        return first is second
    keys = [m.name for m in first.combination.members]
    if keys != [m.name for m in second.combination.members]:
        return False
    for a, b, one, two in zip(first.values, second.values, first.known, second.known, strict=True):
        close = math.isclose(a, b, rel_tol=_SAME_NUMBER)
        overlap = max(one[0], two[0]) <= min(one[1], two[1])
        if not close and not overlap:
            return False
    return True


def _ids(updates: Updates, blame: Blame) -> tuple[str, ...]:
    assert blame.explanation is not None
    return tuple(
        _decay_id(updates, blame) if cause == "optimizer.weight_decay" else cause
        for cause in blame.explanation.ids
    )


def _decay_id(updates: Updates, blame: Blame) -> str:
    """Another decay where all decayed parameters or all altogether have it, else other ones."""
    names = {*blame.names, *blame.silent}
    every = {n: w.rule for n, w in updates.parameters.items() if w.rule is not None}
    decayed = {n for n, rule in every.items() if rule.weight_decay > 0}
    if names == set(every) or (decayed and decayed <= names):
        return "optimizer.weight_decay"
    return "optimizer.no_decay"


def blame_with(updates: Updates, blame: Blame, explanation: Explanation) -> Blame:
    """The same parameters with another explanation."""
    rules = {}
    for name in (*blame.names, *blame.silent):
        rule = updates.parameters[name].rule
        assert rule is not None
        rules[name] = explanation.apply(rule)
    changed = replace(blame, explanation=explanation, rules=rules)
    return replace(changed, causes=_ids(updates, changed))


def _with_silent(updates: Updates, blame: Blame, differing: set[str]) -> Blame:
    """The blame with the parameters of the same rules to which it makes no difference."""
    explanation = blame.explanation
    assert explanation is not None
    rules = {updates.parameters[n].rule for n in blame.names}
    there = {
        n: explanation.apply(w.rule)
        for n, w in updates.parameters.items()
        if w.rule is not None and w.rule in rules and n not in differing
    }
    agreeing = [n for n, r in updates.ratios(there).items() if r <= ISOLATED_THRESHOLD]
    added = {n: there[n] for n in agreeing}
    return replace(blame, silent=tuple(agreeing), rules=blame.rules | added)

"""Whether two dropouts drop at the same rate: exact tests on independent draws.

A measured count of drops is hypergeometric given both counts together, if the rates are equal
(Fisher's exact test); against a rate that the code names it is binomial.  Sums of probabilities
are taken in logarithms, outward from the mode, so that hundreds of thousands of draws cost
milliseconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from isograd.diagnose.estimate import rounded
from isograd.frameworks.base import DropoutSite

#: A right port is called wrong at one dropout with at most this probability.
FALSE_ALARM = 1e-6
#: Rates that both sides name are equal within this: `1 - 0.9` is not 0.1 in binary.
_EXACT = 1e-6
#: Deviations of a binomial share that `FALSE_ALARM` corresponds to, two-sided.
_DEVIATIONS = 4.9
_NEGLIGIBLE = 1e-9


def rates_differ(first: DropoutSite, second: DropoutSite) -> bool:
    """Whether chance explains the difference of two rates with a probability below 1e-6."""
    if not first.draws and not second.draws:
        return abs(first.probability - second.probability) > _EXACT
    if first.draws and second.draws:
        return chance_of_equal_rates(first, second) < FALSE_ALARM
    exact, measured = (second, first) if first.draws else (first, second)
    return _binomial(measured, exact.probability) < FALSE_ALARM


def differs_from(site: DropoutSite, rate: float) -> bool:
    """Whether a site drops at another rate than this one."""
    return rates_differ(site, DropoutSite(site.module, 0, rate, 0.0))


def reach(site: DropoutSite) -> float:
    """How far the measured rate may be from the true one."""
    if not site.draws:
        return 0.0
    share = min(max(site.probability, 1.0 / site.draws), 1.0 - 1.0 / site.draws)
    return _DEVIATIONS * math.sqrt(share * (1.0 - share) / site.draws)


def as_written(site: DropoutSite) -> float:
    """The roundest rate that the measurement allows: people write 0.3, not 0.29987."""
    if site.probability in (0.0, 1.0) or not site.draws:
        return site.probability
    return rounded(site.probability, site.probability - reach(site), site.probability + reach(site))


def chance_of_equal_rates(first: DropoutSite, second: DropoutSite) -> float:
    """How probable so great a difference of two measured rates is by chance (Fisher's test)."""
    one, other = _dropped(first), _dropped(second)
    total, everything = one + other, first.draws + second.draws

    def log_chance(count: int) -> float:
        return (
            _log_choose(first.draws, count)
            + _log_choose(second.draws, total - count)
            - _log_choose(everything, total)
        )

    low, high = max(0, total - second.draws), min(first.draws, total)
    return _two_sided(log_chance, one, low, high)


def _binomial(site: DropoutSite, rate: float) -> float:
    count = _dropped(site)
    if not 0.0 < rate < 1.0:
        return 1.0 if site.probability == rate else 0.0

    def log_chance(count: int) -> float:
        certain = count * math.log(rate) + (site.draws - count) * math.log1p(-rate)
        return _log_choose(site.draws, count) + certain

    return _two_sided(log_chance, count, 0, site.draws)


def _two_sided(log_chance: Callable[[int], float], seen: int, low: int, high: int) -> float:
    """Twice the smaller tail, the count that was seen in it; at most 1."""
    tails = [
        _tail(log_chance, range(seen, stop, step)) for stop, step in ((low - 1, -1), (high + 1, 1))
    ]
    return min(1.0, 2.0 * min(tails))


def _tail(log_chance: Callable[[int], float], counts: range) -> float:
    total = 0.0
    for count in counts:
        chance = math.exp(log_chance(count))
        total += chance
        if chance <= _NEGLIGIBLE * total or total > 0.5:
            break
    return total


def _dropped(site: DropoutSite) -> int:
    return round(site.probability * site.draws)


def _log_choose(whole: int, part: int) -> float:
    return math.lgamma(whole + 1) - math.lgamma(part + 1) - math.lgamma(whole - part + 1)

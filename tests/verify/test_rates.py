"""Whether two dropouts drop at the same rate: exact tests on independent draws."""

from __future__ import annotations

import math

import numpy as np
import pytest

from isograd.frameworks.base import DropoutSite
from isograd.frameworks.draws import PROBE_CHANNELS, site_of
from isograd.verify.rates import (
    FALSE_ALARM,
    as_written,
    chance_of_equal_rates,
    differs_from,
    rates_differ,
    reach,
)

DRAWS = math.prod(PROBE_CHANNELS)


def measured(rate: float, draws: int = DRAWS) -> DropoutSite:
    return DropoutSite("drop", 0, round(rate * draws) / draws, 0.0, draws)


def named(rate: float) -> DropoutSite:
    return DropoutSite("drop", 0, rate, 0.0)


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.3, 0.5, 0.9])
def test_one_percentage_point_is_decided(rate: float) -> None:
    assert rates_differ(measured(rate), measured(rate + 0.01))
    assert differs_from(measured(rate), rate + 0.01)


@pytest.mark.parametrize(
    ("first", "second", "differ"),
    [
        pytest.param(measured(0.3), measured(0.3), False, id="the same count"),
        pytest.param(measured(0.3), measured(0.3025), False, id="within four deviations"),
        pytest.param(measured(0.3, 4096), measured(0.31, 4096), False, id="too few draws"),
        pytest.param(measured(0.0), measured(0.5), True, id="inactive against active"),
        pytest.param(measured(0.0), measured(0.0), False, id="both inactive"),
        pytest.param(named(0.1), named(1 - 0.9), False, id="named, but for the last bit"),
        pytest.param(named(0.1), named(0.101), True, id="named, another number"),
        pytest.param(named(0.0), measured(0.1), True, id="named as inactive"),
        pytest.param(named(1.0), measured(1.0), False, id="everything dropped"),
    ],
)
def test_what_chance_explains(first: DropoutSite, second: DropoutSite, differ: bool) -> None:
    assert rates_differ(first, second) is differ
    assert rates_differ(second, first) is differ


def test_the_test_is_fishers_exact_one() -> None:
    """Against the sum over all tables with these margins, in integers."""
    first, second = measured(0.2, 40), measured(0.6, 30)
    one, other = 8, 18
    total = one + other
    ways = [math.comb(40, k) * math.comb(30, total - k) for k in range(total + 1)]
    smaller = min(sum(ways[: one + 1]), sum(ways[one:]))
    assert chance_of_equal_rates(first, second) == pytest.approx(2 * smaller / sum(ways))


def test_right_ports_raise_no_alarm() -> None:
    """Twenty thousand pairs of equal rates: the expected number of alarms is 0.02."""
    drawn = np.random.default_rng(0).binomial(DRAWS, 0.3, (20_000, 2)) / DRAWS
    spread = 4.9 * math.sqrt(2 * 0.3 * 0.7 / DRAWS)  # only these are worth an exact test
    suspects = [pair for pair in drawn if abs(pair[0] - pair[1]) > 0.8 * spread]
    assert not any(rates_differ(measured(a), measured(b)) for a, b in suspects)


@pytest.mark.parametrize(
    ("shape", "axes", "draws"),
    [
        pytest.param((40, 50, 2, 2), 4, 16_000 // 2, id="elements"),
        pytest.param((40, 50, 2, 2), 2, 2_000, id="channels"),
        pytest.param((40, 50, 2), 1, 40, id="rows, as in stochastic depth"),
    ],
)
def test_draws_are_counted_by_what_changes_together(
    shape: tuple[int, ...], axes: int, draws: int
) -> None:
    drawn = np.random.default_rng(1).random(shape[:axes]) < 0.3
    mask = np.broadcast_to(drawn.reshape(*shape[:axes], *[1] * (len(shape) - axes)), shape)
    site = site_of("drop", 0, mask, 1.0)
    assert site.draws == draws
    assert site.probability == pytest.approx(drawn.mean())


def test_a_rate_is_written_as_people_write_it() -> None:
    site = measured(0.30112)
    assert as_written(site) == 0.3
    assert 0.0037 < reach(site) < 0.0038
    assert as_written(named(0.123)) == 0.123
    assert 2 * math.exp(-(4.9**2) / 2) > FALSE_ALARM  # the reach is the test's own

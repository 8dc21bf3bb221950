"""Whether two random transforms draw alike: the two-sample Kolmogorov–Smirnov test per feature.

Seeds never match across frameworks, so that draws are compared by their distribution.  The level of
the whole test is 10⁻⁴, divided by the number of features (Bonferroni): one false alarm in 10,000
comparisons of equal transforms.  Critical value: c(α) · √((n + m) / (n · m)) with
c(α) = √(-ln(α / 2) / 2) (Smirnov 1948); with ties, as of flips, the test is conservative.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: The probability of an alarm where both draw from one distribution.
LEVEL = 1e-4


@dataclass(frozen=True)
class Comparison:
    """distance: the greatest between two distribution functions; feature: where that is."""

    is_same: bool
    distance: float
    allowed: float
    feature: int
    draws: tuple[int, int]


def compare_draws(a: NDArray[Any], b: NDArray[Any], tolerances: Sequence[float] = ()) -> Comparison:
    """Compare two tables with a row per draw and a column per feature.

    tolerances: of each feature; a shift of its values by less than that is no difference (Lévy's
    distance with a width that is given); none where it is empty.  The test stays conservative.
    a, b: (draws, features) of any real dtype; the numbers of draws may differ.
    """
    draws = (len(a), len(b))
    if a.shape[1:] != b.shape[1:] or not all(draws):
        return Comparison(False, 1.0, 0.0, -1, draws)
    columns = a.shape[1]
    alpha = LEVEL / max(1, columns)
    allowed = math.sqrt(-math.log(alpha / 2) / 2) * math.sqrt(sum(draws) / math.prod(draws))
    widths = tolerances or [0.0] * columns
    distances = [_distance(a[:, n], b[:, n], widths[n]) for n in range(columns)]
    worst = int(np.argmax(distances))
    return Comparison(distances[worst] <= allowed, distances[worst], allowed, worst, draws)


def _distance(a: NDArray[Any], b: NDArray[Any], tolerance: float) -> float:
    """The greatest distance between two empirical distribution functions.

    Values that differ by rounding alone are one: a draw of 0.5 may be 0.50000003 elsewhere.
    """
    scale = max(float(np.abs(a).max()), float(np.abs(b).max()), 1e-12)
    first, second = (np.sort(np.round(x / scale, 5)) for x in (a, b))
    width = tolerance / scale
    return max(_beyond(first, second, width), _beyond(second, first, width), 0.0)


def _beyond(a: NDArray[Any], b: NDArray[Any], width: float) -> float:
    """How far the distribution function of a is above that of b a width further on."""
    places = np.concatenate((a, b))
    below_a = np.searchsorted(a, places, side="right") / len(a)
    below_b = np.searchsorted(b, places + width, side="right") / len(b)
    return float((below_a - below_b).max())

"""Curves that are thinned keep their extremes and their NaNs."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from isograd.serve.curves import kept_points

VALUES = st.lists(st.floats(width=32), min_size=1, max_size=400)


@given(VALUES, st.integers(min_value=2, max_value=50))
def test_ends_extremes_and_what_is_not_finite_stay(listed: list[float], most: int) -> None:
    values = np.array(listed)
    kept = kept_points(values, most)
    assert len(kept) <= max(most, 3 * max(1, most // 2) + 2)
    assert kept[0] == 0
    assert kept[-1] == len(values) - 1
    assert (np.diff(kept) > 0).all()
    finite = values[np.isfinite(values)]
    if len(finite):
        assert finite.min() in values[kept]
        assert finite.max() in values[kept]
    if len(finite) < len(values):
        assert not np.isfinite(values[kept]).all()


def test_a_short_curve_is_whole() -> None:
    assert kept_points(np.arange(10.0), 10).tolist() == list(range(10))

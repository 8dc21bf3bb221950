"""Self time and covers, against plain loops; which operators are dispatch."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isograd.profile.analyse import operators
from isograd.profile.analyse.nesting import merge, parents, union_ns, union_within
from isograd.profile.analyse.operators import is_dispatch, tiny_types
from isograd.profile.model import Phase, SourceOperator
from isograd.profile.spans import NONE


@st.composite
def nested(draw: st.DrawFn) -> list[tuple[int, int]]:
    """Intervals that nest or do not touch, as a thread's calls do."""

    def fill(begin: int, end: int, depth: int) -> list[tuple[int, int]]:
        cuts = sorted(draw(st.lists(st.integers(begin, end), max_size=4, unique=True)))
        rows = []
        for start, stop in zip(cuts[::2], cuts[1::2], strict=False):
            rows.append((start, stop))
            if depth < 3:
                rows += fill(start, stop, depth + 1)
        return rows

    return sorted(set(fill(0, 200, 0)), key=lambda row: (row[0], -row[1]))


@given(nested())
def test_parents_are_the_smallest_enclosing_intervals(rows: list[tuple[int, int]]) -> None:
    start = np.asarray([row[0] for row in rows], dtype=np.int64)
    end = np.asarray([row[1] for row in rows], dtype=np.int64)
    found = parents(np.zeros(len(rows), dtype=np.int32), start, end - start)
    for index, (first, last) in enumerate(rows):
        enclosing = [n for n, (a, b) in enumerate(rows[:index]) if a <= first and last <= b]
        smallest = min(enclosing, key=lambda n: rows[n][1] - rows[n][0], default=-1)
        assert found[index] == smallest


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=12), st.integers(0, 60))
def test_covers_count_each_nanosecond_once(rows: list[tuple[int, int]], cut: int) -> None:
    start = np.asarray([row[0] for row in rows], dtype=np.int64)
    end = start + np.asarray([row[1] for row in rows], dtype=np.int64)
    covered = {t for a, b in zip(start.tolist(), end.tolist(), strict=True) for t in range(a, b)}
    first, last = merge(start, end)
    assert int((last - first).sum()) == len(covered)
    assert union_ns(start, end) == len(covered) or not len(covered)
    windows = np.asarray([0, cut], dtype=np.int64), np.asarray([cut, 100], dtype=np.int64)
    left = sum(1 for t in covered if t < cut)
    assert union_within(start, end, *windows).tolist() == [left, len(covered) - left]


def test_intervals_that_overlap_without_nesting_are_siblings() -> None:
    start, length = (np.asarray(v, dtype=np.int64) for v in ([0, 5], [10, 10]))
    assert parents(np.zeros(2, dtype=np.int32), start, length).tolist() == [-1, -1]


def test_operators_whose_tensors_are_tiny_are_dispatch_also_where_the_trace_has_no_shapes() -> None:
    calls = [
        SourceOperator(name, shapes, "float32", "net.py:3", "", Phase.FORWARD)
        for name, shapes in (("Mul", "1×8"), ("MatMul", "1×8, 8×8"), ("MatMul", "512×512, 512×512"))
    ]
    tiny = tiny_types(calls)
    assert tiny == {"Mul"}
    name = np.asarray([0, 0, 1], dtype=np.int32)
    no_shapes = np.full(3, NONE, dtype=np.int32)
    own_ns = np.asarray([60_000, 80_000, 60_000], dtype=np.int64)
    found = is_dispatch(("Default/Mul-op0", "MatMul"), name, no_shapes, own_ns, tiny)
    assert found.tolist() == [True, True, False]


def test_equal_keys_get_one_number_and_their_first_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operators, "_PART", 7)
    key = np.random.default_rng(0).integers(0, 9, 50)
    _, first, number = np.unique(key, return_index=True, return_inverse=True)
    found = operators.numbered(key)
    np.testing.assert_array_equal(found[0], first)
    np.testing.assert_array_equal(found[1], number)

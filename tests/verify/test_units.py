"""Which calls are held fixed while another one is replayed."""

from __future__ import annotations

import pytest

from isograd.frameworks.base import CallInfo
from isograd.verify.units import Unit, enclosing, last_descendant, make_unit, make_units


def calls(*parents: int | None) -> tuple[CallInfo, ...]:
    """A call for each parent, named by its number."""
    return tuple(CallInfo(str(i), 0, parent, (), ()) for i, parent in enumerate(parents))


#      0
#    1     4
#   2 3   5
TREE = calls(None, 0, 1, 1, 0, 4)
#: The same, with a container of the port's own around 1.
WRAPPED = calls(None, 0, 1, 2, 2, 0, 5)
FLAT = calls(None, 0, 0, 0)


@pytest.mark.parametrize(
    ("reference", "port", "pairs", "expected"),
    [
        (
            TREE,
            TREE,
            [(i, i) for i in range(6)],
            [
                Unit(0, 0, ((1, 1), (4, 4))),
                Unit(1, 1, ((2, 2), (3, 3))),
                Unit(2, 2, ()),
                Unit(3, 3, ()),
                Unit(4, 4, ((5, 5),)),
                Unit(5, 5, ()),
            ],
        ),
        (
            TREE,
            TREE,
            [(0, 0), (2, 2), (4, 4)],
            [Unit(0, 0, ((2, 2), (4, 4))), Unit(2, 2, ()), Unit(4, 4, ())],
        ),
        (
            TREE,
            WRAPPED,
            [(0, 0), (1, 2), (2, 3), (3, 4)],
            [Unit(0, 0, ((1, 2),)), Unit(1, 2, ((2, 3), (3, 4))), Unit(2, 3, ()), Unit(3, 4, ())],
        ),
        (
            TREE,
            FLAT,
            [(0, 0), (2, 1), (3, 2), (5, 3)],
            [Unit(0, 0, ((2, 1), (3, 2), (5, 3))), Unit(2, 1, ()), Unit(3, 2, ()), Unit(5, 3, ())],
        ),
        (
            FLAT,
            FLAT,
            [(0, 0), (1, 2), (2, 1)],
            [Unit(0, 0, ((1, 2), (2, 1))), Unit(1, 2, ()), Unit(2, 1, ())],
        ),
        (FLAT, FLAT, [(0, 0)], [Unit(0, 0, ())]),
        (FLAT, FLAT, [], []),
    ],
    ids=["all", "gap", "wrapped", "flattened", "crossed", "root", "none"],
)
def test_units(
    reference: tuple[CallInfo, ...],
    port: tuple[CallInfo, ...],
    pairs: list[tuple[int, int]],
    expected: list[Unit],
) -> None:
    assert list(make_units(reference, port, pairs)) == expected


def test_a_pair_that_is_nested_on_one_side_only_is_not_pinned() -> None:
    assert make_unit(TREE, FLAT, {0: 0, 1: 1, 2: 2}, 1) == Unit(1, 1, ())


def test_a_pinned_call_hides_what_is_inside_it_on_either_side() -> None:
    unit = make_unit(TREE, WRAPPED, {0: 0, 1: 1, 2: 3}, 0)
    assert unit == Unit(0, 0, ((1, 1),))


@pytest.mark.parametrize(("call", "last"), [(0, 5), (1, 3), (2, 2), (4, 5), (5, 5)])
def test_last_descendant(call: int, last: int) -> None:
    assert last_descendant(TREE, call) == last


@pytest.mark.parametrize(("call", "around"), [(2, 0), (3, 0), (5, 4), (4, 0), (0, None)])
def test_enclosing(call: int, around: int | None) -> None:
    assert enclosing(TREE, {0: 0, 2: 2, 4: 4}, call) == around

"""What the cycle collector leaves alone, and for how long."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from isograd.collector import with_present_objects_left_alone, without_collector


@pytest.mark.parametrize("around", [without_collector, with_present_objects_left_alone])
def test_what_was_before_comes_back_after_an_error(
    around: Callable[[], AbstractContextManager[None]],
) -> None:
    def fail() -> None:
        with around():
            assert not gc.isenabled() or gc.get_freeze_count() > 0
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0


def test_what_somebody_else_has_frozen_stays_so() -> None:
    with with_present_objects_left_alone():
        with with_present_objects_left_alone():
            pass
        assert gc.get_freeze_count() > 0
    assert gc.get_freeze_count() == 0


def test_cycles_that_are_made_meanwhile_are_collected() -> None:
    class Node:
        def __init__(self) -> None:
            self.itself = self
            gone.append(1)

        def __del__(self) -> None:
            gone.pop()

    gone: list[int] = []
    with with_present_objects_left_alone():
        Node()
        assert gone
        gc.collect()
        assert not gone

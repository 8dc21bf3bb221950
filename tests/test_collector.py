"""What the cycle collector leaves alone, and for how long."""

from __future__ import annotations

import gc

import pytest

from isograd.collector import with_present_objects_left_alone, without_collector


def test_without_collector() -> None:
    with pytest.raises(KeyError), without_collector():
        assert not gc.isenabled()
        raise KeyError
    assert gc.isenabled()


def test_present_objects_are_left_alone_until_the_end() -> None:
    with pytest.raises(KeyError), with_present_objects_left_alone():
        assert gc.get_freeze_count() > 0
        with with_present_objects_left_alone():
            pass
        assert gc.get_freeze_count() > 0
        raise KeyError
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

"""In which order passes see a node: by their stages and by what each declares."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from graphlib import TopologicalSorter
from typing import Any


class Stage(Enum):
    """When a pass sees a node.

    EARLY: in a round over the whole file before all others.  SPECIAL: one kind of construct; what
    a class says nothing of.  GENERAL: what the knowledge writes of any API, behind special ones.
    LAST: in a round over the whole file behind all others.
    """

    EARLY = "early"
    SPECIAL = "special"
    GENERAL = "general"
    LAST = "last"


def stage_of(item: Any) -> Stage:
    """The stage of a pass or of its class."""
    found: Stage = getattr(item, "stage", Stage.SPECIAL)
    return found


def ordered(classes: Iterable[type]) -> tuple[type, ...]:
    """The classes by stage; where they say nothing in `before` and `after`, as they are given.

    Raises ValueError for a name there that no class of the same stage has, and
    graphlib.CycleError for a circle.
    """
    found: list[type] = []
    given = list(classes)
    for stage in Stage:
        own = {one.__name__: one for one in given if stage_of(one) is stage}
        earlier = {name: list(getattr(one, "after", ())) for name, one in own.items()}
        for name, one in own.items():
            later = getattr(one, "before", ())
            if unknown := {*earlier[name], *later} - set(own):
                raise ValueError(f"{name} names {min(unknown)}, which is no pass of its stage")
            for other in later:
                earlier[other].append(name)
        found += [own[name] for name in TopologicalSorter(earlier).static_order()]
    return tuple(found)

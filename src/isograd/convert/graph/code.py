"""Code with holes: a text in which numbers are left open, so that two texts can be one class."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

_HOLE = re.compile(r"_hole_(\d+)_")


@dataclass(frozen=True)
class Hole:
    """A value that may become an argument of the class; hint: what such an argument is called."""

    source: str
    hint: str


@dataclass
class Holes:
    """The holes of one class's text, in the order of their making."""

    values: list[Hole] = field(default_factory=list)

    def add(self, source: str, hint: str) -> str:
        """A new hole; returns the name that stands in the text for it."""
        self.values.append(Hole(source, hint))
        return f"_hole_{len(self.values) - 1}_"


def fill(text: str, give: Callable[[int], str]) -> str:
    """The text with each hole replaced."""
    return _HOLE.sub(lambda found: give(int(found[1])), text)


def holes_in(text: str) -> list[int]:
    """The holes of a text in the order in which they appear."""
    return [int(number) for number in _HOLE.findall(text)]


def ordered(texts: Iterable[str], holes: Holes) -> tuple[list[str], list[Hole]]:
    """The texts with their holes numbered from 0 in the order of their appearance.

    Two classes are of one kind where these texts are equal; a hole that appears twice has two
    numbers.
    """
    found: list[Hole] = []

    def give(number: int) -> str:
        found.append(holes.values[number])
        return f"_hole_{len(found) - 1}_"

    return [fill(text, give) for text in texts], found

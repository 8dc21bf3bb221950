"""How long work says what it is doing, without knowing who listens."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """A listener to a long run; its methods return at once and never raise."""

    def stage(self, stage: str) -> None:
        """A stage begins."""

    def advance(self, done: int, total: int, what: str = "", unit: str = "") -> None:
        """`done` of `total` of the stage are finished; `what` is the one at hand.

        unit: what is counted; "bytes" is drawn with its rate.
        """

    def note(self, text: str) -> None:
        """Something that a person should know while they wait."""


class SilentProgress:
    """A listener that says nothing."""

    def stage(self, stage: str) -> None:
        """Ignore it."""

    def advance(self, done: int, total: int, what: str = "", unit: str = "") -> None:
        """Ignore it."""

    def note(self, text: str) -> None:
        """Ignore it."""

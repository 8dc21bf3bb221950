"""What random steps of two chains draw: the same, with another parameter, or with a step less."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Sequence
from typing import Any

from isograd.data.compare.intermediate import Value
from isograd.data.compare.randomness import Comparison, compare_draws
from isograd.data.compare.side import ChainInfo, Side, Step
from isograd.errors import IsogradError

#: Names under which libraries keep one parameter.
_ALIASES = {"prob": "p", "fill_value": "fill"}
#: A side's values at one place, sample by sample.
Here = tuple[list[Value], list[Value]]


def parameter_of(step: Step, name: str) -> Any:
    """A parameter of a step by its name in any library; None where the step has none such."""
    wanted = _ALIASES.get(name, name)
    return next((v for k, v in step.parameters.items() if _ALIASES.get(k, k) == wanted), None)


def other_parameters(own: Step, theirs: Step) -> list[tuple[str, Any]]:
    """Parameters that both steps have, by the first one's names with the second one's values."""
    named = [(name, value, parameter_of(theirs, name)) for name, value in own.parameters.items()]
    return [(name, other) for name, value, other in named if other is not None and other != value]


class Drawing:
    """Draws of two sides' chains."""

    def __init__(
        self, sides: tuple[Side, Side], chains: tuple[ChainInfo, ChainInfo], draws: int
    ) -> None:
        self._sides, self._chains, self._draws = sides, chains, draws

    def compare(
        self,
        steps_a: Sequence[int],
        steps_b: Sequence[int],
        here: Here,
        changes: dict[str, Any] | None = None,
    ) -> Comparison:
        """Compare what steps of A and of B draw; changes: of A's first step's parameters."""
        tables, tolerances = [], []
        for side, steps in enumerate((steps_a, steps_b)):
            found = self._sides[side].call(
                "draw",
                self._chains[side].number,
                list(steps),
                here[side][0].wired(),
                self._draws,
                (changes or {}) if side == 0 else {},
            )
            tables.append(found["features"].values)
            tolerances.append(found["tolerances"])
        return compare_draws(tables[0], tables[1], list(map(max, *tolerances)))

    def transplanted(self, i: int, j: int, here: Here) -> str:
        """The parameter of B with which A draws as B does; "" where none does."""
        for name, other in other_parameters(self._chains[0].steps[i], self._chains[1].steps[j]):
            with contextlib.suppress(IsogradError):  # a value that A's transform does not take
                if self.compare([i], [j], here, {name: other}).is_same:
                    return name
        return ""

    def left_out(self, steps_a: range, steps_b: range, here: Here) -> tuple[int, ...]:
        """The steps of the longer block without which both draw alike; none where none do."""
        is_a = len(steps_a) > len(steps_b)
        longer, shorter = (steps_a, steps_b) if is_a else (steps_b, steps_a)
        for kept in itertools.combinations(longer, len(shorter)):
            with contextlib.suppress(IsogradError):  # steps that need those left out
                steps = (kept, tuple(shorter)) if is_a else (tuple(shorter), kept)
                if kept and kept != tuple(longer) and self.compare(*steps, here).is_same:
                    return tuple(n for n in longer if n not in kept)
        return ()

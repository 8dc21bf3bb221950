"""Two chains of transforms, step by step: each with the same input on both sides.

The walk goes from one place where both hold the same values to the next.  Where the rest of the
chains yields something else, the shortest pieces are sought after which, given equal values again,
the rest agrees: these pieces differ, and nothing else does up to there.  Random transforms are
compared by what they draw (`randomness.py`), and both sides go on from one draw of A.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

from isograd.data.compare.draws import Drawing, other_parameters
from isograd.data.compare.equality import array_gap
from isograd.data.compare.intermediate import Value, all_equivalent, as_like
from isograd.data.compare.randomness import Comparison
from isograd.data.compare.side import ChainInfo, Side, Step
from isograd.data.model import StepComparison
from isograd.errors import IsogradError

#: Steps of one side that a piece may have.
_LONGEST_PIECE = 4
#: Samples on which pieces are sought.
_SOUGHT_ON = 3
#: Kinds of transforms of which nothing is known but what they yield.
_UNKNOWN_KINDS = frozenset(("function", "other"))


@dataclass(frozen=True)
class Piece:
    """Steps of A and of B that part, with what entered and what came out, sample by sample."""

    steps_a: tuple[Step, ...]
    steps_b: tuple[Step, ...]
    inputs: tuple[Value, ...]
    outputs_a: tuple[Value, ...]
    outputs_b: tuple[Value, ...]
    is_swapped: bool = False
    is_end: bool = False
    draws: Comparison | None = None
    parameter: str = ""


@dataclass
class WalkResult:
    """What a walk over two chains found; is_whole: whether it reached both ends."""

    rows: list[StepComparison] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)
    is_whole: bool = False
    is_random: bool = False
    gaps: list[str] = field(default_factory=list)


class Walk:
    """One field's chains on both sides, for some pairs of samples."""

    def __init__(
        self,
        sides: tuple[Side, Side],
        chains: tuple[ChainInfo, ChainInfo],
        pairs: Sequence[tuple[int, int]],
        draws: int,
    ) -> None:
        self._sides, self._chains = sides, chains
        self._drawing = Drawing(sides, chains, draws)
        self._positions = ([a for a, _ in pairs], [b for _, b in pairs])
        self._random: dict[tuple[int, int], bool] = {}
        self.result = WalkResult()

    def run(self) -> WalkResult:
        """Walk to the end of both chains, or as far as both can be followed."""
        traces = [self._trace(side) for side in (0, 1)]
        start = self._first_place(*traces)
        if start is None:
            self.result.gaps.append(
                f"field {self._chains[0].field!r}: no step of A holds what a step of B holds"
            )
            return self.result
        i, j = start
        self._prefix(i, j)
        here = ([trace[i] for trace in traces[0]], [trace[j] for trace in traces[1]])
        ends = (len(self._chains[0].steps), len(self._chains[1].steps))
        while (i, j) != ends:
            found = self._go_on(i, j, here)
            if found is None:
                return self.result
            i, j, here = found
        self.result.is_whole = True
        return self.result

    def _trace(self, side: int) -> list[list[Value]]:
        """Per sample what enters and what every step gives; random steps are drawn once."""
        number = self._chains[side].number
        found = self._sides[side].call("trace", number, self._positions[side])
        return [[Value.of(value) for value in sample] for sample in found]

    def _first_place(self, a: list[list[Value]], b: list[list[Value]]) -> tuple[int, int] | None:
        """The earliest place at which both hold the same values."""
        size_a, size_b = len(a[0]), len(b[0])
        for i, j in sorted(itertools.product(range(size_a), range(size_b)), key=sum):
            before = any(self._is_random(0, n) for n in range(i))
            if before or any(self._is_random(1, n) for n in range(j)):
                continue
            if all_equivalent([s[i] for s in a], [s[j] for s in b]):
                return i, j
        return None

    def _is_random(self, side: int, step: int) -> bool:
        """Whether a step draws: as its library says, else measured."""
        known = self._chains[side].steps[step].is_random
        if known is not None:
            return known
        return self._random.get((side, step), False)

    def _measure(self, side: int, step: int, given: Value) -> None:
        """Whether a step of unknown kind yields the same twice."""
        if self._chains[side].steps[step].is_random is None:
            first, second, third = (self._apply(side, [step], given) for _ in range(3))
            is_random = any(_differs(first, other) for other in (second, third))
            self._random[side, step] = is_random

    def _apply(self, side: int, steps: list[int], given: Value) -> Value:
        chain = self._chains[side].number
        return Value.of(self._sides[side].call("apply", chain, steps, given.wired()))

    def _outputs(self, side: int, start: int, given: list[Value]) -> list[list[Value]]:
        """From a place on: per step what all samples become; a random step ends it."""
        found, current = [], given
        for step in range(start, len(self._chains[side].steps)):
            if (side, step) not in self._random:
                self._measure(side, step, current[0])
            if self._is_random(side, step):
                break
            current = [self._apply(side, [step], value) for value in current]
            found.append(current)
        return found

    def _prefix(self, i: int, j: int) -> None:
        """Steps before the first common place: a decoder on one side, which the other has done."""
        steps_a, steps_b = self._chains[0].steps[:i], self._chains[1].steps[:j]
        if steps_a or steps_b:
            self._note(steps_a, steps_b, "same", 0.0)

    def _note(
        self,
        steps_a: Sequence[Step],
        steps_b: Sequence[Step],
        outcome: str,
        greatest: float | None = None,
        detail: str = "",
    ) -> None:
        a, b = (" → ".join(step.label for step in steps) for steps in (steps_a, steps_b))
        name = self._chains[0].field
        self.result.rows.append(StepComparison(name, a, b, outcome, greatest, detail))

    def _go_on(
        self, i: int, j: int, here: tuple[list[Value], list[Value]]
    ) -> tuple[int, int, tuple[list[Value], list[Value]]] | None:
        """From one common place to the next; None where there is no way on."""
        after_a, after_b = self._outputs(0, i, here[0]), self._outputs(1, j, here[1])
        ends = (len(self._chains[0].steps), len(self._chains[1].steps))
        same = self._next_same(i, j, here, after_a, after_b)
        if same is not None:
            p, q = same
            outputs = (
                after_a[p - i - 1] if p > i else here[0],
                after_b[q - j - 1] if q > j else here[1],
            )
            steps = self._chains[0].steps[i:p], self._chains[1].steps[j:q]
            self._note(*steps, "same", _greatest(*outputs) if (p, q) == ends else None)
            return p, q, outputs
        random_a, random_b = i + len(after_a) < ends[0], j + len(after_b) < ends[1]
        if not after_a and not after_b and random_a and random_b:
            return self._drawn(i, j, here)
        if (not after_a and random_a) or (not after_b and random_b):
            return self._drawn_alone(i, j, here, 0 if not after_a and random_a else 1)
        return self._parted(i, j, here, after_a, after_b)

    def _next_same(
        self,
        i: int,
        j: int,
        here: tuple[list[Value], list[Value]],
        after_a: list[list[Value]],
        after_b: list[list[Value]],
    ) -> tuple[int, int] | None:
        """The nearest later place at which both hold the same; at the ends, to the last digit."""
        ends = (len(self._chains[0].steps), len(self._chains[1].steps))
        places_a = [here[0], *after_a]
        places_b = [here[1], *after_b]
        sizes = (len(places_a), len(places_b))
        for p, q in sorted(itertools.product(range(sizes[0]), range(sizes[1])), key=sum):
            if (p, q) == (0, 0) or (i + p, j + q) == ends:
                continue
            if not p or not q:
                if not self._only_represents(i, j, places_a, places_b, p, q):
                    continue
            if all_equivalent(places_a[p], places_b[q]):
                return i + p, j + q
        is_end = i + len(after_a) == ends[0] and j + len(after_b) == ends[1]
        if is_end and _all_same(places_a[-1], places_b[-1]):
            return ends
        return None

    def _only_represents(
        self,
        i: int,
        j: int,
        places_a: list[list[Value]],
        places_b: list[list[Value]],
        p: int,
        q: int,
    ) -> bool:
        """Whether steps of one side alone change container or layout, and the other has none such.

        What turns bytes into floats has a counterpart, or its lack is the difference.
        """
        steps_a, steps_b = self._chains[0].steps[i:], self._chains[1].steps[j:]
        own, others = (steps_a[:p], steps_b) if p else (steps_b[:q], steps_a)
        if {step.kind for step in own} & {step.kind for step in others} - _UNKNOWN_KINDS:
            return False
        places = places_a[: p + 1] if p else places_b[: q + 1]
        return all(
            all_equivalent(places[0], later) and _kind(places[0]) == _kind(later)
            for later in places[1:]
        )

    def _drawn(
        self, i: int, j: int, here: tuple[list[Value], list[Value]]
    ) -> tuple[int, int, tuple[list[Value], list[Value]]] | None:
        """Both sides draw next: compare the step, then the whole block of random steps."""
        self.result.is_random = True
        blocks = self._random_block(0, i), self._random_block(1, j)
        sizes = [(1, 1)] if min(blocks) == 1 == max(blocks) else [(1, 1), blocks]
        compared = None
        for p, q in sizes:
            compared = self._drawing.compare(range(i, i + p), range(j, j + q), here)
            if compared.is_same:
                break
        assert compared is not None
        missing = () if compared.is_same else self._missing_draw(i, j, blocks, here)
        if missing:
            p, q = blocks
        steps = self._chains[0].steps[i : i + p], self._chains[1].steps[j : j + q]
        detail = f"{compared.draws[0]:,} and {compared.draws[1]:,} draws, " + (
            f"distance {compared.distance:.3f}, allowed {compared.allowed:.3f}"
        )
        outcome = "same distribution" if compared.is_same else "other distribution"
        self._note(*steps, outcome, detail=detail)
        if not compared.is_same and not missing:
            p, q = (1, 1) if blocks[0] == blocks[1] else blocks
            steps = self._chains[0].steps[i : i + p], self._chains[1].steps[j : j + q]
            parameter = self._drawing.transplanted(i, j, here) if (p, q) == (1, 1) else ""
            self.result.pieces.append(
                Piece(*steps, tuple(here[0]), (), (), draws=compared, parameter=parameter)
            )
        drawn = [self._apply(0, list(range(i, i + p)), value) for value in here[0]]
        after_b = [self._apply(1, list(range(j, j + q)), value) for value in here[1][:1]]
        given = [as_like(value, after_b[0]) for value in drawn]
        if any(value is None for value in given):
            self.result.gaps.append(f"field {self._chains[0].field!r}: B cannot take A's draw")
            return None
        return i + p, j + q, (drawn, [value for value in given if value is not None])

    def _missing_draw(
        self, i: int, j: int, blocks: tuple[int, int], here: tuple[list[Value], list[Value]]
    ) -> tuple[int, ...]:
        """Random steps that one side leaves out of a block that is the same without them."""
        found = self._drawing.left_out(range(i, i + blocks[0]), range(j, j + blocks[1]), here)
        side = 0 if blocks[0] > blocks[1] else 1
        for n in found:
            step = (self._chains[side].steps[n],)
            steps_a, steps_b = (step, ()) if side == 0 else ((), step)
            self.result.pieces.append(Piece(steps_a, steps_b, tuple(here[0]), (), ()))
        return found

    def _drawn_alone(
        self, i: int, j: int, here: tuple[list[Value], list[Value]], side: int
    ) -> tuple[int, int, tuple[list[Value], list[Value]]]:
        """One side draws where the other does not: it is left out, and both go on without it."""
        self.result.is_random = True
        step = (self._chains[side].steps[(i, j)[side]],)
        steps_a, steps_b = (step, ()) if side == 0 else ((), step)
        self.result.pieces.append(Piece(steps_a, steps_b, tuple(here[0]), (), ()))
        detail = "only one side draws here"
        self._note(steps_a, steps_b, "other distribution", detail=detail)
        return (i + 1, j, here) if side == 0 else (i, j + 1, here)

    def _random_block(self, side: int, start: int) -> int:
        """How many steps from here on draw, one after the other."""
        steps = range(start, len(self._chains[side].steps))
        return len(list(itertools.takewhile(lambda n: self._is_random(side, n), steps)))

    def _parted(
        self,
        i: int,
        j: int,
        here: tuple[list[Value], list[Value]],
        after_a: list[list[Value]],
        after_b: list[list[Value]],
    ) -> tuple[int, int, tuple[list[Value], list[Value]]] | None:
        """Both part here: find the shortest pieces after which the rest agrees."""
        for p, q in self._pieces(i, j, len(after_a), len(after_b)):
            out_a = after_a[p - 1] if p else here[0]
            out_b = after_b[q - 1] if q else here[1]
            if all_equivalent(out_a, out_b) and (p, q) != (len(after_a), len(after_b)):
                continue
            given = [as_like(x, y) for x, y in zip(out_a, out_b, strict=True)]
            ready = [value for value in given if value is not None]
            if len(ready) < len(given):
                continue
            if not self._is_counterpart(i, j, p, q):
                if not self._agrees_from(i + p, j + q, out_a, ready):
                    continue
            self._add_piece(i, j, p, q, here, (out_a, out_b))
            return i + p, j + q, (out_a, ready)
        p, q = len(after_a), len(after_b)
        out_a = after_a[-1] if after_a else here[0]
        out_b = after_b[-1] if after_b else here[1]
        self._add_piece(i, j, p, q, here, (out_a, out_b))
        return None

    def _pieces(self, i: int, j: int, most_a: int, most_b: int) -> list[tuple[int, int]]:
        """Sizes of pieces as they are tried: like kinds first, then short ones."""
        sizes = itertools.product(
            range(min(most_a, _LONGEST_PIECE) + 1), range(min(most_b, _LONGEST_PIECE) + 1)
        )
        kinds = (self._chains[0].steps[i:], self._chains[1].steps[j:])

        def rank(size: tuple[int, int]) -> tuple[int, int, int]:
            p, q = size
            names = [[step.kind for step in kinds[0][:p]], [step.kind for step in kinds[1][:q]]]
            if names[0] == names[1]:
                return (0, p + q, 0)
            if not p or not q:
                # what one side alone seems to do may only come later, or otherwise, on the other
                later = {step.kind for step in (kinds[1] if p else kinds[0])}
                return (2 if later & set(names[0] + names[1]) else 1, p + q, 1)
            return (1, p + q, 0)

        return sorted((size for size in sizes if size != (0, 0)), key=rank)

    def _is_counterpart(self, i: int, j: int, p: int, q: int) -> bool:
        """Whether a piece is one transform of a known kind on both sides.

        Then it differs by itself, whatever else differs behind it.
        """
        if (p, q) != (1, 1):
            return False
        kinds = self._chains[0].steps[i].kind, self._chains[1].steps[j].kind
        return kinds[0] == kinds[1] and kinds[0] not in _UNKNOWN_KINDS

    def _agrees_from(self, i: int, j: int, given_a: list[Value], given_b: list[Value]) -> bool:
        """Whether the rest of both chains yields the same from here, up to the next draw."""
        after_a = self._outputs(0, i, given_a[:_SOUGHT_ON])
        after_b = self._outputs(1, j, given_b[:_SOUGHT_ON])
        last_a = after_a[-1] if after_a else given_a[:_SOUGHT_ON]
        last_b = after_b[-1] if after_b else given_b[:_SOUGHT_ON]
        ends = (len(self._chains[0].steps), len(self._chains[1].steps))
        if i + len(after_a) == ends[0] and j + len(after_b) == ends[1]:
            return _all_same(last_a, last_b) or ((i, j) == ends and all_equivalent(last_a, last_b))
        if i + len(after_a) == ends[0] or j + len(after_b) == ends[1]:
            return False
        return all_equivalent(last_a, last_b)

    def _add_piece(
        self,
        i: int,
        j: int,
        p: int,
        q: int,
        here: tuple[list[Value], list[Value]],
        outputs: tuple[list[Value], list[Value]],
    ) -> None:
        steps = self._chains[0].steps[i : i + p], self._chains[1].steps[j : j + q]
        parameter = ""
        if (p, q) == (1, 1):
            parameter = self._explaining_parameter(i, j, here, outputs[1])
        piece = Piece(
            *steps,
            tuple(here[0]),
            tuple(outputs[0]),
            tuple(outputs[1]),
            is_end=(i + p, j + q) == (len(self._chains[0].steps), len(self._chains[1].steps)),
            is_swapped=self._is_swapped(i, p, steps, here, outputs[1]),
            parameter=parameter,
        )
        self.result.pieces.append(piece)
        self._note(*steps, "differs", _greatest(*outputs))

    def _explaining_parameter(
        self,
        i: int,
        j: int,
        here: tuple[list[Value], list[Value]],
        wanted: list[Value],
    ) -> str:
        """The parameter of B with which A's step yields what B's does; "" where none does."""
        chain = self._chains[0].number
        for name, value in other_parameters(self._chains[0].steps[i], self._chains[1].steps[j]):
            with contextlib.suppress(IsogradError):  # a value that A's transform does not take
                found = [
                    Value.of(self._sides[0].call("changed", chain, i, x.wired(), {name: value}))
                    for x in here[0]
                ]
                if all_equivalent(found, wanted):
                    return name
        return ""

    def _is_swapped(
        self,
        i: int,
        p: int,
        steps: tuple[tuple[Step, ...], tuple[Step, ...]],
        here: tuple[list[Value], list[Value]],
        wanted: list[Value],
    ) -> bool:
        """Whether A's steps in B's order yield what B yields."""
        kinds_a, kinds_b = ([step.kind for step in one] for one in steps)
        if p < 2 or sorted(kinds_a) != sorted(kinds_b) or kinds_a == kinds_b:
            return False
        left = list(range(p))
        order = []
        for kind in kinds_b:
            chosen = next(n for n in left if kinds_a[n] == kind)
            left.remove(chosen)
            order.append(i + chosen)
        try:
            found = [self._apply(0, order, value) for value in here[0]]
        except IsogradError:  # what A cannot do in that order does not explain B
            return False
        return all_equivalent(found, wanted)


def _kind(values: Sequence[Value]) -> str:
    """The kind of dtype of values: "f" for floats, "" for texts."""
    numbers = values[0].numbers
    return "" if numbers is None else numbers.dtype.kind


def _differs(a: Value, b: Value) -> bool:
    if a.numbers is None or b.numbers is None:
        return a.text != b.text
    return a.numbers.shape != b.numbers.shape or not (a.numbers == b.numbers).all()


def _all_same(a: Sequence[Value], b: Sequence[Value]) -> bool:
    """Whether the values of all samples are equal within the rounding of their dtype."""
    for x, y in zip(a, b, strict=True):
        if x.numbers is None or y.numbers is None:
            if x.text != y.text:
                return False
        elif not array_gap(x.numbers, y.numbers).is_same:
            return False
    return True


def _greatest(a: Sequence[Value], b: Sequence[Value]) -> float | None:
    found = [
        array_gap(x.numbers, y.numbers).greatest
        for x, y in zip(a, b, strict=True)
        if x.numbers is not None and y.numbers is not None
    ]
    return max(found, default=None)

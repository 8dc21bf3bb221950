"""What tells which sample is which: its fields, and before it is drawn a field that is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from isograd.data.compare.side import ChainInfo, Fields, Side, numbers
from isograd.data.marks import Mark, mark
from isograd.errors import IsogradError
from isograd.tensors import TensorValue

Rows = Sequence[tuple[str, Fields]]
#: Samples of which a worker is asked at once, so that none takes too long to answer.
_AT_ONCE = 16


@dataclass(frozen=True)
class Column:
    """The marks of one field in all samples of A and of B.

    steps: how many transforms of each side came before the draw, where the field is drawn;
    is_drawn: whether the marks are of what was drawn, which is another time otherwise.
    """

    name: str
    a: tuple[Mark, ...]
    b: tuple[Mark, ...]
    chains: tuple[ChainInfo, ChainInfo] | None = None
    steps: tuple[int, int] = (0, 0)
    is_drawn: bool = False


@dataclass(frozen=True)
class Marks:
    """What tells the samples of A and B apart, field by field."""

    columns: tuple[Column, ...]

    @property
    def is_sure(self) -> bool:
        """Whether a sample that has no counterpart is another one, and none that was drawn."""
        return not any(column.is_drawn for column in self.columns)

    @property
    def shape(self) -> tuple[int, int]:
        """How many samples A and B have."""
        first = self.columns[0]
        return len(first.a), len(first.b)

    def keys(self, side: int) -> list[bytes]:
        """Per sample of a side, what it shares with samples of equal values alone."""
        parts = [column.b if side else column.a for column in self.columns]
        return [b"".join(one.digest for one in row) for row in zip(*parts, strict=True)]

    def likeness(self) -> NDArray[np.float64] | None:
        """How alike all samples of A are to all of B, from 0 to 1; None where nothing tells."""
        total, weight = np.zeros(self.shape), 0.0
        for column in self.columns:
            sketches = [one.sketch for one in (*column.a, *column.b)]
            known = [one for one in sketches if one is not None]
            sizes = {one.size for one in known}
            if len(known) < len(sketches) or len(sizes) != 1 or sizes == {1}:
                continue
            left, right = np.stack(known[: len(column.a)]), np.stack(known[len(column.a) :])
            total += np.clip(left @ right.T, 0.0, 1.0) * left.shape[1]
            weight += left.shape[1]
        return total / weight if weight else None


def marks_of(
    sides: tuple[Side, Side],
    rows: tuple[Rows, Rows],
    fields: Sequence[tuple[str, str]],
    drawn: tuple[set[str], set[str]],
) -> Marks:
    """The marks of two sides' samples; drawn: the fields of each that are drawn at random."""
    columns = []
    for name_a, name_b in fields:
        is_drawn = name_a in drawn[0] or name_b in drawn[1]
        found = _before_draw(sides, rows, (name_a, name_b)) if is_drawn else None
        if found is None:
            a, b = (
                tuple(mark(fs.get(n, ""), numbers(fs.get(n, ""))) for _, fs in side)
                for side, n in zip(rows, (name_a, name_b), strict=True)
            )
            found = Column(name_a, a, b, is_drawn=is_drawn)
        columns.append(found)
    return _without_drawn(Marks(tuple(columns)))


def confirmed(
    marks: Marks, sides: tuple[Side, Side], positions: tuple[Sequence[int], Sequence[int]]
) -> Marks:
    """The marks, where those before a draw are asked again at some positions of A and B.

    A field whose own code draws before its first listed transform shows here: it is drawn.
    """
    columns = []
    for column in marks.columns:
        if column.chains is not None:
            for number, before in enumerate((column.a, column.b)):
                asked = _asked(sides, column.chains, column.steps, number, positions[number])
                known = [before[n] for n in positions[number]]
                if asked is None or [m.digest for m in asked] != [m.digest for m in known]:
                    column = replace(column, is_drawn=True)
        columns.append(column)
    return _without_drawn(Marks(tuple(columns)))


def _without_drawn(marks: Marks) -> Marks:
    """Only what is not drawn, where that alone tells all samples apart."""
    kept = Marks(tuple(column for column in marks.columns if not column.is_drawn))
    if marks.is_sure or not kept.columns:
        return marks
    is_unique = all(len(set(keys)) == len(keys) for keys in (kept.keys(0), kept.keys(1)))
    return kept if is_unique or any(c.chains is not None for c in kept.columns) else marks


def _before_draw(
    sides: tuple[Side, Side], rows: tuple[Rows, Rows], names: tuple[str, str]
) -> Column | None:
    """The marks of a field before its first random transform; None where that is not known."""
    found = [chain_of(side, name) for side, name in zip(sides, names, strict=True)]
    if found[0] is None or found[1] is None:
        return None
    chains = found[0], found[1]
    if not any(step.is_random for chain in chains for step in chain.steps):
        return None
    steps = _until_draw(chains[0]), _until_draw(chains[1])
    a, b = (_asked(sides, chains, steps, n, range(len(rows[n]))) for n in (0, 1))
    return None if a is None or b is None else Column(names[0], a, b, chains, steps)


def chain_of(side: Side, field: str) -> ChainInfo | None:
    """The transforms of a field, where a side lists them."""
    return next((chain for chain in side.chains if chain.field == field), None)


def draws_by_name(side: Side) -> set[str]:
    """The fields that pass a transform of which its library says that it draws."""
    return {chain.field for chain in side.chains if any(step.is_random for step in chain.steps)}


def _until_draw(chain: ChainInfo) -> int:
    return next((n for n, step in enumerate(chain.steps) if step.is_random), len(chain.steps))


def _asked(
    sides: tuple[Side, Side],
    chains: tuple[ChainInfo, ChainInfo],
    steps: tuple[int, int],
    number: int,
    positions: Sequence[int],
) -> tuple[Mark, ...] | None:
    """Marks from the worker of a side; None where it cannot make them."""
    found = []
    try:
        for start in range(0, len(positions), _AT_ONCE):
            chosen = list(positions[start : start + _AT_ONCE])
            answer = sides[number].call("marks", chains[number].number, steps[number], chosen)
            found += [Mark(bytes.fromhex(one["digest"]), _array(one["sketch"])) for one in answer]
    except IsogradError:  # what cannot be followed tells no sample from another
        return None
    return tuple(found)


def _array(value: TensorValue | NDArray[np.float64] | None) -> NDArray[np.float64] | None:
    if value is None:
        return None
    return np.asarray(value.values if isinstance(value, TensorValue) else value, np.float64)

"""Two pipelines, sample by sample: `compare`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from isograd.data import worker_seeds
from isograd.data.compare import causes, order
from isograd.data.compare.equality import Gap, gap
from isograd.data.compare.identity import Rows, chain_of, confirmed, draws_by_name, marks_of
from isograd.data.compare.pairing import (
    Pairs,
    is_related,
    others_before_draw,
    pair_fields,
    pair_samples,
)
from isograd.data.compare.randomness import compare_draws
from isograd.data.compare.side import Epoch, Fields, Side, numbers
from isograd.data.compare.steps import Walk, WalkResult
from isograd.data.hypotheses.base import Observation, as_hwc
from isograd.data.model import (
    Cause,
    Comparison,
    Difference,
    FieldComparison,
    FirstDifference,
    Order,
    StepComparison,
)
from isograd.data.pipelines.features import features
from isograd.data.pipelines.host import is_pipeline
from isograd.errors import DataError
from isograd.findings import Finding, Fix, Level
from isograd.progress import Progress

#: Samples through which transforms are followed: three to seek on and three to prove on.
_FOLLOWED = 6
#: Samples that are read twice to see which fields are drawn anew.
_READ_TWICE = 12
#: Differing samples that hypotheses get.
_OBSERVED = 24


@dataclass(frozen=True)
class CompareOptions:
    """samples: how many of each side are compared; draws: of each random transform.

    order: how many samples of an epoch are followed for their order; 0 leaves the order out.
    """

    key: str | None = None
    samples: int = 128
    draws: int = 10_000
    epochs: int = 2
    order: int = 4096


def compare(a: Side, b: Side, options: CompareOptions, progress: Progress) -> Comparison:
    """Compare two open sides; A is the reference."""
    progress.stage("reading samples of both")
    rows = (list(a.rows(options.samples)), list(b.rows(options.samples)))
    for side, found in zip((a, b), rows, strict=True):
        if not found:
            raise DataError(
                f"{side.address}: yields no sample", "Look whether its source is there."
            )
    return _Run((a, b), rows, options, progress).result()


class _Run:
    """One comparison under way."""

    def __init__(
        self,
        sides: tuple[Side, Side],
        rows: tuple[Rows, Rows],
        options: CompareOptions,
        progress: Progress,
    ) -> None:
        self._sides, self._rows, self._options = sides, rows, options
        self._progress = progress
        self._fields = pair_fields(rows[0][0][1], rows[1][0][1])
        self._changed = self._changed_fields()
        self._pairs = self._paired()
        self._differences: list[Difference] = []
        self._steps: list[StepComparison] = []
        self._gaps: list[str] = []
        self._first: FirstDifference | None = None
        self._place = _file(sides[1].address)

    def result(self) -> Comparison:
        """All that was found."""
        self._unpaired_fields()
        # before anything else is drawn: to compare draws sets seeds, which shuffles depend on
        which, of_order = self._order()
        walks = self._walks()
        compared = [self._field(a, b, walks) for a, b in self._fields]
        self._other_samples(walks)
        self._others_at_places()
        for difference in (*of_order, *self._workers()):
            self._add(difference)
        fields = tuple(one for one in compared if one is not None)
        if not fields and not self._steps:
            self._gaps.append("no field of A could be compared with one of B")
        return Comparison(
            len(self._pairs.pairs),
            self._pairs.how,
            which,
            fields,
            tuple(self._differences),
            tuple(self._steps),
            self._first,
            tuple(dict.fromkeys(self._gaps)),
        )

    def _workers(self) -> Iterator[Difference]:
        """What the worker processes of one side draw alike, and those of the other do not."""
        self._progress.stage("comparing what worker processes draw")
        drawn = []
        for side in self._sides:
            found, notes = side.worker_draws()
            drawn.append(found)
            self._gaps += notes
        a, b = self._sides
        yield from worker_seeds.differences((a.kind, b.kind), (drawn[0], drawn[1]), self._place)

    def _other_samples(self, walks: dict[str, WalkResult]) -> None:
        """Where no field is explained and nothing of A is in B, they are other samples."""
        fields = [one for one in self._differences if one.field]
        unexplained = {one.field for one in fields if one.cause is None}
        # fields that are drawn, and of which nothing is equal before the draw either
        before = {column.name for column in self._marks.columns if column.chains is not None}
        lost = {n for n, walk in walks.items() if n in before and not walk.rows and not walk.pieces}
        content = {name for name, _ in self._fields if self._is_content(name)}
        if self._pairs.how == "key" or not content <= unexplained | lost:
            return
        if not lost and (not fields or len(fields) < len(self._fields)):
            return
        if is_related(self._marks) or any(one.transform for one in fields):
            return
        self._differences = [one for one in self._differences if not one.field]
        self._first = None
        self._add_others("the samples of B are others than those of A: none has a counterpart")

    def _add_others(self, text: str) -> None:
        fix = Fix("Read the same files and the same shard (rank) in both.", self._place)
        finding = Finding("data.samples", Level.ERROR, text, fix=fix)
        self._add(Difference(finding, Cause("data.samples", False, text)))

    def _others_at_places(self) -> None:
        """Samples at the same place that are others before they are drawn."""
        found, count = self._others, len(self._pairs.pairs) + len(self._others)
        if not found:
            return
        text = f"at {len(found):,} of {count:,} places in the source's order B"
        text += f" has another sample than A, first in {self._rows[0][found[0]][0]}"
        sizes = [side.size for side in self._sides]
        if all(size is not None and size <= self._options.samples for size in sizes):
            self._add_others(text)
        else:
            self._gaps.append(f"{text}; they may stand elsewhere: read more with --samples")

    def _is_content(self, name: str) -> bool:
        """Whether a field of A says which sample it is: more than a few numbers."""
        array = numbers(self._rows[0][0][1][name])
        return array is None or array.size >= 4

    def _unpaired_fields(self) -> None:
        first, second = self._rows[0][0][1], self._rows[1][0][1]
        lonely_a = [name for name in first if name not in {x for x, _ in self._fields}]
        lonely_b = [name for name in second if name not in {y for _, y in self._fields}]
        for names, side, other in ((lonely_a, "A", "B"), (lonely_b, "B", "A")):
            for name in names:
                text = f"field {name!r} of {side} has no counterpart in {other}"
                fix = Fix(f"Yield it in {other}, or leave it out of {side}.", self._place)
                self._add(
                    Difference(
                        Finding("data.field_missing", Level.ERROR, text, fix=fix),
                        Cause("data.field_missing", True, text),
                        name,
                    )
                )

    def _add(self, difference: Difference, sample: str = "") -> None:
        self._differences.append(difference)
        if self._first is None:
            self._first = FirstDifference(sample, difference.field, difference.transform or None)

    def _changed_fields(self) -> tuple[set[str], set[str]]:
        """Per side the fields that are another time otherwise: they are drawn.

        All samples are read again where there is anything to explain: a rare draw is in few.
        """
        is_equal = all(
            self._gap(*names, (n, n)).is_same
            for names in self._fields
            for n in range(min(map(len, self._rows)))
        )
        found: list[set[str]] = []
        for side, rows in zip(self._sides, self._rows, strict=True):
            again = list(side.rows(min(_READ_TWICE if is_equal else len(rows), len(rows))))
            changed = {
                name
                for (_, one), (_, other) in zip(rows, again, strict=False)
                for name in one
                if name in other and not _is_exact(one, other, name)
            }
            found.append(changed)
        return found[0], found[1]

    def _paired(self) -> Pairs:
        """Which sample is which; what is left over is asked again, for it may have been drawn."""
        drawn = [own | draws_by_name(s) for own, s in zip(self._changed, self._sides, strict=True)]
        self._marks = marks_of(self._sides, self._rows, self._fields, (drawn[0], drawn[1]))
        pairs = pair_samples(self._rows, self._options.key, self._marks)
        again = pairs.only_a, pairs.only_b
        if self._options.key is None and any(again) and self._marks.is_sure:
            self._marks = confirmed(self._marks, self._sides, again)
            if not self._marks.is_sure:
                pairs = pair_samples(self._rows, None, self._marks)
        self._others = others_before_draw(pairs, self._marks)
        kept = tuple(pair for n, pair in enumerate(pairs.pairs) if n not in set(self._others))
        return replace(pairs, pairs=kept)

    def _walks(self) -> dict[str, WalkResult]:
        """Follow the transforms of every field that both sides list."""
        pairs = self._pairs.pairs[:_FOLLOWED]
        found: dict[str, WalkResult] = {}
        for name_a, name_b in self._fields:
            chains = chain_of(self._sides[0], name_a), chain_of(self._sides[1], name_b)
            if chains[0] is None or chains[1] is None or not pairs:
                continue
            self._progress.stage(f"following the transforms of {name_a!r}")
            walk = Walk(self._sides, (chains[0], chains[1]), pairs, self._options.draws).run()
            found[name_a] = walk
            self._steps += walk.rows
            self._gaps += walk.gaps
            for piece in walk.pieces:
                sample = self._rows[0][pairs[0][0]][0]
                self._add(causes.of_piece(piece, name_a, self._place), sample)
        return found

    def _field(
        self,
        name_a: str,
        name_b: str,
        walks: dict[str, WalkResult],
    ) -> FieldComparison | None:
        """Compare one field over all pairs; None where it is drawn at random."""
        is_drawn = name_a in self._changed[0], name_b in self._changed[1]
        walk = walks.get(name_a)
        if any(is_drawn) or (walk is not None and walk.is_random):
            self._drawn(name_a, name_b, is_drawn, walk)
            return None
        gaps = [self._gap(name_a, name_b, pair) for pair in self._pairs.pairs]
        unread = [n for n, one in enumerate(gaps) if one.is_unread]
        differing = [n for n, one in enumerate(gaps) if not one.is_same and not one.is_unread]
        if unread:
            sample = self._rows[0][self._pairs.pairs[unread[0]][0]][0]
            self._gaps.append(
                f"field {name_a!r}: neither side can be decoded in {len(unread):,} of "
                f"{len(gaps):,} samples, first in {sample}"
            )
        worst = max(range(len(gaps)), key=lambda n: gaps[n].greatest, default=0)
        if differing and not (walk is not None and walk.pieces):
            self._unexplained(name_a, name_b, differing, gaps, walk)
        elif not differing:
            self._same_values(name_a, name_b)
        return FieldComparison(
            name_a,
            name_b,
            len(gaps) - len(differing) - len(unread),
            len(differing),
            gaps[worst].greatest if gaps else 0.0,
            self._rows[0][self._pairs.pairs[worst][0]][0] if gaps else "",
            gaps[worst].allowed if gaps else 0.0,
            self._dtypes(name_a, name_b),
        )

    def _same_values(self, name_a: str, name_b: str) -> None:
        """Equal numbers in floats of different widths are a difference of their own."""
        dtypes = self._dtypes(name_a, name_b)
        if dtypes[0] == dtypes[1] or not all(name.startswith("float") for name in dtypes):
            return
        text = f"field {name_a!r}: equal values as {dtypes[0]} in A and as {dtypes[1]} in B"
        fix = Fix(f"Cast B to {dtypes[0]} (transforms.TypeCast).", self._place)
        finding = Finding("data.dtype", Level.ERROR, text, fix=fix)
        self._add(Difference(finding, Cause("data.dtype", True, text, *dtypes), name_a))

    def _gap(self, name_a: str, name_b: str, pair: tuple[int, int]) -> Gap:
        first, second = self._rows[0][pair[0]][1], self._rows[1][pair[1]][1]
        if name_a not in first or name_b not in second:
            return Gap(float("inf"), 0.0, is_structural=True)
        return gap(first[name_a], second[name_b])

    def _dtypes(self, name_a: str, name_b: str) -> tuple[str, str]:
        found = []
        for rows, name in zip(self._rows, (name_a, name_b), strict=True):
            value = rows[0][1].get(name)
            found.append(
                str(value.dtype) if isinstance(value, np.ndarray) else type(value).__name__
            )
        return found[0], found[1]

    def _unexplained(
        self,
        name_a: str,
        name_b: str,
        differing: list[int],
        gaps: list[Gap],
        walk: WalkResult | None,
    ) -> None:
        """Ask the hypotheses about a field that differs, from its values alone."""
        chosen = differing[:_OBSERVED]
        observations = []
        for n in chosen:
            one = self._observation(name_a, name_b, self._pairs.pairs[n])
            if one is not None:
                observations.append(one)
        greatest = max(gaps[n].greatest for n in differing)
        sample = self._rows[0][self._pairs.pairs[chosen[0]][0]][0]
        found = causes.of_field(observations, name_a, name_b, self._place, greatest)
        self._add(found, sample)
        if walk is not None and walk.is_whole and found.cause is None:
            self._gaps.append(
                f"field {name_a!r}: what its transforms yield one by one is equal, what the "
                "pipelines yield is not"
            )

    def _observation(self, name_a: str, name_b: str, pair: tuple[int, int]) -> Observation | None:
        fields_a, fields_b = self._rows[0][pair[0]][1], self._rows[1][pair[1]][1]
        first, second = numbers(fields_a[name_a]), numbers(fields_b[name_b])
        if first is None or second is None:
            return None
        return Observation(first, second, image_shape=_image_shape(fields_a))

    def _drawn(
        self, name_a: str, name_b: str, is_drawn: tuple[bool, bool], walk: WalkResult | None
    ) -> None:
        """A field that is drawn at random on a side: by its transforms, else by what comes out."""
        if walk is not None and (walk.is_whole or walk.pieces):
            return
        if is_drawn[0] != is_drawn[1]:
            who, other = ("A", "B") if is_drawn[0] else ("B", "A")
            text = f"{who} draws field {name_a!r} at random and {other} does not"
            self._add(
                Difference(
                    Finding(
                        "data.random_parameters",
                        Level.ERROR,
                        text,
                        fix=Fix(f"Add the random transform to {other}.", self._place),
                    ),
                    Cause("data.random_parameters", False, text),
                    name_a,
                )
            )
            return
        tables = [
            [features(v) for _, f in rows if (v := numbers(f[name])) is not None]
            for rows, name in zip(self._rows, (name_a, name_b), strict=True)
        ]
        if not all(tables) or len({len(row) for table in tables for row in table}) != 1:
            self._gaps.append(f"field {name_a!r} is drawn at random and was not compared")
            return
        found = compare_draws(np.stack(tables[0]), np.stack(tables[1]))
        detail = f"{found.draws[0]} samples of each, distance {found.distance:.3f}, allowed "
        detail += f"{found.allowed:.3f}"
        outcome = "same distribution" if found.is_same else "other distribution"
        self._steps.append(StepComparison(name_a, "the whole pipeline", "", outcome, None, detail))
        if not found.is_same:
            text = f"field {name_a!r} is drawn from other distributions ({detail})"
            finding = Finding(causes.UNKNOWN, Level.ERROR, text, advice="List the transforms.")
            self._add(Difference(finding, None, name_a))

    def _order(self) -> tuple[Order, list[Difference]]:
        """Compare the order of some epochs, in the positions of A."""
        if not self._options.order:
            return Order.SAME, []
        self._progress.stage("comparing the order of epochs")
        epochs: list[list[Epoch] | None] = []
        for side in self._sides:
            found, notes = side.epochs(self._options.epochs, self._options.order)
            epochs.append(found)
            self._gaps += notes
        first, second = epochs
        if not first or not second:
            return self._unknown_order()
        moved = _moved(second, self._pairs, len(self._rows[0]))
        is_whole = all(len(one[0].ids) < self._options.order for one in (first, second))
        if self._pairs.how != "order":
            is_whole = is_whole and len(second[0].ids) <= len(self._rows[1])
        sequences = (
            order.Sequences(first, first, self._spare(0, first)),
            order.Sequences(moved, second, self._spare(1, second)),
        )
        return order.order_of(*sequences), order.differences(*sequences, is_whole)

    def _spare(self, number: int, epochs: Sequence[Epoch]) -> int:
        """How many samples of a side's source are in no batch, or were not read in its order."""
        side = self._sides[number]
        if side.size is None or not side.drop_last:
            return 0
        seen = min(len(epochs[0].ids), len(self._rows[number]))
        return max(0, min(side.size - seen, max(epochs[0].sizes, default=1) - 1))

    def _unknown_order(self) -> tuple[Order, list[Difference]]:
        only = len(self._pairs.only_a) + len(self._pairs.only_b)
        if only and len(self._rows[0]) != len(self._rows[1]):
            text = f"A yields {len(self._rows[0]):,} samples and B {len(self._rows[1]):,}"
            finding = Finding("data.samples", Level.ERROR, text, advice="Compare their sources.")
            return Order.OTHER, [Difference(finding, Cause("data.samples", True, text))]
        return Order.SAME if self._pairs.how == "order" and not only else Order.OTHER, []


def _file(address: str) -> str:
    return Path(address.rpartition(":")[0]).name if is_pipeline(address) else address


def _is_exact(one: Fields, other: Fields, name: str) -> bool:
    first, second = one[name], other[name]
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        return first.shape == second.shape and np.array_equal(
            first, second, equal_nan=first.dtype.kind == "f"
        )
    return type(first) is type(second) and first == second


def _image_shape(fields: Fields) -> tuple[int, int] | None:
    """Height and width of the first picture among the fields."""
    for value in fields.values():
        array = numbers(value)
        if array is not None and array.ndim == 3:
            picture = as_hwc(array)
            if picture is not None:
                return picture.shape[0], picture.shape[1]
    return None


def _moved(epochs: Sequence[Epoch], pairs: Pairs, count_a: int) -> list[Epoch]:
    """B's epochs with positions in A's order; samples that A has not come after all of A's."""
    if pairs.how == "order":
        return list(epochs)
    known = {b: a for a, b in (*pairs.pairs, *pairs.unsure)}
    fresh = {b: count_a + n for n, b in enumerate(pairs.only_b)}
    return [
        Epoch(tuple(known.get(n, fresh.get(n, -1)) for n in epoch.ids), epoch.sizes)
        for epoch in epochs
    ]

"""What a comparison of two sets of tensors answers: frozen values, no input or output."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from isograd.compare.files.differences import TensorDifference
from isograd.compare.files.verdicts import DIVERGENT, OPEN, TensorVerdict
from isograd.model import Verdict
from isograd.report.base import Report

Shape = tuple[int, ...]
#: What stands before the names of a rank's tensors.
_RANK = re.compile(r"(?:(?<=/)|^)rank(\d{1,9})/")


@dataclass(frozen=True)
class TensorComparison:
    """One pair, or one tensor without a partner (then a name is empty).

    how: on what evidence they were paired: "name", "convention", "structure" or "map".
    order: place in execution order, or in the order of the reference's file.
    allowed: what relative_error was held against where an envelope was given.
    detail: why the verdict is what it is, where the numbers do not say it.
    """

    reference: str
    other: str
    verdict: TensorVerdict
    order: int
    how: str = ""
    dtypes: tuple[str, str] = ("", "")
    shapes: tuple[Shape, Shape] = ((), ())
    size_bytes: int = 0
    difference: TensorDifference | None = None
    allowed: float | None = None
    trainable: bool | None = None
    detail: str = ""

    @property
    def name(self) -> str:
        """What a person calls it: the reference's name, or the other's where there is none."""
        return self.reference or self.other

    @property
    def rank(self) -> int | None:
        """The rank of a run that it belongs to; None outside a folder of ranks."""
        found = _RANK.search(self.other or self.reference)
        return int(found[1]) if found else None

    @property
    def severity(self) -> tuple[int, float]:
        """How bad it is, for the order of a report: the greater the worse."""
        rank = list(TensorVerdict).index(self.verdict)
        if self.verdict in DIVERGENT:
            rank += 10
        return rank, 0.0 if self.difference is None else self.difference.relative_error


@dataclass(frozen=True)
class RankSummary:
    """What was found in one rank; worst: greatest relative error of its pairs."""

    rank: int
    counts: Mapping[TensorVerdict, int]
    worst: float
    first_differing: str | None

    @property
    def identical(self) -> int:
        """Pairs that are equal in every element."""
        return self.counts.get(TensorVerdict.IDENTICAL, 0)

    @property
    def close(self) -> int:
        """Pairs within tolerance."""
        return self.counts.get(TensorVerdict.CLOSE, 0)

    @property
    def differing(self) -> int:
        """Pairs that differ, in their values or shapes."""
        return sum(self.counts.get(verdict, 0) for verdict in DIVERGENT)

    @property
    def open(self) -> int:
        """Tensors without a partner, and those that could not be compared."""
        return sum(self.counts.get(verdict, 0) for verdict in OPEN)


@dataclass(frozen=True)
class FilesReport(Report):
    """The whole answer of `isograd compare` on two sets of tensors.

    comparisons stand in execution order where a side knows it, else in the reference's order.
    alone_by_convention: tensors that only one framework keeps, for example num_batches_tracked.
    set_aside: tensors beside the network, such as the states of an optimizer, not compared.
    is_consecutive: whether the two are states of one training, so that a change is expected.
    kernels: what measured, "numba" or "numpy".
    between: of each run, its ranks compared with its lowest, where that was asked for.
    """

    reference: str
    other: str
    comparisons: tuple[TensorComparison, ...]
    alone_by_convention: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    elapsed_s: float = 0.0
    size_bytes: int = 0
    resumed: int = 0
    is_consecutive: bool = False
    knows_order: bool = False
    kernels: str = "numpy"
    between: tuple[FilesReport, ...] = ()
    set_aside: tuple[str, ...] = ()

    def to_data(self) -> dict[str, Any]:
        """What `--json` writes, as plain values."""
        return json.loads(self.to_json())  # type: ignore[no-any-return]

    def to_json(self) -> str:
        """What `--json` writes; it is written tensor by tensor, in little memory."""
        from isograd.compare.data import render_json

        return render_json(self)

    @property
    def verdict(self) -> Verdict:
        """Equivalent only where everything was compared and nothing differs."""
        verdicts = {found.verdict for found in self.comparisons}
        if verdicts & DIVERGENT:
            return Verdict.DIVERGENT
        is_compared = any(found.difference is not None for found in self.comparisons)
        return Verdict.INCOMPLETE if verdicts & OPEN or not is_compared else Verdict.EQUIVALENT

    @property
    def first_differing(self) -> TensorComparison | None:
        """The first in order that differs."""
        return next((found for found in self.comparisons if found.verdict in DIVERGENT), None)

    @property
    def last_agreeing(self) -> TensorComparison | None:
        """The last in order, before the first that differs, that agrees."""
        last = None
        for found in self.comparisons:
            if found.verdict in DIVERGENT:
                break
            if found.difference is not None:
                last = found
        return last

    @property
    def unchanged(self) -> tuple[TensorComparison, ...]:
        """Pairs that are equal in every element; between two steps these were not trained."""
        return tuple(
            found for found in self.comparisons if found.verdict is TensorVerdict.IDENTICAL
        )

    @property
    def ranks(self) -> tuple[RankSummary, ...]:
        """The answer for each rank; nothing where the sets are none of ranks."""
        by_rank: dict[int, list[TensorComparison]] = {}
        for found in self.comparisons:
            if found.rank is not None:
                by_rank.setdefault(found.rank, []).append(found)
        return tuple(_summary(rank, by_rank[rank]) for rank in sorted(by_rank))

    def count(self, verdict: TensorVerdict) -> int:
        """How many have this verdict."""
        return sum(found.verdict is verdict for found in self.comparisons)

    @property
    def needs_action(self) -> bool:
        """Whether a person must act on it: the exit status 1."""
        if any(report.needs_action for report in self.between):
            return True
        if not self.is_consecutive:
            return self.verdict is not Verdict.EQUIVALENT
        return any(_needs_action_between_steps(found) for found in self.comparisons)


def _summary(rank: int, comparisons: Sequence[TensorComparison]) -> RankSummary:
    errors = [found.difference.relative_error for found in comparisons if found.difference]
    first = next((found for found in comparisons if found.verdict in DIVERGENT), None)
    return RankSummary(
        rank,
        Counter(found.verdict for found in comparisons),
        max(errors, default=0.0),
        None if first is None else first.name,
    )


def _needs_action_between_steps(found: TensorComparison) -> bool:
    if found.verdict in OPEN or found.verdict is TensorVerdict.SHAPE:
        return True
    difference = found.difference
    if difference is None:
        return True
    if difference.is_identical and found.trainable is True:
        return True
    return bool(difference.nan_other or difference.infinite_other)

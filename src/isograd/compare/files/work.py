"""What one thread or one Dask worker does: whole pairs in batches, or segments of a large pair."""

from __future__ import annotations

import functools
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from isograd.checkpoints.base import TensorInfo, TensorSource
from isograd.compare.files.differences import TensorDifference, compare_operands
from isograd.compare.files.model import TensorComparison
from isograd.compare.files.operands import Operand, drop_pages, operand
from isograd.compare.files.pairing import NamePair, is_one_dimensional_kernel
from isograd.compare.files.segments import Method, Part, measure_segment, recount_segment
from isograd.compare.files.tolerance import Tolerance, tolerance_for
from isograd.compare.files.verdicts import TensorVerdict
from isograd.errors import IsogradError

#: What may go wrong with one pair without stopping the others.
FAILURES = (IsogradError, ValueError, OSError)


#: Held by the thread of this process that compares small pairs.
_ALONE = threading.Lock()


@dataclass(frozen=True)
class Job:
    """A pair with its place in order."""

    pair: NamePair
    order: int
    reference: TensorInfo
    other: TensorInfo

    @property
    def size_bytes(self) -> int:
        """Of both tensors."""
        return self.reference.size_bytes + self.other.size_bytes

    def comparison(self) -> TensorComparison:
        """What is known of the pair before it is read."""
        mine, its = self.reference, self.other
        found = TensorComparison(
            reference=mine.name,
            other=its.name,
            verdict=TensorVerdict.FAILED,
            order=self.order,
            how=self.pair.how,
            dtypes=(mine.dtype, its.dtype),
            shapes=(mine.shape, its.shape),
            size_bytes=self.size_bytes,
            trainable=mine.trainable if mine.trainable is not None else its.trainable,
        )
        if mine.shape != its.shape and not is_one_dimensional_kernel(mine, its):
            detail = f"shapes {list(mine.shape)} and {list(its.shape)}"
            return replace(found, verdict=TensorVerdict.SHAPE, detail=detail)
        return found


@dataclass(frozen=True)
class Rules:
    """What decides about a pair, and how it is measured."""

    tolerance: Tolerance | None = None
    envelope: Mapping[str, float] = field(default_factory=dict)
    is_counting: bool = True
    is_compiled: bool = False

    def tolerance_of(self, job: Job) -> Tolerance:
        """What an element of a pair may differ by."""
        return self.tolerance or tolerance_for(job.reference.dtype, job.other.dtype)

    def judged(self, found: TensorComparison, difference: TensorDifference) -> TensorComparison:
        """The pair with its verdict."""
        allowed = self.envelope.get(found.reference, self.envelope.get("*"))
        if difference.is_identical:
            verdict = TensorVerdict.IDENTICAL
        elif allowed is not None:
            is_within = difference.relative_error <= allowed and not difference.pattern_mismatches
            verdict = TensorVerdict.CLOSE if is_within else TensorVerdict.DIFFERS
        else:
            verdict = TensorVerdict.DIFFERS if difference.outside else TensorVerdict.CLOSE
        details = []
        if difference.pattern_mismatches:
            count = difference.pattern_mismatches
            details.append(f"NaN or infinities disagree in {count:,} elements")
        if found.dtypes[0] != found.dtypes[1]:
            details.append(f"dtypes {found.dtypes[0]} and {found.dtypes[1]}")
        detail = "; ".join(details)
        return replace(
            found, verdict=verdict, difference=difference, allowed=allowed, detail=detail
        )


class Worker:
    """Both sources and the rules; travels to another process by the sources' addresses.

    address: what opens both sources again, with a word that changes from run to run.
    """

    def __init__(
        self,
        reference: TensorSource,
        other: TensorSource,
        rules: Rules,
        address: tuple[str, str, str] | None = None,
    ) -> None:
        self._reference = reference
        self._other = other
        self.rules = rules
        self._address = address

    def __reduce__(self) -> tuple[Any, ...]:
        if self._address is None:
            raise TypeError("these sources have no address")
        return _reopened, (self._address, self.rules)

    def operands(self, job: Job) -> tuple[Operand, Operand]:
        """Both tensors as they lie in their files; ValueError where one has changed."""
        first = self._reference.stored(job.reference.name)
        second = self._other.stored(job.other.name)
        for raw, info in ((first, job.reference), (second, job.other)):
            if raw.bits.shape != info.shape or raw.dtype != info.dtype:
                raise ValueError(f"{info.name} is not what it was when the comparison began")
        return operand(first), operand(second)

    def batch(self, jobs: Sequence[Job]) -> list[TensorComparison]:
        """Compare whole pairs, one after the other."""
        return [self._whole(job) for job in jobs]

    def batch_alone(self, jobs: Sequence[Job]) -> list[TensorComparison]:
        """Compare small pairs while no other thread does: they would only wait for each other."""
        with _ALONE:
            return self.batch(jobs)

    def _whole(self, job: Job) -> TensorComparison:
        found = job.comparison()
        if found.verdict is TensorVerdict.SHAPE:
            return found
        try:
            first, second = self.operands(job)
            difference = compare_operands(
                first,
                second,
                self.rules.tolerance_of(job),
                is_counting=self.rules.is_counting,
                is_compiled=self.rules.is_compiled,
            )
        except FAILURES as error:
            return replace(found, detail=str(error))
        drop_pages(first.bits)
        drop_pages(second.bits)
        return self.rules.judged(found, difference)

    def parts(self, job: Job, method: Method, spans: Sequence[tuple[int, int]]) -> list[Part]:
        """Measure some segments of a pair."""
        first, second = self.operands(job)
        found = []
        for start, stop in spans:
            found.append(measure_segment(first, second, start, stop, method))
            drop_pages(first.bits[start:stop])
            drop_pages(second.bits[start:stop])
        return found

    def recount(
        self, job: Job, method: Method, spans: Sequence[tuple[int, int]], marks: Sequence[bytes]
    ) -> int:
        """Count the marked blocks of some segments of a pair."""
        first, second = self.operands(job)
        outside = 0
        for (start, stop), marked in zip(spans, marks, strict=True):
            outside += recount_segment(first, second, start, stop, method, marked)
            drop_pages(first.bits[start:stop])
            drop_pages(second.bits[start:stop])
        return outside


@functools.lru_cache(maxsize=4)
def _sources(address: tuple[str, str, str]) -> tuple[TensorSource, TensorSource]:
    from isograd.checkpoints.open import open_source

    return open_source(address[0]), open_source(address[1])


def _reopened(address: tuple[str, str, str], rules: Rules) -> Worker:
    return Worker(*_sources(address), rules, address)

"""Compares two sets of tensors pair by pair, on all cores, in bounded memory."""

from __future__ import annotations

import fnmatch
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from isograd.checkpoints.base import TensorInfo, TensorSource
from isograd.compare.files.differences import TensorDifference, compare_tensors
from isograd.compare.files.journal import Journal
from isograd.compare.files.kernels import kernels
from isograd.compare.files.model import FilesReport, TensorComparison, TensorVerdict
from isograd.compare.files.pairing import (
    NamePair,
    NamePairing,
    is_one_dimensional_kernel,
    pair_names,
)
from isograd.compare.files.tolerance import Tolerance
from isograd.errors import IsogradError, UsageError

#: Pairs that wait for a free thread, per thread; more would only hold memory.
_QUEUE_PER_THREAD = 4


class CompareProgress(Protocol):
    """A listener to a comparison; its methods return at once and never raise."""

    def advance(self, done: int, total: int, done_bytes: int, total_bytes: int) -> None:
        """`done` of `total` pairs are compared."""


@dataclass(frozen=True)
class CompareOptions:
    """How two sets are compared.

    tolerance: None for that of the dtypes; envelope: relative Frobenius error by name, `*` for the
    rest, which then decides instead of the tolerance.
    only, ignore: patterns of names, as in a shell.
    """

    tolerance: Tolerance | None = None
    envelope: Mapping[str, float] = field(default_factory=dict)
    renames: Mapping[str, str] = field(default_factory=dict)
    only: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    threads: int = 0
    journal: Path | None = None
    is_steps: bool = False


@dataclass(frozen=True)
class _Job:
    pair: NamePair
    order: int
    reference: TensorInfo
    other: TensorInfo


def compare_sources(
    reference: TensorSource,
    other: TensorSource,
    options: CompareOptions | None = None,
    progress: CompareProgress | None = None,
) -> FilesReport:
    """Compare all tensors of two sources; raises UsageError where there is nothing to compare."""
    options = options or CompareOptions()
    started = time.monotonic()
    infos = _chosen(reference, options)
    other_infos = _chosen(other, options)
    if not infos or not other_infos:
        side = reference if not infos else other
        raise UsageError(
            f"{side.path}: holds no tensor to compare", "Check the path, --only and --ignore."
        )
    pairing = pair_names(infos, other_infos, _relevant(options.renames, infos, other_infos))
    if not pairing.pairs:
        raise UsageError(
            f"no tensor of {reference.path} has a partner in {other.path}",
            "Compare sets that belong together, or say with --map FILE which tensor is which.",
        )
    places, knows_order = _places(infos, other_infos, pairing)
    jobs = _jobs(pairing, infos, other_infos, places)
    total = sum(job.reference.size_bytes + job.other.size_bytes for job in jobs)
    journal = _journal(options, reference, other)
    try:
        done = dict(journal.done) if journal else {}
        compare = _comparer(reference, other, options)
        found = list(_run(jobs, compare, options, journal, done, progress, total))
    finally:
        if journal:
            journal.close()
    found += _alone(pairing, infos, other_infos, places)
    found.sort(key=lambda item: item.order)
    found = [replace(item, order=place) for place, item in enumerate(found)]
    return FilesReport(
        reference=str(reference.path),
        other=str(other.path),
        comparisons=tuple(found),
        alone_by_convention=pairing.alone_by_convention,
        notes=pairing.notes,
        elapsed_s=time.monotonic() - started,
        size_bytes=total,
        resumed=len(done),
        is_steps=options.is_steps,
        knows_order=knows_order,
    )


def _chosen(source: TensorSource, options: CompareOptions) -> list[TensorInfo]:
    infos = [source.info(name) for name in source.names()]
    if options.only:
        infos = [info for info in infos if _matches(info.name, options.only)]
    return [info for info in infos if not _matches(info.name, options.ignore)]


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _relevant(
    renames: Mapping[str, str], infos: Sequence[TensorInfo], other: Sequence[TensorInfo]
) -> Mapping[str, str]:
    """The map; read backwards where the first set has none of its names but the second has."""
    mine, its = {info.name for info in infos}, {info.name for info in other}
    if renames and not mine & set(renames) and its & set(renames):
        return {partner: name for name, partner in renames.items()}
    return renames


def _places(
    infos: Sequence[TensorInfo], other: Sequence[TensorInfo], pairing: NamePairing
) -> tuple[dict[tuple[str, str], int], bool]:
    """Where each tensor stands in order, by ("reference" or "other", name)."""
    knows = all(info.order is not None for info in infos)
    known = sorted(infos, key=lambda info: info.order or 0) if knows else infos
    places = {("reference", info.name): 2 * place for place, info in enumerate(known)}
    back = {pair.other: pair.reference for pair in pairing.pairs}
    last = -1
    orders = all(info.order is not None for info in other)
    for info in sorted(other, key=lambda info: info.order or 0) if orders else other:
        if info.name in back:
            last = max(last, places["reference", back[info.name]])
        else:
            places["other", info.name] = last + 1
    return places, knows


def _jobs(
    pairing: NamePairing,
    infos: Sequence[TensorInfo],
    other: Sequence[TensorInfo],
    places: Mapping[tuple[str, str], int],
) -> list[_Job]:
    mine, its = {info.name: info for info in infos}, {info.name: info for info in other}
    jobs = [
        _Job(pair, places["reference", pair.reference], mine[pair.reference], its[pair.other])
        for pair in pairing.pairs
    ]
    return sorted(jobs, key=lambda job: job.order)


def _alone(
    pairing: NamePairing,
    infos: Sequence[TensorInfo],
    other: Sequence[TensorInfo],
    places: Mapping[tuple[str, str], int],
) -> list[TensorComparison]:
    mine, its = {info.name: info for info in infos}, {info.name: info for info in other}
    found = [
        _missing(mine[name], places["reference", name], is_reference=True)
        for name in pairing.only_reference
    ]
    found += [
        _missing(its[name], places["other", name], is_reference=False)
        for name in pairing.only_other
    ]
    return found


def _missing(info: TensorInfo, order: int, *, is_reference: bool) -> TensorComparison:
    side = "second" if is_reference else "first"
    return TensorComparison(
        reference=info.name if is_reference else "",
        other="" if is_reference else info.name,
        verdict=TensorVerdict.MISSING,
        order=order,
        dtypes=(info.dtype, "") if is_reference else ("", info.dtype),
        shapes=(info.shape, ()) if is_reference else ((), info.shape),
        trainable=info.trainable,
        detail=f"has no partner in the {side} set",
    )


def _journal(
    options: CompareOptions, reference: TensorSource, other: TensorSource
) -> Journal | None:
    if options.journal is None:
        return None
    tolerance = options.tolerance
    header: dict[str, Any] = {
        "sets": [_fingerprint(reference.path), _fingerprint(other.path)],
        "tolerance": None
        if tolerance is None
        else [tolerance.relative, tolerance.scaled, tolerance.absolute],
        "envelope": dict(options.envelope),
    }
    return Journal(options.journal, header)


def _fingerprint(path: Path) -> list[Any]:
    """What tells a changed set from the same: of a folder, of all its files together."""
    try:
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        stats = [file.stat() for file in files if file.is_file()]
    except OSError:
        stats = []
    newest = max((stat.st_mtime_ns for stat in stats), default=0)
    return [str(path.resolve()), len(stats), sum(stat.st_size for stat in stats), newest]


Compare = Callable[[_Job], TensorComparison]


def _run(
    jobs: Sequence[_Job],
    compare: Compare,
    options: CompareOptions,
    journal: Journal | None,
    done: Mapping[tuple[str, str], TensorComparison],
    progress: CompareProgress | None,
    total_bytes: int,
) -> Iterator[TensorComparison]:
    threads = options.threads or os.cpu_count() or 1
    kernels()  # compiled once, before the threads ask for them
    finished, finished_bytes = 0, 0
    with ThreadPoolExecutor(threads, thread_name_prefix="isograd-compare") as pool:
        for found in _in_turn(pool, jobs, compare, done, threads):
            is_new = (found.reference, found.other) not in done
            if journal and is_new and found.verdict is not TensorVerdict.FAILED:
                journal.add(found)
            finished += 1
            finished_bytes += found.size_bytes
            if progress:
                progress.advance(finished, len(jobs), finished_bytes, total_bytes)
            yield found


def _in_turn(
    pool: ThreadPoolExecutor,
    jobs: Sequence[_Job],
    compare: Compare,
    done: Mapping[tuple[str, str], TensorComparison],
    threads: int,
) -> Iterator[TensorComparison]:
    """Results as they come; never more pairs in flight than the threads can take up."""
    waiting: set[Future[TensorComparison]] = set()
    for job in jobs:
        before = done.get((job.pair.reference, job.pair.other))
        if before is not None:
            yield replace(before, order=job.order)
            continue
        waiting.add(pool.submit(compare, job))
        if len(waiting) >= _QUEUE_PER_THREAD * threads:
            ready, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in ready)
    for future in wait(waiting).done:
        yield future.result()


def _comparer(reference: TensorSource, other: TensorSource, options: CompareOptions) -> Compare:
    def compare(job: _Job) -> TensorComparison:
        mine, its = job.reference, job.other
        found = TensorComparison(
            reference=mine.name,
            other=its.name,
            verdict=TensorVerdict.FAILED,
            order=job.order,
            how=job.pair.how,
            dtypes=(mine.dtype, its.dtype),
            shapes=(mine.shape, its.shape),
            size_bytes=mine.size_bytes + its.size_bytes,
            trainable=mine.trainable if mine.trainable is not None else its.trainable,
        )
        is_kernel = is_one_dimensional_kernel(mine, its)
        if mine.shape != its.shape and not is_kernel:
            detail = f"shapes {list(mine.shape)} and {list(its.shape)}"
            return replace(found, verdict=TensorVerdict.SHAPE, detail=detail)
        try:
            first, second = reference.read(mine.name), other.read(its.name)
            if is_kernel:
                second = replace(second, values=second.values.reshape(first.shape))
            difference = compare_tensors(first, second, options.tolerance)
        except (IsogradError, ValueError, OSError) as error:
            return replace(found, detail=str(error))
        return _judged(found, difference, options.envelope)

    return compare


def _judged(
    found: TensorComparison, difference: TensorDifference, envelope: Mapping[str, float]
) -> TensorComparison:
    allowed = envelope.get(found.reference, envelope.get("*"))
    if difference.is_identical:
        verdict = TensorVerdict.IDENTICAL
    elif allowed is not None:
        is_within = difference.relative_error <= allowed and not difference.pattern_mismatches
        verdict = TensorVerdict.CLOSE if is_within else TensorVerdict.DIFFERS
    else:
        verdict = TensorVerdict.DIFFERS if difference.outside else TensorVerdict.CLOSE
    detail = ""
    if difference.pattern_mismatches:
        detail = f"NaN or infinities disagree in {difference.pattern_mismatches:,} elements"
    if found.dtypes[0] != found.dtypes[1]:
        detail += f"{'; ' if detail else ''}dtypes {found.dtypes[0]} and {found.dtypes[1]}"
    return replace(found, verdict=verdict, difference=difference, allowed=allowed, detail=detail)

"""Compares two sets of tensors pair by pair, on all cores, in bounded memory."""

from __future__ import annotations

import fnmatch
import os
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from isograd.checkpoints.base import TensorInfo, TensorSource
from isograd.checkpoints.parts import with_parts
from isograd.checkpoints.remote import is_url
from isograd.collector import with_present_objects_left_alone
from isograd.compare.files.consecutive import NOTE, are_states_of_one_training
from isograd.compare.files.journal import Journal
from isograd.compare.files.kernels import COMPILED_FROM_BYTES, is_compiled_there
from isograd.compare.files.model import FilesReport, TensorComparison
from isograd.compare.files.options import CompareOptions
from isograd.compare.files.pairing import NamePairing, pair_names, pair_ranks
from isograd.compare.files.schedule import compare_jobs
from isograd.compare.files.verdicts import TensorVerdict
from isograd.compare.files.work import Job, Rules, Worker
from isograd.engine import executor
from isograd.errors import UsageError
from isograd.progress import Progress


def compare_sources(
    reference: TensorSource,
    other: TensorSource,
    options: CompareOptions | None = None,
    progress: Progress | None = None,
) -> FilesReport:
    """Compare all tensors of two sources; raises UsageError where there is nothing to compare."""
    options = options or CompareOptions()
    infos, beside = _chosen(reference, options)
    other_infos, also_beside = _chosen(other, options)
    if not infos or not other_infos:
        side = reference if not infos else other
        raise UsageError(
            f"{side.path}: holds no tensor to compare", "Check the path, --only and --ignore."
        )
    notes: tuple[str, ...] = ()
    if options.is_consecutive is None and are_states_of_one_training(reference, other):
        options, notes = replace(options, is_consecutive=True), (NOTE,)
    pairing = pair_names(infos, other_infos, _relevant(options.renames, infos, other_infos))
    if not pairing.pairs:
        raise UsageError(
            f"no tensor of {reference.path} has a partner in {other.path} by name or structure",
            "Compare sets that belong together, or say with --map FILE which tensor is which.",
        )
    report = _compared((reference, other), (infos, other_infos), pairing, options, progress)
    aside = tuple(dict.fromkeys((*beside, *also_beside)))
    return replace(report, notes=(*notes, *report.notes), set_aside=aside)


def compare_ranks(
    source: TensorSource,
    options: CompareOptions | None = None,
    progress: Progress | None = None,
) -> FilesReport:
    """Compare every rank of one run with its lowest; UsageError where there are not two."""
    options = options or CompareOptions()
    infos, beside = _chosen(source, options)
    pairing = pair_ranks(infos)
    report = _compared((source, source), (infos, infos), pairing, options, progress)
    return replace(report, set_aside=tuple(beside))


def _compared(
    sources: tuple[TensorSource, TensorSource],
    infos: tuple[Sequence[TensorInfo], Sequence[TensorInfo]],
    pairing: NamePairing,
    options: CompareOptions,
    progress: Progress | None,
) -> FilesReport:
    started = time.monotonic()
    places, knows_order = _places(*infos, pairing)
    jobs = _jobs(pairing, *infos, places)
    total = sum(job.size_bytes for job in jobs)
    rules = _rules(options, total)
    journal = _journal(options, rules, *sources)
    try:
        done = dict(journal.done) if journal else {}
        worker = Worker(*sources, rules, _address(*sources, options))
        with with_present_objects_left_alone():
            found = list(_run(jobs, worker, options, journal, done, progress))
    finally:
        if journal:
            journal.close()
    found += _alone(pairing, *infos, places)
    found += _unread(*sources, options, found)
    found.sort(key=lambda item: item.order)
    found = [replace(item, order=place) for place, item in enumerate(found)]
    return FilesReport(
        reference=str(sources[0].path),
        other=str(sources[1].path),
        comparisons=tuple(found),
        alone_by_convention=pairing.alone_by_convention,
        notes=pairing.notes,
        elapsed_s=time.monotonic() - started,
        size_bytes=total,
        resumed=len(done),
        is_consecutive=bool(options.is_consecutive),
        knows_order=knows_order,
        kernels="numba" if rules.is_compiled else "numpy",
    )


def _chosen(source: TensorSource, options: CompareOptions) -> tuple[list[TensorInfo], list[str]]:
    """The tensors to compare, and the names of those beside the network that are set aside."""
    infos = with_parts(source.info(name) for name in source.names())
    infos = [info for info in infos if not _matches(info.name, options.ignore)]
    if options.only:
        return [info for info in infos if _matches(info.name, options.only)], []
    if options.with_states:
        return infos, []
    beside = [info.name for info in infos if info.part]
    return [info for info in infos if not info.part], beside


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
) -> list[Job]:
    mine, its = {info.name: info for info in infos}, {info.name: info for info in other}
    jobs = [
        Job(pair, places["reference", pair.reference], mine[pair.reference], its[pair.other])
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
    options: CompareOptions, rules: Rules, reference: TensorSource, other: TensorSource
) -> Journal | None:
    if options.journal is None:
        return None
    tolerance = options.tolerance
    header: dict[str, Any] = {
        "sets": [
            _fingerprint(source.path, address)
            for source, address in zip(
                (reference, other), options.addresses or ("", ""), strict=True
            )
        ],
        "tolerance": None
        if tolerance is None
        else [tolerance.relative, tolerance.scaled, tolerance.absolute],
        "envelope": dict(options.envelope),
        "counts": rules.is_counting,
        "compiled": rules.is_compiled,
    }
    return Journal(options.journal, header)


def _fingerprint(path: Path, address: str) -> list[Any]:
    """What tells a changed set from the same: of a folder, of all its files together.

    The copy of what lies behind a URL is new each time, so that only its size counts.
    """
    count, size, newest = 0, 0, 0
    try:
        for stat in _stats(path):
            count += 1
            size += stat.st_size
            newest = max(newest, stat.st_mtime_ns)
    except OSError:
        pass  # what cannot be read is said by the reader
    if is_url(address):
        return [address, count, size]
    return [str(path.resolve()), count, size, newest]


def _stats(path: Path) -> Iterator[os.stat_result]:
    if not path.is_dir():
        yield path.stat()
        return
    for folder, _, names in os.walk(path):
        for name in names:
            yield os.stat(os.path.join(folder, name), follow_symlinks=False)


def _rules(options: CompareOptions, total_bytes: int) -> Rules:
    is_compiled = options.is_compiled
    if is_compiled is None:
        is_compiled = total_bytes >= COMPILED_FROM_BYTES and is_compiled_there()
    return Rules(options.tolerance, options.envelope, options.is_counting, is_compiled)


def _address(
    reference: TensorSource, other: TensorSource, options: CompareOptions
) -> tuple[str, str, str]:
    """What opens both sources in another process, and a word of this run."""
    given = options.addresses or (str(reference.path), str(other.path))
    first, second = (name if is_url(name) else str(Path(name).resolve()) for name in given)
    return first, second, uuid.uuid4().hex


def _run(
    jobs: Sequence[Job],
    worker: Worker,
    options: CompareOptions,
    journal: Journal | None,
    done: Mapping[tuple[str, str], TensorComparison],
    progress: Progress | None,
) -> Iterator[TensorComparison]:
    left = []
    for job in jobs:
        before = done.get((job.pair.reference, job.pair.other))
        if before is None:
            left.append(job)
        else:
            yield replace(before, order=job.order)
    total_bytes = sum(job.size_bytes for job in left)
    finished = [0, 0]

    def read(size_bytes: int) -> None:
        finished[1] += size_bytes
        if progress:
            progress.advance(
                finished[1], total_bytes, f"{finished[0]:,} / {len(left):,} pairs", "bytes"
            )

    if not left:
        return
    with executor(options.engine, options.threads, options.scheduler) as (pool, width):
        for found in compare_jobs(pool, width, worker, left, read):
            finished[0] += 1
            if journal and found.verdict is not TensorVerdict.FAILED:
                journal.add(found)
            yield found


def _unread(
    reference: TensorSource,
    other: TensorSource,
    options: CompareOptions,
    found: list[TensorComparison],
) -> list[TensorComparison]:
    """What lies in a set and could not be read: left open, never dropped."""
    failed = []
    for is_reference, source in ((True, reference), (False, other)):
        if source.kind == "recording" or (not is_reference and source is reference):
            continue
        for name, reason in source.skipped.items():
            plain = name.removesuffix(".npy")
            if _matches(plain, options.ignore) or (
                options.only and not _matches(plain, options.only)
            ):
                continue
            partners = [
                one for one in found if one.verdict is TensorVerdict.MISSING and one.name == plain
            ]
            for partner in partners:
                found.remove(partner)
            side = "first" if is_reference else "second"
            failed.append(
                TensorComparison(
                    reference=plain if is_reference or partners else "",
                    other="" if is_reference and not partners else plain,
                    verdict=TensorVerdict.FAILED,
                    order=partners[0].order if partners else 2 * len(found),
                    detail=f"cannot be read in the {side} set: {reason}",
                )
            )
    return failed

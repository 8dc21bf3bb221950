"""One pass over a source: `inventory`."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import Executor
from dataclasses import dataclass, replace

from isograd.data.inventory.census import Census
from isograd.data.inventory.look import Gallery
from isograd.data.inventory.rules import findings
from isograd.data.model import Shown, SourceReport
from isograd.data.sources.base import Labels, SampleSource
from isograd.data.vocabulary import Vocabulary
from isograd.errors import UsageError
from isograd.findings import Finding
from isograd.progress import Progress, SilentProgress

_REPORTED_EVERY = 256
#: Parts that each worker gets in turn: a slow one delays the others less, and progress is seen.
_PARTS_PER_WORKER = 4


@dataclass(frozen=True)
class InventoryOptions:
    """label: the field of labels; classes: how many there are; shown: samples to look at.

    limit: samples after which to end, 0 for none; vocabulary: by which ids of tokens are shown.
    """

    label: str | None = None
    classes: int | None = None
    shown: int = 48
    limit: int = 0
    seed: int = 0
    vocabulary: Vocabulary | None = None


def inventory(
    source: SampleSource,
    options: InventoryOptions = InventoryOptions(),
    progress: Progress | None = None,
) -> SourceReport:
    """What is in a source: read once, in bounded memory."""
    started = time.monotonic()
    listener = progress or SilentProgress()
    listener.stage(f"reading {source.address}")
    counted, is_complete = _read(source, options, listener)
    return _report(source, counted, time.monotonic() - started, is_complete)


def inventory_of_parts(
    source: SampleSource,
    options: InventoryOptions,
    progress: Progress,
    pool: Executor,
    workers: int,
) -> SourceReport:
    """What is in a source whose parts are read by the workers of a pool.

    Counts are those of `inventory`; means differ by float64 rounding, quantiles by other drawn
    values.  Raises UsageError where a source is one stream, or is to be read in part alone.
    """
    if options.limit:
        raise UsageError(
            "--limit is given with --engine dask, which reads parts beside one another",
            "Give one of them.",
        )
    if not source.is_divisible:
        raise UsageError(
            f"{source.address} is one stream ({source.format}), which --engine dask cannot divide",
            "Leave the engine out, or give several files.",
        )
    started = time.monotonic()
    progress.stage(f"reading {source.address} in parts")
    count = _PARTS_PER_WORKER * workers
    futures = [pool.submit(_read_part, source.part(n, count), options) for n in range(count)]
    first, *rest = futures
    counted = first.result()
    for number, future in enumerate(rest, 1):
        progress.advance(number, count, unit="parts")
        counted.join(future.result())
    return _report(source, counted, time.monotonic() - started, True)


@dataclass
class _Counted:
    """What one part of a source holds."""

    census: Census
    gallery: Gallery
    left_out: Counter[str]

    def join(self, other: _Counted) -> None:
        """Add the part that follows."""
        self.census.join(other.census)
        self.gallery.join(other.gallery)
        self.left_out += other.left_out


def _read_part(source: SampleSource, options: InventoryOptions) -> _Counted:
    counted, _ = _read(source, options, SilentProgress())
    for field in counted.census.fields.values():
        field.block.finish()  # what waits is measured here
    return counted


def _read(
    source: SampleSource, options: InventoryOptions, listener: Progress
) -> tuple[_Counted, bool]:
    """Everything that a source yields, and whether that is all of it."""
    known = source.labels
    labels = Labels(
        options.label or known.field,
        options.classes if options.classes is not None else known.classes,
        known.names,
    )
    census = Census(labels, options.label, options.seed)
    gallery = Gallery(options.shown, options.seed, known.names, options.vocabulary)
    total = source.count() or 0
    is_complete = True
    for sample, decoded in census.take(source.samples()):
        gallery.offer(sample, decoded, census.label_field)
        if census.samples % _REPORTED_EVERY == 0:
            listener.advance(census.samples, max(total, census.samples), unit="samples")
        if options.limit and census.samples >= options.limit:
            is_complete = bool(total) and total <= options.limit
            break
    return _Counted(census, gallery, source.left_out), is_complete


def _report(
    source: SampleSource, counted: _Counted, elapsed_s: float, is_complete: bool
) -> SourceReport:
    census = counted.census
    found = findings(census)
    fields = tuple(field.report(census.samples) for field in census.fields.values())
    splits = dict(census.splits) if set(census.splits) - {""} else None
    notes = [*source.notes, *(f"{what}: {count:,}" for what, count in counted.left_out.items())]
    if not is_complete:
        notes.append(f"the reading ended after {census.samples:,} samples, as --limit asks")
    return SourceReport(
        source.address,
        source.format,
        census.samples,
        fields,
        found,
        census.label_reports(),
        splits,
        tuple(replace(one, codes=_codes(one, found)) for one in counted.gallery.shown()),
        tuple(notes),
        elapsed_s,
        is_complete,
    )


def _codes(shown: Shown, found: tuple[Finding, ...]) -> tuple[str, ...]:
    """The findings that name a sample."""
    return tuple(
        one.code for one in found if any(shown.key in line.split() for line in one.evidence)
    )

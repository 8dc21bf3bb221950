"""One pass over a source: `inventory`."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from isograd.data.inventory.census import Census
from isograd.data.inventory.look import Gallery
from isograd.data.inventory.rules import findings
from isograd.data.model import Shown, SourceReport
from isograd.data.sources.base import Labels, SampleSource
from isograd.data.vocabulary import Vocabulary
from isograd.findings import Finding
from isograd.progress import Progress, SilentProgress

_REPORTED_EVERY = 256


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
    return _report(source, census, gallery, time.monotonic() - started, is_complete)


def _report(
    source: SampleSource, census: Census, gallery: Gallery, elapsed_s: float, is_complete: bool
) -> SourceReport:
    found = findings(census)
    fields = tuple(field.report(census.samples) for field in census.fields.values())
    splits = dict(census.splits) if set(census.splits) - {""} else None
    notes = list(source.notes)
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
        tuple(replace(one, codes=_codes(one, found)) for one in gallery.shown()),
        tuple(notes),
        elapsed_s,
        is_complete,
    )


def _codes(shown: Shown, found: tuple[Finding, ...]) -> tuple[str, ...]:
    """The findings that name a sample."""
    return tuple(
        one.code for one in found if any(shown.key in line.split() for line in one.evidence)
    )

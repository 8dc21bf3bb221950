"""The page of each kind of item: what the verb of that kind says of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

from isograd.errors import IsogradError
from isograd.report.document import (
    Axis,
    Chart,
    ChartKind,
    Document,
    Facts,
    Outcome,
    Section,
    Series,
    Tone,
)
from isograd.serve.catalogue import Catalogue
from isograd.serve.curves import curve_of
from isograd.serve.model import REPORTS, Item, Kind
from isograd.serve.reports import report_data
from isograd.serve.sources import source_document

_MOST_CURVES = 60
_POINTS = 400


def page_of(item: Item, catalogue: Catalogue) -> Document:
    """The document of an item; what cannot be read is a page that says so."""
    from isograd.serve.links import with_links

    try:
        document = _cached(item)
        extra = _network(item, catalogue)
        return with_links(replace(document, sections=[*document.sections, *extra]), item, catalogue)
    except IsogradError as error:
        return Document(
            title=f"{item.kind.value} {item.name}",
            outcome=Outcome("unreadable", f"{error.what}.", Tone.BAD),
            notes=(error.advice,),
        )


@lru_cache(maxsize=32)
def _cached(item: Item) -> Document:
    """Pages of unchanged items are made once: an item holds its size and time."""
    if item.kind in REPORTS:
        return _report(item)
    return _MAKERS[item.kind](item)


def _network(item: Item, catalogue: Catalogue) -> list[Section]:
    from isograd.serve.networks import recording_sections, report_sections

    if item.kind is Kind.RECORDING:
        return recording_sections(catalogue, item)
    return report_sections(catalogue, item) if item.kind in REPORTS else []


def _report(item: Item) -> Document:
    from isograd.serve.networks import has_tree
    from isograd.serve.report_document import report_document

    data = report_data(item)
    plain = {key: value for key, value in data.items() if key != "modules" or not has_tree(item)}
    return report_document(plain, f"isograd {item.kind.value}: {item.name}")


def _run(item: Item) -> Document:
    from isograd.watch.document import document
    from isograd.watch.reading import read_source

    return document(read_source(item.path))


def _events(item: Item) -> Document:
    from isograd.serve.event_index import index_of
    from isograd.serve.event_media import media_sections

    index = index_of(item)
    names = list(index.scalars)
    charts = [_chart(item, name) for name in names[:_MOST_CURVES]]
    counts = (
        (len(index.scalars), "scalars"),
        (len(index.histograms), "histograms"),
        (len(index.images), "images"),
    )
    word = ", ".join(f"{count:,} {name}" for count, name in counts if count) or "no values"
    pairs = [("size", f"{item.size_bytes:,} bytes"), ("read", f"{index.read_bytes:,} bytes")]
    note = (
        f"Of this large file {index.read_bytes / 1e6:,.0f} MB were read, its beginning and places "
        "at equal distances; its curves lack values."
    )
    return Document(
        title=f"Events {item.name}",
        outcome=Outcome("events", f"{word[0].upper()}{word[1:]}.", Tone.PLAIN),
        sections=[*charts, *media_sections(item, index), Facts("File", pairs=pairs)],
        notes=() if index.is_complete else (note,),
    )


def _chart(item: Item, name: str) -> Section:
    curve = curve_of(item, name, _POINTS)
    steps = [float(step) for step in curve.steps]
    values = [float(value) for value in curve.values]
    series = Series(name, steps, values)
    return Chart(name, kind=ChartKind.LINE, x=Axis("step"), y=Axis(name), series=(series,))


def _checkpoint(item: Item) -> Document:
    from isograd.api import params
    from isograd.weights.params_document import document

    return document(params(item.path))


def _trace(item: Item) -> Document:
    from isograd.profile.document import document
    from isograd.profile.run import profile

    return document(profile(item.path))


def _dataset(item: Item) -> Document:
    from isograd.data.document import document
    from isograd.data.run import DataOptions, look

    return document(look(str(item.path), DataOptions(limit=2_000)))


def _study(item: Item) -> Document:
    from isograd.tune.document import document
    from isograd.tune.results import reports_of_journal

    reports = reports_of_journal(item.path)
    first = document(reports[0])
    more = [section for report in reports[1:] for section in document(report).sections]
    return replace(first, sections=[*first.sections, *more])


def _recording(item: Item) -> Document:
    from isograd.recording.reader import Recording

    recording = Recording(str(item.path))
    manifest: Any = recording.manifest
    pairs = [
        (name.replace("_", " "), str(getattr(manifest, name)))
        for name in ("framework", "framework_version", "device", "tensors", "created", "status")
        if hasattr(manifest, name)
    ]
    steps = [step.number for step in recording]
    return Document(
        title=f"Recording {item.name}",
        outcome=Outcome("recording", f"{len(steps)} recorded steps.", Tone.PLAIN),
        sections=[Facts("Recording", pairs=pairs)],
    )


_MAKERS: dict[Kind, Callable[[Item], Document]] = {
    Kind.RUN: _run,
    Kind.EVENTS: _events,
    Kind.CHECKPOINT: _checkpoint,
    Kind.TRACE: _trace,
    Kind.DATASET: _dataset,
    Kind.STUDY: _study,
    Kind.RECORDING: _recording,
    Kind.SOURCE: source_document,
}

"""Histograms and images of an event file, decoded where a page shows them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from isograd.compare.files.event_file import fields
from isograd.errors import CheckpointError
from isograd.report.document import (
    Axis,
    Chart,
    ChartKind,
    Group,
    HeatMap,
    Medium,
    Picture,
    Pictures,
    Section,
    Series,
)
from isograd.report.levels import log_level
from isograd.serve.event_index import EventIndex, Place, read_value
from isograd.serve.model import Item

One = TypeVar("One")
Numbers = NDArray[np.float64]
#: Steps of a histogram's tag and images of a tag that a page shows, evenly chosen, and tags.
_MOST_STEPS, _MOST_IMAGES, _MOST_TAGS = 200, 24, 40
_MAP_STEPS, _MAP_BINS = 24, 16
_MOST_VALUE_BYTES, _MOST_PAGE_BYTES = 4 << 20, 24 << 20
#: Pixels that an image may declare.
_MOST_PIXELS = 1 << 26
#: Shares of a distribution that are drawn: the median, the middle half, nine tenths, all.
_SHARES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
_DAMAGED = (ValueError, IndexError, struct.error, CheckpointError)


@dataclass(frozen=True)
class Histogram:
    """A histogram of one step.

    edges: float64 of shape (bins + 1,), rising.  counts: float64 of shape (bins,).
    """

    step: int
    edges: Numbers
    counts: Numbers

    def at_shares(self, shares: Sequence[float]) -> Numbers:
        """The values below which these shares of all elements lie, linear inside of a bin.

        returns: the shape of shares, float64; NaN where the histogram is empty.
        """
        whole = np.concatenate(([0.0], np.cumsum(self.counts)))
        if whole[-1] <= 0:
            return np.full(len(shares), np.nan)
        kept = np.concatenate(([True], np.diff(whole) > 0))
        found: Numbers = np.interp(np.array(shares) * whole[-1], whole[kept], self.edges[kept])
        first = int(np.argmax(self.counts > 0))
        found[np.array(shares) == 0.0] = self.edges[first]
        return found


def media_sections(item: Item, index: EventIndex) -> list[Section]:
    """What a page shows of an event file beside its scalars."""
    found: list[Section] = []
    for tag, places in list(index.histograms.items())[:_MOST_TAGS]:
        histograms = _histograms(item, _even(places, _MOST_STEPS))
        if histograms:
            found.append(Group(tag, sections=[_bands(histograms), _heat(histograms)]))
    left = _MOST_PAGE_BYTES
    for tag, places in list(index.images.items())[:_MOST_TAGS]:
        pictures = []
        for place in _even(places, _MOST_IMAGES):
            for content in _images(item, place):
                if len(content) <= left:
                    left -= len(content)
                    pictures.append(Picture(f"step {place.step:,}", content, _kind(content)))
        note = f"{len(places):,} steps." if len(places) > len(pictures) else ""
        if pictures:
            found.append(Pictures(tag, pictures, note=note))
    return found


def _even(found: Sequence[One], most: int) -> list[One]:
    """At most so many at equal distances, the first and the last among them."""
    if len(found) <= most:
        return list(found)
    return [found[(len(found) - 1) * number // (most - 1)] for number in range(most)]


def _bands(histograms: Sequence[Histogram]) -> Chart:
    """The distribution over steps: the median in three bands."""
    steps = [float(one.step) for one in histograms]
    table = np.array([one.at_shares(_SHARES) for one in histograms]).T.tolist()
    bands = (("all", 0), ("90 %", 1), ("50 %", 2))
    series = [Series(name, steps, table[3], table[low], table[-1 - low]) for name, low in bands]
    return Chart(
        "Distribution", ChartKind.LINE, Axis("step"), Axis("value"), series, medium=Medium.PAGE
    )


def _heat(histograms: Sequence[Histogram]) -> HeatMap:
    """Shares of all elements by step and value."""
    chosen = _even(histograms, _MAP_STEPS)
    ends = np.array([one.at_shares((0.0, 1.0)) for one in chosen])
    low, high = float(np.nanmin(ends)), float(np.nanmax(ends))
    edges = np.linspace(low, high if high > low else low + 1.0, _MAP_BINS + 1)
    rows = [_shares_between(one, edges) for one in chosen]
    return HeatMap(
        "Histogram over steps",
        rows=[f"step {one.step:,}" for one in chosen],
        columns=[f"{edge:.3g}" for edge in edges[:-1]],
        values=[[round(100 * float(value), 1) for value in row] for row in rows],
        levels=[[log_level(float(value), 0.001, 0.5) for value in row] for row in rows],
        unit="%",
        is_folded=True,
        note="Each column is named by its least value.",
    )


def _shares_between(one: Histogram, edges: Numbers) -> Numbers:
    whole = np.concatenate(([0.0], np.cumsum(one.counts)))
    below = np.interp(edges, one.edges, whole)
    found: Numbers = np.diff(below) / max(whole[-1], 1.0)
    return found


def _histograms(item: Item, places: Sequence[Place]) -> list[Histogram]:
    found = []
    for place in places:
        try:
            one = decoded_histogram(read_value(item.path, place, _MOST_VALUE_BYTES), place.step)
        except _DAMAGED:
            continue
        if one is not None and len(one.counts) and np.all(np.diff(one.edges) >= 0):
            found.append(one)
    return found


def decoded_histogram(value: bytes, step: int) -> Histogram | None:
    """The histogram of a summary's value, as TensorBoard (two ways) or MindSpore writes it."""
    for number, content in fields(value):
        if not isinstance(content, bytes):
            continue
        if number == 5:
            return _of_tensorboard(content, step)
        if number == 9:
            return _of_mindspore(content, step)
        if number == 8:
            return _of_tensor(content, step)
    return None


def _of_tensorboard(message: bytes, step: int) -> Histogram | None:
    """Limits (6) and counts (7) as packed doubles; the least value (1) begins the first bin."""
    least, limits, counts = 0.0, np.empty(0), np.empty(0)
    greatest = 0.0
    for number, value in fields(message):
        if number == 1 and isinstance(value, float):
            least = value
        elif number == 2 and isinstance(value, float):
            greatest = value
        elif number == 6 and isinstance(value, bytes):
            limits = np.frombuffer(value, "<f8")
        elif number == 7 and isinstance(value, bytes):
            counts = np.frombuffer(value, "<f8")
    if len(limits) != len(counts) or not len(limits):
        return None
    used = np.flatnonzero(counts > 0)
    if not len(used):
        return None
    first, last = int(used[0]), int(used[-1])
    edges = np.concatenate(([limits[first - 1] if first else least], limits[first : last + 1]))
    edges[0], edges[-1] = max(edges[0], min(least, edges[1])), min(edges[-1], greatest)
    return Histogram(step, np.maximum.accumulate(edges), counts[first : last + 1].astype(float))


def _of_mindspore(message: bytes, step: int) -> Histogram | None:
    """Buckets (1) of a left end (1), a width (2) and a count (3)."""
    rows = []
    for number, value in fields(message):
        if number != 1 or not isinstance(value, bytes):
            continue
        row = {key: content for key, content in fields(value) if not isinstance(content, bytes)}
        rows.append((float(row.get(1, 0.0)), float(row.get(2, 0.0)), float(row.get(3, 0))))
    if not rows:
        return None
    table = np.array(sorted(rows))
    edges = np.append(table[:, 0], table[-1, 0] + table[-1, 1])
    return Histogram(step, edges, table[:, 2])


def _of_tensor(message: bytes, step: int) -> Histogram | None:
    """Rows of a left end, a right end and a count, as float64 (4) or packed doubles (6)."""
    for number, value in fields(message):
        if number in (4, 6) and isinstance(value, bytes) and len(value) % 24 == 0 and value:
            table = np.frombuffer(value, "<f8").reshape(-1, 3)
            return Histogram(step, np.append(table[:, 0], table[-1, 1]), table[:, 2])
    return None


def _images(item: Item, place: Place) -> list[bytes]:
    try:
        return decoded_images(read_value(item.path, place, _MOST_VALUE_BYTES))
    except _DAMAGED:
        return []


def decoded_images(value: bytes) -> list[bytes]:
    """The encoded images of a summary's value; what is none that a browser shows is left out."""
    found: list[bytes] = []
    for number, content in fields(value):
        if number in (4, 8) and isinstance(content, bytes):
            wanted = 4 if number == 4 else 8
            found += [one for at, one in fields(content) if at == wanted and isinstance(one, bytes)]
    return [one for one in found if _kind(one) and _pixels(one) <= _MOST_PIXELS]


def _kind(content: bytes) -> str:
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if content.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    return "image/gif" if content.startswith((b"GIF87a", b"GIF89a")) else ""


def _pixels(content: bytes) -> int:
    """What an image declares; of a JPEG its first frame."""
    if _kind(content) == "image/png" and len(content) >= 24:
        width, height = struct.unpack(">II", content[16:24])
        return int(width * height)
    if _kind(content) == "image/gif" and len(content) >= 10:
        width, height = struct.unpack("<HH", content[6:10])
        return int(width * height)
    at = 2
    while at + 9 < len(content):
        if content[at] != 0xFF:
            return _MOST_PIXELS + 1
        if content[at + 1] in range(0xC0, 0xD0) and content[at + 1] not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", content[at + 5 : at + 9])
            return int(width * height)
        at += 2 + int.from_bytes(content[at + 2 : at + 4], "big")
    return _MOST_PIXELS + 1

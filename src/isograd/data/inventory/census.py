"""What one pass over a source counts; the rules of `rules.py` judge it afterwards."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from isograd.data.inventory.duplicates import Fingerprints, Keys
from isograd.data.inventory.statistics import BlockTally
from isograd.data.limits import MAX_SHAPES
from isograd.data.model import FieldReport, LabelReport
from isograd.data.sources.base import Item, Labels, Problem, Sample, Value
from isograd.data.sources.media import UndecodableError, decode_audio, decode_image, kind_of
from isograd.tensors import Array

#: Examples that a finding names.
EXAMPLES = 5
#: Distinct values up to which an integer field has its own histogram.
_MOST_LABELS = 2000
_NO_LABEL = -(2**63)
_MANY = "other"


@dataclass
class Tally:
    """How often something was seen, and the first samples in which it was."""

    count: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, example: str, count: int = 1) -> None:
        """Count once more."""
        self.count += count
        if len(self.examples) < EXAMPLES:
            self.examples.append(example)

    def join(self, other: Tally) -> None:
        """Add what another tally saw after this one."""
        self.count += other.count
        self.examples += other.examples[: EXAMPLES - len(self.examples)]


class FieldCensus:
    """What is counted of one field."""

    def __init__(self, name: str, seed: int) -> None:
        self.name = name
        self.kind = ""
        self.dtypes: Counter[str] = Counter()
        self.shapes: Counter[str] = Counter()
        self.block = BlockTally(seed)
        self.empty = Tally()
        self.seen = 0
        self.labels: Counter[int] | None = Counter()
        self._shortest, self._longest, self._total = -1, 0, 0

    def add(self, position: int, key: str, value: Value, decoded: Array | None) -> None:
        """Add the field of one sample.

        decoded: the pixels (H, W) or (H, W, C) or the tones (T,) or (T, channels) of encoded bytes,
        in their dtype.
        """
        self.seen += 1
        if isinstance(value, (bytes, str)) and decoded is None:
            kind = "text" if isinstance(value, str) else "bytes"
            self._length(len(value))
            self._describe(kind, kind, "")
            self.labels = None
            if not value:
                self.empty.add(key)
            return
        array = value if isinstance(value, np.ndarray) else decoded
        assert array is not None
        kind = "numbers"
        if isinstance(value, bytes):
            kind = kind_of(value) or "bytes"
        self._describe(kind, str(array.dtype), _shape(array.shape))
        if array.size == 0:
            self.empty.add(key)
        elif array.dtype.kind in "biuf":
            self.block.add(position, array)
        self._label(array)

    def join(self, other: FieldCensus, shift: int) -> None:
        """Add what was counted of a later part, whose first sample is at position `shift`."""
        self.seen += other.seen
        kinds = {self.kind, other.kind} - {""}
        self.kind = "mixed" if len(kinds) > 1 else "".join(kinds)
        self.dtypes += other.dtypes
        for shape, count in other.shapes.items():
            self._count_shape(shape, count)
        self.block.join(other.block, shift)
        self.empty.join(other.empty)
        if self.labels is not None:
            self.labels = None if other.labels is None else self.labels + other.labels
        self._keep_few_labels()
        if other._shortest >= 0:
            self._length_between(other._shortest, other._longest, other._total)

    def _describe(self, kind: str, dtype: str, shape: str) -> None:
        self.kind = kind if self.kind in ("", kind) else "mixed"
        self.dtypes[dtype] += 1
        if shape:
            self._count_shape(shape, 1)

    def _count_shape(self, shape: str, count: int) -> None:
        known = shape in self.shapes or len(self.shapes) < MAX_SHAPES
        self.shapes[shape if known else _MANY] += count

    def _length(self, length: int) -> None:
        self._length_between(length, length, length)

    def _length_between(self, shortest: int, longest: int, total: int) -> None:
        self._shortest = shortest if self._shortest < 0 else min(self._shortest, shortest)
        self._longest = max(self._longest, longest)
        self._total += total

    def _label(self, array: Array) -> None:
        """Count integers without axes, as long as there are few distinct ones."""
        if self.labels is None:
            return
        if array.dtype.kind not in "biu" or array.ndim > 1 or array.size > 4096:
            self.labels = None
            return
        self.labels.update(array.reshape(-1).tolist())
        self._keep_few_labels()

    def _keep_few_labels(self) -> None:
        if self.labels is not None and len(self.labels) > _MOST_LABELS:
            self.labels = None

    def report(self, samples: int) -> FieldReport:
        """The field as the report has it."""
        lengths = None
        if self._shortest >= 0:
            measured = sum(self.dtypes[kind] for kind in ("text", "bytes"))
            lengths = (self._shortest, self._total / max(1, measured), self._longest)
        return FieldReport(
            self.name,
            self.kind,
            dict(self.dtypes.most_common()),
            dict(self.shapes.most_common()),
            self.block.finish(),
            lengths,
            samples - self.seen,
        )


def _shape(shape: tuple[int, ...]) -> str:
    return "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


class Census:
    """One pass over a source."""

    def __init__(self, labels: Labels, label_field: str | None = None, seed: int = 0) -> None:
        self.known = labels
        self._label_field = label_field or labels.field
        self.seed = seed
        self.fields: dict[str, FieldCensus] = {}
        self.keys = Keys()
        self.prints = Fingerprints()
        self.corrupt = Tally()
        self.reasons: Counter[str] = Counter()
        self.splits: Counter[str] = Counter()
        self.split_of = array("q")
        self._split_codes: dict[str, int] = {}
        self.label_of = array("q")
        self.samples = 0

    @property
    def label_field(self) -> str | None:
        """The field of labels: what was named, what the layout says, or one called `label`."""
        if self._label_field is not None:
            return self._label_field
        return "label" if "label" in self.fields else None

    @property
    def split_names(self) -> tuple[str, ...]:
        """The splits by their code in `split_of`."""
        return tuple(self._split_codes)

    def take(self, items: Iterator[Item]) -> Iterator[tuple[Sample, dict[str, Array]]]:
        """Count every item, and pass each sound sample on with what was decoded of it.

        Yields the decoded arrays by field: pixels (H, W) or (H, W, C), tones (T,) or (T, channels),
        in their own dtype.
        """
        for item in items:
            if isinstance(item, Problem):
                self._damaged(item.key, item.what)
                continue
            decoded, problem = decoded_fields(item)
            if problem:
                self._damaged(item.key, problem)
            else:
                self._add(item, decoded)
                yield item, decoded

    def join(self, other: Census) -> None:
        """Add what was counted of the part that follows this one."""
        shift = self.samples
        self.samples += other.samples
        for name, census in other.fields.items():
            if name not in self.fields:
                self.fields[name] = FieldCensus(name, self.seed)
            self.fields[name].join(census, shift)
        self.keys.join(other.keys)
        self.prints.join(other.prints, shift)
        self.corrupt.join(other.corrupt)
        self.reasons += other.reasons
        self.splits += other.splits
        codes = [
            self._split_codes.setdefault(name, len(self._split_codes)) for name in other.split_names
        ]
        self.split_of.extend(codes[code] for code in other.split_of)
        self.label_of.extend(other.label_of)

    def _damaged(self, key: str, what: str) -> None:
        self.corrupt.add(f"{key}: {what}")
        self.reasons[what] += 1

    def _add(self, sample: Sample, decoded: dict[str, Array]) -> None:
        position = self.samples
        self.samples += 1
        self.keys.append(sample.key)
        code = self._split_codes.setdefault(sample.split, len(self._split_codes))
        self.splits[sample.split] += 1
        self.split_of.append(code)
        for name, value in sample.fields.items():
            if name not in self.fields:
                self.fields[name] = FieldCensus(name, self.seed)
            self.fields[name].add(position, sample.key, value, decoded.get(name))
        self.label_of.append(self._label_of(sample))
        self.prints.add(_contents(sample.fields, self.label_field))
        for name, value in sample.fields.items():
            pixels = decoded.get(name, value)
            if isinstance(pixels, np.ndarray) and pixels.ndim >= 2:
                self.prints.add_image(position, _as_image(pixels))
                break

    def _label_of(self, sample: Sample) -> int:
        value = sample.fields.get(self.label_field or "")
        if isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "biu":
            return int(value)
        return _NO_LABEL

    def labels_at(self, positions: Array) -> list[int]:
        """The labels of some samples; those without one are left out.

        positions: (n,) integers.
        """
        found = (self.label_of[int(position)] for position in positions)
        return [label for label in found if label != _NO_LABEL]

    def label_reports(self) -> tuple[LabelReport, ...]:
        """The histograms of the fields of labels."""
        found = []
        for name, census in self.fields.items():
            is_label = name == self.label_field
            counts = census.labels
            if counts and (is_label or 2 * len(counts) <= census.seen):
                names = self.known.names if is_label else ()
                found.append(LabelReport(name, dict(sorted(counts.items())), names))
        return tuple(sorted(found, key=lambda report: report.field != self.label_field))


def decoded_fields(sample: Sample) -> tuple[dict[str, Array], str]:
    """Pixels and tones of the encoded fields, and why one cannot be decoded.

    Returns by field (H, W) or (H, W, C), (T,) or (T, channels), in their own dtype.
    """
    found: dict[str, Array] = {}
    for name, value in sample.fields.items():
        if not isinstance(value, bytes):
            continue
        kind = kind_of(value)
        try:
            if kind == "image":
                found[name] = decode_image(value)
            elif kind == "audio":
                found[name] = decode_audio(value)[0]
            elif name == "image" and len(sample.fields) <= 2 and sample.key.endswith(_IMAGE_ENDS):
                return found, "has the suffix of an image and is none"
        except UndecodableError as error:
            return found, str(error)
    return found, ""


_IMAGE_ENDS = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")


def _contents(fields: dict[str, Value], label_field: str | None) -> list[Value]:
    """The fields that make a sample what it is: all but the label and single numbers."""
    own = [
        value
        for name, value in fields.items()
        if name != label_field and not (isinstance(value, np.ndarray) and value.ndim == 0)
    ]
    return own or [value for name, value in fields.items() if name != label_field]


def _as_image(pixels: Array) -> Array:
    if pixels.ndim == 3 and pixels.shape[0] in (1, 3) and pixels.shape[2] not in (1, 3, 4):
        return pixels.transpose(1, 2, 0)
    return pixels

"""The rules by which a source is judged: each with its message, advice and examples.

An example is a small data set that the rule must report, a counterexample one that it must not;
`tests/dataset/test_rules.py` runs both, and docs/data.md lists the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from isograd.data.inventory.census import EXAMPLES, Census
from isograd.data.model import LabelReport
from isograd.data.sources.base import Item, Labels, Problem, Sample
from isograd.findings import Finding, Level
from isograd.tensors import Array


@dataclass(frozen=True)
class Example:
    """A small data set, with what a layout would say of its labels."""

    items: tuple[Item, ...]
    labels: Labels = field(default_factory=lambda: Labels("label"))


@dataclass(frozen=True)
class DataRule:
    """One rule.

    judge: the evidence, a line each; the first begins the message.  Nothing where all is well.
    """

    code: str
    level: Level
    summary: str
    advice: str
    judge: Callable[[Census], Sequence[str]]
    example: Example
    counterexample: Example


def findings(census: Census) -> tuple[Finding, ...]:
    """What every rule finds, errors first."""
    found = []
    for rule in RULES:
        lines = tuple(rule.judge(census))
        if lines:
            found.append(
                Finding(rule.code, rule.level, lines[0], evidence=lines[1:], advice=rule.advice)
            )
    return tuple(sorted(found, key=lambda one: one.level is not Level.ERROR))


def _many(count: int, one: str, several: str) -> str:
    return f"{count:,} {one if count == 1 else several}"


def _corrupt(census: Census) -> Sequence[str]:
    if not census.corrupt.count:
        return ()
    return (
        f"{_many(census.corrupt.count, 'item', 'items')} cannot be read",
        *census.corrupt.examples,
    )


def _nonfinite(census: Census) -> Iterator[str]:
    for name, one in census.fields.items():
        one.block.finish()
        if one.block.nonfinite_count:
            count = _many(one.block.nonfinite_count, "sample has", "samples have")
            yield f"{count} NaN or infinity in field {name!r}"
            yield from (census.keys[p] for p in sorted(one.block.nonfinite)[:EXAMPLES])


def _empty(census: Census) -> Iterator[str]:
    for name, one in census.fields.items():
        if one.empty.count and name != census.label_field:
            count = _many(one.empty.count, "sample has", "samples have")
            yield f"{count} nothing in field {name!r}"
            yield from one.empty.examples


def _constant(census: Census) -> Iterator[str]:
    for name, one in census.fields.items():
        one.block.finish()
        is_content = any(shape.count(",") >= 2 for shape in one.shapes)
        if one.block.constant_count and is_content and name != census.label_field:
            count = _many(one.block.constant_count, "sample is", "samples are")
            yield f"{count} one single value throughout in field {name!r}"
            yield from (census.keys[p] for p in sorted(one.block.constant)[:EXAMPLES])


def _duplicates(census: Census) -> Sequence[str]:
    groups = census.prints.equal()
    if not groups:
        return ()
    extra = sum(len(group) - 1 for group in groups)
    shown = [" = ".join(census.keys[int(p)] for p in group[:4]) for group in groups[:EXAMPLES]]
    return (f"{_many(extra, 'sample repeats', 'samples repeat')} another exactly", *shown)


def _near(census: Census) -> Sequence[str]:
    pairs = census.prints.near()
    if not pairs:
        return ()
    shown = [f"{census.keys[a]} ≈ {census.keys[b]}" for a, b in pairs[:EXAMPLES]]
    return (f"{_many(len(pairs), 'pair of images looks', 'pairs of images look')} alike", *shown)


def _conflict(census: Census) -> Sequence[str]:
    found = []
    for group in census.prints.equal():
        labels = sorted(set(census.labels_at(group)))
        if len(labels) > 1:
            names = " = ".join(census.keys[int(p)] for p in group[:4])
            found.append(f"{names}: labels {', '.join(map(str, labels))}")
    if not found:
        return ()
    many = _many(len(found), "group of equal samples has", "groups of equal samples have")
    return (f"{many} different labels", *found[:EXAMPLES])


def _crossing(census: Census, groups: Iterator[Array]) -> list[str]:
    found = []
    for group in groups:
        if len({census.split_of[int(p)] for p in group}) > 1:
            names = [
                f"{census.split_names[census.split_of[int(p)]]}: {census.keys[int(p)]}"
                for p in group[:4]
            ]
            found.append(" = ".join(names))
    return found


def _leak(census: Census) -> Sequence[str]:
    if len(census.splits) < 2:
        return ()
    exact = _crossing(census, iter(census.prints.equal()))
    near = _crossing(census, (np.asarray(pair) for pair in census.prints.near()))
    if not exact and not near:
        return ()
    first = f"{_many(len(exact), 'sample stands', 'samples stand')} in more than one split"
    if near:
        first += f", and {_many(len(near), 'image', 'images')} nearly so"
    return (first, *exact[:EXAMPLES], *near[: EXAMPLES - len(exact[:EXAMPLES])])


def _own_labels(census: Census) -> LabelReport | None:
    return next((r for r in census.label_reports() if r.field == census.label_field), None)


def _label_range(census: Census) -> Sequence[str]:
    report = _own_labels(census)
    if report is None or census.known.classes is None:
        return ()
    classes = census.known.classes
    outside = {n: c for n, c in report.counts.items() if not 0 <= n < classes}
    if not outside:
        return ()
    shown = ", ".join(f"{label} ({count:,} ×)" for label, count in list(outside.items())[:8])
    return (f"labels are outside of 0 to {classes - 1}: {shown}",)


#: The most frequent class may be so many times as frequent as the rarest; ImageNet is at 1.8,
#: iNaturalist 2018, a set made to study imbalance, at 500.
_IMBALANCE = 10.0
_LEAST_FOR_IMBALANCE = 100


def _imbalance(census: Census) -> Sequence[str]:
    report = _own_labels(census)
    if report is None or len(report.counts) < 2:
        return ()
    total = sum(report.counts.values())
    if total < _LEAST_FOR_IMBALANCE or total < 5 * len(report.counts):
        return ()
    most = max(report.counts, key=lambda label: report.counts[label])
    least = min(report.counts, key=lambda label: report.counts[label])
    ratio = report.counts[most] / report.counts[least]
    if ratio <= _IMBALANCE:
        return ()
    return (
        f"label {most} occurs {ratio:,.0f} × as often as label {least} "
        f"({report.counts[most]:,} against {report.counts[least]:,})",
    )


def _lacking(census: Census) -> Sequence[str]:
    lacking = {
        name: census.samples - found.seen
        for name, found in census.fields.items()
        if found.seen < census.samples
    }
    found = [
        f"field {name!r} is missing in {count:,} of {census.samples:,} samples"
        for name, count in lacking.items()
    ]
    return found[:EXAMPLES]


def _mixed(census: Census) -> Sequence[str]:
    found = []
    for name, one in census.fields.items():
        if len(one.dtypes) > 1:
            seen = ", ".join(f"{dtype} ({count:,} ×)" for dtype, count in one.dtypes.items())
            found.append(f"field {name!r} has several dtypes: {seen}")
        channels = {_channels(shape) for shape in one.shapes} - {None}
        if one.kind == "image" and len(channels) > 1:
            found.append(f"images of field {name!r} have {_numbers(channels)} channels")
    return found[:EXAMPLES]


def _channels(shape: str) -> int | None:
    parts = [int(part) for part in shape.strip("()").split(",") if part.strip().isdigit()]
    return parts[2] if len(parts) == 3 else (1 if len(parts) == 2 else None)


def _numbers(found: set[int | None]) -> str:
    return " or ".join(map(str, sorted(number or 0 for number in found)))


def _pixels(seed: int, size: int = 16) -> Array:
    """A smooth random picture, as photographs are smooth."""
    coarse = np.random.default_rng(seed).integers(0, 256, (4, 4, 3))
    return np.kron(coarse, np.ones((size // 4, size // 4, 1))).astype(np.uint8)


def _set(*labels: int, split: str = "") -> tuple[Sample, ...]:
    return tuple(
        Sample(f"{split}{n}", {"image": _pixels(n), "label": np.asarray(label)}, split)
        for n, label in enumerate(labels)
    )


_SOUND = Example(_set(0, 1, 0, 1))


def _with(image: Array | bytes | str, split: str = "") -> Example:
    return Example((*_set(0, 1), Sample("odd", {"image": image, "label": np.asarray(1)}, split)))


_SLIGHTLY = np.clip(_pixels(0).astype(np.int16) + 1, 0, 255).astype(np.uint8)

RULES = (
    DataRule(
        "data.corrupt",
        Level.ERROR,
        "An item is damaged, cut off, or refused because it could run code or exhaust memory.",
        "Replace these items or take them out; a training stops or silently skips them.",
        _corrupt,
        Example((*_set(0, 1), Problem("2.jpg", "the image cannot be decoded"))),
        _SOUND,
    ),
    DataRule(
        "data.nonfinite",
        Level.ERROR,
        "A sample holds NaN or infinity.",
        "Correct or leave out these samples; one of them makes every weight NaN.",
        lambda census: tuple(_nonfinite(census)),
        _with(np.full((16, 16), np.nan, np.float32)),
        _with(np.linspace(0, 1, 256, dtype=np.float32).reshape(16, 16)),
    ),
    DataRule(
        "data.empty",
        Level.ERROR,
        "A field of a sample holds nothing.",
        "Leave these samples out.",
        lambda census: tuple(_empty(census)),
        _with(b""),
        _SOUND,
    ),
    DataRule(
        "data.label_range",
        Level.ERROR,
        "A label is outside the classes that the layout or --classes names.",
        "Correct the labels or the number of classes of the network.",
        _label_range,
        Example(_set(0, 1, 2), Labels("label", 2)),
        Example(_set(0, 1, 1), Labels("label", 2)),
    ),
    DataRule(
        "data.leak",
        Level.ERROR,
        "A sample stands in more than one split.",
        "Take it out of one of them; what is measured on it is not generalisation.",
        _leak,
        Example((*_set(0, 1, split="train"), *_set(0, split="val"))),
        Example(
            (*_set(0, 1, split="train"), Sample("new", {"image": _pixels(9)}, "val")),
        ),
    ),
    DataRule(
        "data.label_conflict",
        Level.WARNING,
        "Equal samples have different labels.",
        "Look at them and keep the right label.",
        _conflict,
        Example(
            (
                Sample("a", {"image": _pixels(1), "label": np.asarray(0)}),
                Sample("b", {"image": _pixels(1), "label": np.asarray(1)}),
            )
        ),
        _SOUND,
    ),
    DataRule(
        "data.duplicate",
        Level.WARNING,
        "Samples repeat others exactly.",
        "Leave them out unless they weigh more on purpose.",
        _duplicates,
        Example((*_set(0, 1), Sample("copy", {"image": _pixels(0), "label": np.asarray(0)}))),
        _SOUND,
    ),
    DataRule(
        "data.near_duplicate",
        Level.WARNING,
        "Images look alike and are not equal.",
        "Look at them; one picture that was saved twice is one picture.",
        _near,
        Example((*_set(0, 1), Sample("again", {"image": _SLIGHTLY, "label": np.asarray(0)}))),
        _SOUND,
    ),
    DataRule(
        "data.constant",
        Level.WARNING,
        "A sample is one single value throughout.",
        "Look at them: a black image is mostly a failed download or decoder.",
        lambda census: tuple(_constant(census)),
        _with(np.zeros((16, 16, 3), np.uint8)),
        _SOUND,
    ),
    DataRule(
        "data.imbalance",
        Level.WARNING,
        "Classes differ in frequency by more than ten times.",
        "Weigh the loss or the sampler, and measure per class.",
        _imbalance,
        Example(
            tuple(
                Sample(str(n), {"x": np.asarray([n, 1]), "label": np.asarray(int(n < 5))})
                for n in range(120)
            )
        ),
        Example(
            tuple(
                Sample(str(n), {"x": np.asarray([n, 1]), "label": np.asarray(n % 2)})
                for n in range(120)
            )
        ),
    ),
    DataRule(
        "data.field_missing",
        Level.WARNING,
        "A field is missing in some samples.",
        "Fill it in, or leave the samples out.",
        _lacking,
        Example((*_set(0, 1), Sample("bare", {"image": _pixels(7)}))),
        _SOUND,
    ),
    DataRule(
        "data.mixed",
        Level.WARNING,
        "A field has several dtypes, or images have different numbers of channels.",
        "Convert all to one, where the pipeline does not.",
        _mixed,
        _with(np.zeros((16, 16, 3), np.float32)),
        _SOUND,
    ),
)

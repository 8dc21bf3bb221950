"""What concerns pictures: channels, layout, flips, resizing, windows, borders, decoding."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from isograd.data.hypotheses import neutral
from isograd.data.hypotheses.base import (
    Candidate,
    Example,
    Hypothesis,
    Numbers,
    Observation,
    as_hwc,
    channel_axis,
    like,
    number,
)
from isograd.data.sources.media import UndecodableError, open_image, pillow

_PHOTO = "f.smooth(rng, 40, 52)"
#: The greatest shift that is looked for between two windows.
_MOST_SHIFT = 40


def _propose_channels(observations: Sequence[Observation]) -> Iterator[Candidate]:
    if any(one.a.shape != one.b.shape for one in observations):
        return
    axis = channel_axis(observations[0].a)
    if axis is None or observations[0].a.shape[axis] != 3:
        return
    for order in itertools.permutations(range(3)):
        if order == (0, 1, 2):
            continue
        name = "".join("RGB"[n] for n in order)
        yield Candidate(
            f"channels stand in another order: RGB in A, {name} in B",
            lambda one, order=order: np.take(one.a, order, axis=axis),  # type: ignore[misc]
            "RGB",
            name,
            "Convert after reading: cv2.imread gives BGR, Pillow and mindspore.dataset give RGB.",
        )


def _propose_grey(observations: Sequence[Observation]) -> Iterator[Candidate]:
    axis = channel_axis(observations[0].a)
    if axis is None or observations[0].a.shape[axis] != 3:
        return

    def grey(one: Observation) -> Numbers | None:
        hwc = as_hwc(one.a)
        if hwc is None or hwc.shape[2] != 3 or hwc.dtype != np.uint8:
            return None
        luma = np.asarray(pillow().fromarray(np.ascontiguousarray(hwc)).convert("L"))
        if one.b.ndim == 2:
            return luma
        count = one.b.shape[channel_axis(one.b) or -1]
        return like(np.repeat(luma[..., None], count, axis=2), one.b)

    yield Candidate(
        "B is grey where A has colours",
        grey,
        "RGB",
        "grey",
        "Decode in the same mode in both.",
        levels=1.0,
    )


def _propose_layout(observations: Sequence[Observation]) -> Iterator[Candidate]:
    one = observations[0]
    if (
        one.a.shape != one.b.shape
        and one.a.size == one.b.size
        and _squeezed(one.a) == _squeezed(one.b)
    ):
        yield Candidate(
            f"B has the shape {one.b.shape} where A has {one.a.shape}",
            lambda o: o.a.reshape(o.b.shape) if o.a.size == o.b.size else None,
            str(one.a.shape),
            str(one.b.shape),
            "Add or take out the axis of extent 1.",
        )
    if one.a.ndim not in (2, 3, 4) or one.a.ndim != one.b.ndim:
        return
    for order in itertools.permutations(range(one.a.ndim)):
        shape = tuple(one.a.shape[n] for n in order)
        if order == tuple(range(one.a.ndim)) or shape != one.b.shape:
            continue
        yield Candidate(
            f"axes stand in another order: B is A transposed by {order}",
            lambda o, order=order: o.a.transpose(order),  # type: ignore[misc]
            _layout(one.a),
            _layout(one.b),
            "Add or take out HWC2CHW (vision.ToTensor transposes, too).",
        )


def _squeezed(values: Numbers) -> tuple[int, ...]:
    return tuple(extent for extent in values.shape if extent != 1)


def _layout(values: Numbers) -> str:
    axis = channel_axis(values)
    return {None: str(values.shape), -1: "HWC", -3: "CHW"}[axis]


def _propose_flip(observations: Sequence[Observation]) -> Iterator[Candidate]:
    if any(one.a.shape != one.b.shape for one in observations):
        return
    axis = channel_axis(observations[0].a)
    if observations[0].a.ndim < 2:
        return
    width, height = (-2, -3) if axis == -1 else (-1, -2)
    names: list[tuple[str, tuple[int, ...]]] = [
        ("left and right", (width,)),
        ("top and bottom", (height,)),
        ("both axes (a turn by 180°)", (width, height)),
    ]
    for name, axes in names:
        if any(-a > observations[0].a.ndim for a in axes):
            continue
        yield Candidate(
            f"B is mirrored: {name}",
            lambda one, axes=axes: np.flip(one.a, axes),  # type: ignore[misc]
            "not mirrored",
            name,
            "Mirror in both or in none.",
        )


def _resizers(height: int, width: int) -> dict[str, Callable[[Numbers], Numbers]]:
    """Every way of resizing to a size, by its name in messages."""
    found: dict[str, Callable[[Numbers], Numbers]] = {}
    for name in neutral.FILTERS:
        shown = "nearest (Pillow)" if name == "nearest" else f"{name}, antialiased"
        found[shown] = partial(neutral.pillow_resize, height=height, width=width, name=name)
    for name in ("bilinear", "bicubic", "nearest"):
        shown = f"{name} without antialiasing"
        found[shown] = partial(neutral.point_resize, height=height, width=width, name=name)
    found["area"] = partial(neutral.area_resize, height=height, width=width)
    return found


_FIX_SIZE = "Give both one size, {} (height × width): Resize(n) makes n the shorter side only."
_FIX_FILTER = """MindSpore's C++ resize does not antialias; on images of Pillow it does: decode \
by vision.Decode(to_pil=True), and give Resize the interpolation by name (Inter.BILINEAR, \
Inter.BICUBIC)."""


def _propose_resize(observations: Sequence[Observation]) -> Iterator[Candidate]:
    if any(one.x is None for one in observations):
        return
    first = as_hwc(observations[0].x)  # type: ignore[arg-type]  # none is None
    if first is None or first.shape[2] > 4 or as_hwc(observations[0].b) is None:
        return
    names = list(_resizers(1, 1))
    reference = next(
        (name for name in names if _near(_resized(observations[0], name, "a"), observations[0].a)),
        "another",
    )
    for name in names:
        if name == reference and observations[0].a.shape == observations[0].b.shape:
            continue
        shapes = observations[0].a.shape != observations[0].b.shape
        sizes = [f" to {_size(v)}" * shapes for v in (observations[0].a, observations[0].b)]
        fixes = [_FIX_SIZE.format(_size(observations[0].a))] * shapes
        yield Candidate(
            f"B resizes{sizes[1]} by {name}, A{sizes[0]} by {reference}",
            lambda one, name=name: _resized(one, name, "b"),  # type: ignore[misc]
            f"{reference}{sizes[0]}",
            f"{name}{sizes[1]}",
            " ".join([*fixes, *[_FIX_FILTER] * (name != reference)]),
            levels=1.5,
            complexity=2,
        )


def _size(values: Numbers) -> str:
    picture = as_hwc(values)
    return "?" if picture is None else f"{picture.shape[0]} × {picture.shape[1]}"


def _resized(one: Observation, name: str, side: str) -> Numbers | None:
    """What a named way of resizing makes of x, in the size and layout of a side."""
    target = one.b if side == "b" else one.a
    picture, shown = as_hwc(one.x), as_hwc(target)  # type: ignore[arg-type]
    if picture is None or shown is None or picture.shape[2] != shown.shape[2]:
        return None
    if picture.shape[:2] == shown.shape[:2]:
        return None
    found = _resizers(shown.shape[0], shown.shape[1])[name](picture)
    if target.dtype.kind == "f" and picture.dtype == np.uint8 and float(target.max()) <= 1.001:
        found = found / np.float32(255)
    return like(found, target)


def _near(found: Numbers | None, wanted: Numbers) -> bool:
    if found is None or found.shape != wanted.shape or not wanted.size:
        return False
    unit = 1.0 if wanted.dtype.kind in "iu" or float(wanted.max()) > 1.001 else 1 / 255
    apart = np.abs(found.astype(np.float64) - wanted.astype(np.float64))
    return float(np.quantile(apart, 0.999)) <= 1.0 * unit


def _propose_crop(observations: Sequence[Observation]) -> Iterator[Candidate]:
    yield from _crops_of_input(observations)
    yield from _shifts(observations)


def _crops_of_input(observations: Sequence[Observation]) -> Iterator[Candidate]:
    """Windows of what entered both: which offset each side takes."""
    if any(one.x is None for one in observations):
        return
    for name, rule in neutral.OFFSETS.items():

        def window(one: Observation, rule: Callable[[int], int] = rule) -> Numbers | None:
            picture, shown = as_hwc(one.x), as_hwc(one.b)  # type: ignore[arg-type]
            if picture is None or shown is None or picture.shape[2] != shown.shape[2]:
                return None
            height, width = shown.shape[:2]
            if (height, width) == picture.shape[:2]:
                return None
            top, left = rule(picture.shape[0] - height), rule(picture.shape[1] - width)
            return like(neutral.crop(picture, top, left, height, width), one.b)

        yield Candidate(
            f"B cuts its window of {_size(observations[0].b)} at an offset that is {name}; A cuts "
            f"{_size(observations[0].a)} otherwise",
            window,
            f"another offset, {_size(observations[0].a)}",
            f"{name}, {_size(observations[0].b)}",
            "MindSpore's C++ CenterCrop rounds the offset down, torchvision rounds half to even; "
            "on images of Pillow (vision.Decode(to_pil=True)) both are equal.",
        )


def _shifts(observations: Sequence[Observation]) -> Iterator[Candidate]:
    """Windows of one picture that are shifted, where what entered is not known."""
    one = observations[0]
    a, b = as_hwc(one.a), as_hwc(one.b)
    if a is None or b is None or a.shape != b.shape or min(a.shape[:2]) < 8:
        return
    found = _best_shift(a.astype(np.float64), b.astype(np.float64))
    if found is None:
        return
    down, right = found

    def shifted(o: Observation) -> Numbers | None:
        picture = as_hwc(o.a)
        if picture is None:
            return None
        empty = np.full(picture.shape, np.nan)
        (from_y, to_y), (from_x, to_x) = (
            _slices(shift, size)
            for shift, size in zip((down, right), picture.shape[:2], strict=True)
        )
        empty[to_y, to_x] = picture[from_y, from_x]
        return like(empty, o.b)

    yield Candidate(
        f"B's window lies {down} lower and {right} further right than A's",
        shifted,
        "offset 0, 0",
        f"offset {down}, {right}",
        "Cut at the same offset: MindSpore's C++ CenterCrop rounds it down, torchvision rounds "
        "half to even.",
    )


def _slices(shift: int, size: int) -> tuple[slice, slice]:
    """Where an axis that is shifted is read, and where it is written."""
    reading = slice(max(0, shift), size + min(0, shift))
    return reading, slice(max(0, -shift), size - max(0, shift))


def _best_shift(a: Numbers, b: Numbers) -> tuple[int, int] | None:
    """The smallest shift under which what both windows show is equal; None where there is none."""
    first, second = a.sum(axis=2), b.sum(axis=2)
    most = [min(_MOST_SHIFT, extent // 3) for extent in first.shape]
    allowed = 1e-4 * max(1e-12, float(np.ptp(first)))
    shifts = itertools.product(*(range(-n, n + 1) for n in most))
    for down, right in sorted(shifts, key=lambda s: abs(s[0]) + abs(s[1])):
        (from_y, to_y), (from_x, to_x) = (
            _slices(down, first.shape[0]),
            _slices(right, first.shape[1]),
        )
        step = max(1, min(first.shape) // 24)
        apart = first[from_y, from_x][::step, ::step] - second[to_y, to_x][::step, ::step]
        if (down or right) and np.abs(apart).max(initial=0.0) <= allowed:
            return down, right
    return None


def _propose_border(observations: Sequence[Observation]) -> Iterator[Candidate]:
    """Equal inside, and another constant outside."""
    one = observations[0]
    if one.a.shape != one.b.shape or one.a.ndim < 2:
        return
    differs = one.a != one.b
    if not differs.any() or differs.mean() > 0.9:
        return
    values_a, values_b = np.unique(one.a[differs]), np.unique(one.b[differs])
    if len(values_a) != 1:
        return
    old = values_a[0]
    if len(values_b) == 1:
        new = values_b[0]
        yield Candidate(
            f"the border is filled with {number(float(new))} in B and {number(float(old))} in A",
            lambda o: np.where(_outside(o.a, old), new, o.a),
            number(float(old)),
            number(float(new)),
            "Give both the same fill value.",
            complexity=2,
        )
        return
    if one.x is None:
        return
    for mode in ("edge", "reflect", "symmetric"):
        yield Candidate(
            f"the border repeats the picture ({mode}) in B and is {number(float(old))} in A",
            lambda o, mode=mode: _padded(o, mode),  # type: ignore[misc]
            f"constant {number(float(old))}",
            mode,
            "Give both the same padding mode.",
            complexity=2,
        )


def _outside(values: Numbers, fill: Numbers) -> Numbers:
    """Where an array is a constant from one of its sides on."""
    equal = values == fill
    axis = channel_axis(values)
    rows = tuple(n for n in range(values.ndim) if axis is None or n != values.ndim + axis)[-2:]
    found = np.zeros_like(equal)
    for n in rows:
        forward = np.logical_and.accumulate(equal, axis=n)
        backward = np.flip(np.logical_and.accumulate(np.flip(equal, n), axis=n), n)
        found |= forward | backward
    return found


def _padded(one: Observation, mode: str) -> Numbers | None:
    picture, shown = as_hwc(one.x), as_hwc(one.b)  # type: ignore[arg-type]
    if picture is None or shown is None:
        return None
    down, right = shown.shape[0] - picture.shape[0], shown.shape[1] - picture.shape[1]
    if down < 0 or right < 0:
        return None
    widths = ((down // 2, down - down // 2), (right // 2, right - right // 2), (0, 0))
    return like(np.pad(picture, widths, mode=mode), one.b)  # type: ignore[call-overload]


def _propose_decode(observations: Sequence[Observation]) -> Iterator[Candidate]:
    if any(one.encoded is None for one in observations):
        return
    for name, decode in (
        ("grey, then repeated", lambda i: i.convert("L").convert("RGB")),
        ("turned as its EXIF says", _turned),
        ("without its colour profile", lambda i: i.convert("RGB")),
        ("halved by the decoder (draft)", lambda i: i.reduce(2).convert("RGB")),
    ):

        def decoded(one: Observation, decode: Callable[..., object] = decode) -> Numbers | None:
            try:
                return like(np.asarray(decode(open_image(one.encoded or b""))), one.b)
            except (UndecodableError, ValueError):
                return None

        yield Candidate(
            f"B decodes {name}",
            decoded,
            "as it is",
            name,
            "Decode in the same way in both.",
            levels=1.0,
            complexity=2,
        )


def _turned(image: Any) -> Any:
    from PIL import ImageOps

    return ImageOps.exif_transpose(image).convert("RGB")


def _is_untouched(one: Observation) -> bool:
    """Whether A only passes on what entered."""
    picture, own = as_hwc(one.x), as_hwc(one.a)  # type: ignore[arg-type]
    return picture is not None and own is not None and np.array_equal(picture, own)


def _propose_missing(observations: Sequence[Observation]) -> Iterator[Candidate]:
    if any(one.x is None for one in observations) or all(_is_untouched(o) for o in observations):
        return
    yield Candidate(
        "B leaves out what A does here",
        lambda one: one.x,
        "applied",
        "left out",
        "Add the transform to B, or take it out of A.",
        complexity=0,
    )


HYPOTHESES = (
    Hypothesis(
        "data.transform_missing",
        "B leaves out a transform.",
        _propose_missing,
        (Example("x[::-1]", "x", sees_input=True),),
        (Example("x[::-1]", "x[:, ::-1]", sees_input=True),),
    ),
    Hypothesis(
        "data.channel_order",
        "The channels of a picture stand in another order.",
        _propose_channels,
        (
            Example("x", "x[..., ::-1]", port="BGR"),
            Example("x.transpose(2,0,1)", "x[..., ::-1].transpose(2,0,1)"),
        ),
        (Example("x", "x"), Example("x", "255 - x")),
    ),
    Hypothesis(
        "data.grayscale",
        "One side has colours, the other grey values.",
        _propose_grey,
        (Example("x", "f.grey(x)", _PHOTO, port="grey"),),
        (Example("x", "255 - x"),),
    ),
    Hypothesis(
        "data.layout",
        "The axes stand in another order, or one of extent 1 is missing.",
        _propose_layout,
        (Example("x", "x.transpose(2,0,1)", port="CHW"), Example("x", "x[None]")),
        (Example("x", "x[:, :5]"),),
    ),
    Hypothesis(
        "data.flip",
        "One side mirrors the picture.",
        _propose_flip,
        (Example("x", "x[:, ::-1]", port="left and right"), Example("x", "x[::-1]")),
        (Example("x", "x.copy()"),),
    ),
    Hypothesis(
        "data.crop",
        "Windows of the picture lie at different offsets or have different sizes.",
        _propose_crop,
        (
            Example("f.crop(x, 8, 10, 24, 32)", "f.crop(x, 9, 10, 24, 32)", _PHOTO),
            Example(
                "f.crop(x, 8, 9, 23, 33)", "f.crop(x, 9, 10, 23, 33)", _PHOTO, sees_input=True,
                port="rounded up, 23 × 33",
            ),
        ),
        (Example("x", "255 - x", _PHOTO),),
    ),
    Hypothesis(
        "data.resize",
        "Pictures are resized by another filter, with or without antialiasing, or to another size.",
        _propose_resize,
        (
            Example(
                "f.pillow_resize(x, 17, 21, 'bilinear')", "f.point_resize(x, 17, 21, 'bilinear')",
                "f.busy(rng, 40, 52)", sees_input=True, port="bilinear without antialiasing",
            ),
            Example(
                "f.pillow_resize(x, 17, 21, 'bilinear')", "f.pillow_resize(x, 17, 21, 'bicubic')",
                "f.busy(rng, 40, 52)", sees_input=True, port="bicubic, antialiased",
            ),
        ),
        (Example("x", "255 - x", _PHOTO, sees_input=True),),
    ),
    Hypothesis(
        "data.pad",
        "The border is filled with another value or in another way.",
        _propose_border,
        (
            Example(
                "np.pad(x, ((2,2),(2,2),(0,0)))",
                "np.pad(x, ((2,2),(2,2),(0,0)), constant_values=114)",
                "rng.integers(1, 256, (12, 10, 3)).astype(np.uint8)",
                port="114",
            ),
        ),
        (Example("x", "255 - x"),),
    ),
    Hypothesis(
        "data.decode",
        "The encoded picture is decoded otherwise.",
        _propose_decode,
        (),
    ),
)  # fmt: skip

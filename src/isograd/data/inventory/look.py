"""Samples to look at: a seeded uniform choice in one pass, made small at once."""

from __future__ import annotations

import io
import json
import wave

import numpy as np
from numpy.typing import NDArray

from isograd.data.inventory.masks import image_among, legend, mask_of, overlaid
from isograd.data.inventory.statistics import drawn_of_first
from isograd.data.model import Shown
from isograd.data.sources.base import Sample, Value
from isograd.data.sources.media import kind_of, pillow
from isograd.data.vocabulary import Vocabulary
from isograd.tensors import Array

#: Pixels of the longer side of a thumbnail.
_SIDE = 128
#: Pixels of a side from which on only every second, third, … row and column is drawn.
_MOST_SIDE = 1024
_TEXT_CHARACTERS = 400
_SOUND_BYTES = 1 << 18
_BOX_COLOUR = (255, 64, 64)


class Gallery:
    """A uniform choice of samples by Vitter's algorithm R, drawn as they come."""

    def __init__(
        self,
        room: int,
        seed: int,
        label_names: tuple[str, ...] = (),
        vocabulary: Vocabulary | None = None,
    ) -> None:
        self._room = room
        self._names = label_names
        self._vocabulary = vocabulary
        self._generator = np.random.default_rng((seed, 34))
        self._kept: list[tuple[int, Shown]] = []
        self._seen = 0

    def offer(self, sample: Sample, decoded: dict[str, Array], label: str | None) -> None:
        """Keep the sample with the right probability.

        decoded: by field, pixels (H, W) or (H, W, C) or tones (T,) or (T, channels), in their
        dtype.
        """
        position = self._seen
        self._seen += 1
        if position < self._room:
            self._kept.append((position, self._shown(sample, decoded, label)))
            return
        place = int(self._generator.integers(position + 1))
        if place < self._room:
            self._kept[place] = (position, self._shown(sample, decoded, label))

    def join(self, other: Gallery) -> None:
        """Choose uniformly of both; the samples of the other follow those of this one."""
        room = min(self._room, len(self._kept) + len(other._kept))
        own = drawn_of_first(self._seen, other._seen, room, self._generator)
        own = min(max(own, room - len(other._kept)), len(self._kept))
        first = self._generator.permutation(len(self._kept))[:own]
        second = self._generator.permutation(len(other._kept))[: room - own]
        later = [(place + self._seen, shown) for place, shown in other._kept]
        self._kept = [self._kept[n] for n in first] + [later[n] for n in second]
        self._seen += other._seen

    def shown(self) -> tuple[Shown, ...]:
        """The choice in the order of the source."""
        return tuple(one for _, one in sorted(self._kept, key=lambda pair: pair[0]))

    def _shown(self, sample: Sample, decoded: dict[str, Array], label: str | None) -> Shown:
        pictures: dict[str, bytes] = {}
        sounds: dict[str, bytes] = {}
        texts: dict[str, str] = {}
        legends: dict[str, tuple[tuple[str, str], ...]] = {}
        image, masks = _image_and_masks(sample, decoded)
        boxes = sample.fields.get("boxes")
        for name, value in sample.fields.items():
            if isinstance(value, bytes) and kind_of(value) == "audio":
                sounds[name] = value if len(value) <= _SOUND_BYTES else _beginning(value)
                pictures[f"{name} (waveform)"] = waveform(decoded[name])
                continue
            if name in masks and image is not None:
                drawn = as_picture(image, boxes, masks[name])
                if drawn is not None:
                    pictures[name], legends[name] = drawn, legend(masks[name])
                    continue
            pixels = decoded.get(name, value)
            picture = as_picture(pixels, boxes) if isinstance(pixels, np.ndarray) else None
            if picture is not None:
                pictures[name] = picture
            else:
                texts[name] = as_text(value)
                tokens = self._tokens(value) if name != label else ""
                if tokens:
                    texts[f"{name} (tokens)"] = tokens
        return Shown(
            sample.key,
            sample.split,
            self._label(sample, label),
            pictures,
            sounds,
            texts,
            legends=legends,
        )

    def _tokens(self, value: Value) -> str:
        """The tokens of a sequence of ids; "" where there is no vocabulary or it is none."""
        if self._vocabulary is None or not isinstance(value, np.ndarray):
            return ""
        return self._vocabulary.decode(value) if self._vocabulary.can_decode(value) else ""

    def _label(self, sample: Sample, label: str | None) -> str:
        value = sample.fields.get(label or "")
        if not isinstance(value, np.ndarray) or value.ndim or value.dtype.kind not in "biu":
            return ""
        number = int(value)
        name = self._names[number] if 0 <= number < len(self._names) else ""
        return f"{number} {name}".strip()


def _image_and_masks(
    sample: Sample, decoded: dict[str, Array]
) -> tuple[Array | None, dict[str, Array]]:
    """The image of a sample and, by field, the masks of its height and width."""
    arrays: dict[str, Array] = {}
    encoded: set[str] = set()
    for field, value in sample.fields.items():
        if isinstance(value, np.ndarray):
            arrays[field] = value
        elif isinstance(value, bytes) and field in decoded and kind_of(value) == "image":
            arrays[field] = decoded[field]
            encoded.add(field)
    name = image_among(arrays, frozenset(encoded))
    picture = None if name is None else _plane(arrays[name])
    if name is None or picture is None:
        return None, {}
    height, width = picture.shape[:2]
    found = {
        other: mask_of(values, height, width) for other, values in arrays.items() if other != name
    }
    return picture, {other: mask for other, mask in found.items() if mask is not None}


def as_picture(
    values: Array, boxes: Value | None = None, mask: Array | None = None
) -> bytes | None:
    """A PNG of an image or a heat map of numbers; None for what has fewer than two axes.

    boxes (N, 4): x, y, width and height in pixels; mask (H, W): drawn in colours over the image.

    values: any shape and real dtype; (H, W), (H, W, C) or (C, H, W) is an image or a heat map.
    mask: (H, W) integers, drawn in colours over the image.
    """
    plane = _plane(values)
    if plane is None:
        return None
    step = max(1, max(plane.shape[:2]) // _MOST_SIDE)
    pixels = _pixels(plane[::step, ::step])
    if mask is not None:
        pixels = overlaid(pixels, mask[::step, ::step])
    image_module = pillow()
    image = image_module.fromarray(np.ascontiguousarray(pixels))
    if isinstance(boxes, np.ndarray) and _are_boxes(boxes):
        image = _with_boxes(image.convert("RGB"), boxes.astype(np.float64) / step)
    if max(image.size) > _SIDE:
        image.thumbnail((_SIDE, _SIDE))
    elif max(image.size) < _SIDE // 2:
        factor = _SIDE // 2 // max(image.size)
        size = (image.size[0] * factor, image.size[1] * factor)
        image = image.resize(size, image_module.Resampling.NEAREST)
    stream = io.BytesIO()
    image.save(stream, "PNG")
    return stream.getvalue()


def _are_boxes(values: Array) -> bool:
    return values.ndim == 2 and values.shape[1] == 4 and values.dtype.kind in "iuf"


def _plane(values: Array) -> Array | None:
    """An array as (H, W) or (H, W, C) that can be drawn; None where it cannot."""
    while values.ndim > 3 and values.size:
        values = values[0]
    if values.ndim == 3 and values.shape[0] in (1, 3) and values.shape[2] not in (1, 3, 4):
        values = values.transpose(1, 2, 0)
    if values.ndim == 3 and values.shape[2] not in (1, 3, 4):
        values = values[..., 0]
    if values.ndim == 3 and values.shape[2] == 1:
        values = values[..., 0]
    if values.ndim not in (2, 3) or not values.size or values.dtype.kind not in "biuf":
        return None
    if values.shape[0] < 2 or values.shape[1] < 2:
        return None
    return values


def _pixels(values: Array) -> NDArray[np.uint8]:
    """8-bit pixels of an array: as they are, or scaled from its smallest to its greatest."""
    if values.dtype == np.uint8:
        return values.astype(np.uint8, copy=False)
    numbers = np.nan_to_num(values.astype(np.float64), posinf=0.0, neginf=0.0)
    low, high = float(numbers.min()), float(numbers.max())
    scale = 255.0 / (high - low) if high > low else 0.0
    return ((numbers - low) * scale).round().astype(np.uint8)


def _with_boxes(image: object, boxes: Array) -> object:
    from PIL import ImageDraw

    draw = ImageDraw.Draw(image)  # type: ignore[arg-type]  # an image of Pillow's
    for x, y, width, height in boxes[:64].tolist():
        if width > 0 and height > 0:
            draw.rectangle((x, y, x + width, y + height), outline=_BOX_COLOUR, width=2)
    return image


def waveform(tones: Array) -> bytes:
    """A PNG of a sound's envelope, 256 × 64 pixels.

    tones: (T,) or (T, channels), any real dtype; the first channel is drawn.
    """
    mono = tones if tones.ndim == 1 else tones[:, 0]
    columns, height = 256, 64
    picture = np.full((height, columns), 255, np.uint8)
    peak = max(1.0, float(np.abs(mono.astype(np.float64)).max(initial=0.0)))
    for number, part in enumerate(np.array_split(mono.astype(np.float64), columns)):
        if part.size:
            top = int((1 - part.max() / peak) / 2 * (height - 1))
            bottom = int((1 - part.min() / peak) / 2 * (height - 1))
            picture[max(0, top) : min(height, bottom + 1), number] = 60
    picture[height // 2, :] = np.minimum(picture[height // 2, :], 160)
    found = as_picture(picture)
    assert found is not None
    return found


def _beginning(sound: bytes) -> bytes:
    """The first part of a WAVE file, as one."""
    with wave.open(io.BytesIO(sound)) as source:
        stream = io.BytesIO()
        with wave.open(stream, "wb") as target:
            target.setparams(source.getparams())
            width = source.getsampwidth() * source.getnchannels()
            target.writeframes(source.readframes(_SOUND_BYTES // max(1, width)))
    return stream.getvalue()


def as_text(value: Value) -> str:
    """A field in a line of text."""
    if isinstance(value, str):
        return value[:_TEXT_CHARACTERS]
    if isinstance(value, bytes):
        head = value[:64]
        is_text = all(32 <= byte < 127 or byte in (9, 10, 13) for byte in head)
        shown = (
            value[:_TEXT_CHARACTERS].decode("utf-8", errors="replace") if is_text else head.hex()
        )
        return f"{shown} ({len(value):,} bytes)"
    flat = value.reshape(-1)
    numbers = json.dumps([_short(number) for number in flat[:32].tolist()])
    more = f" … {flat.size:,} in all" if flat.size > 32 else ""
    return f"{numbers}{more}" if value.ndim else numbers.strip("[]")


def _short(number: float | int | bool) -> float | int | bool:
    return float(f"{number:.5g}") if isinstance(number, float) else number

"""torchvision.transforms on images of PIL and on tensors; random draws are those of numpy."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

import mindspore as ms  # noqa: TID253
import numpy as np
from PIL import Image, ImageEnhance, ImageOps


class InterpolationMode(Enum):
    """How pixels between pixels are drawn."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


_FILTERS = {
    InterpolationMode.NEAREST: Image.Resampling.NEAREST,
    InterpolationMode.NEAREST_EXACT: Image.Resampling.NEAREST,
    InterpolationMode.BILINEAR: Image.Resampling.BILINEAR,
    InterpolationMode.BICUBIC: Image.Resampling.BICUBIC,
    InterpolationMode.BOX: Image.Resampling.BOX,
    InterpolationMode.HAMMING: Image.Resampling.HAMMING,
    InterpolationMode.LANCZOS: Image.Resampling.LANCZOS,
}


def _pair(size: Any) -> tuple[int, int]:
    if isinstance(size, numbers.Number):
        return int(size), int(size)  # type: ignore[call-overload]
    several = [int(part) for part in size]
    return (several[0], several[0]) if len(several) == 1 else (several[0], several[1])


def _height_width(image: Any) -> tuple[int, int]:
    if isinstance(image, Image.Image):
        return image.height, image.width
    return int(image.shape[-2]), int(image.shape[-1])


def _crop(image: Any, top: int, left: int, height: int, width: int) -> Any:
    """A part of an image; what lies outside is 0."""
    if isinstance(image, Image.Image):
        return image.crop((left, top, left + width, top + height))
    rows, columns = _height_width(image)
    inside = image.asnumpy()[
        ..., max(top, 0) : max(top + height, 0), max(left, 0) : max(left + width, 0)
    ]
    borders = [(0, 0)] * (image.ndim - 2)
    borders += [(max(-top, 0), max(top + height - rows, 0))]
    borders += [(max(-left, 0), max(left + width - columns, 0))]
    return ms.Tensor(np.pad(inside, borders))


def _resized(image: Any, height: int, width: int, mode: Any) -> Any:
    mode = _FILTERS.get(mode, mode)
    if isinstance(image, Image.Image):
        return image.resize((width, height), mode)
    given = image.asnumpy()
    planes = given.reshape(-1, *given.shape[-2:]).astype(np.float32)
    drawn = [np.asarray(Image.fromarray(plane).resize((width, height), mode)) for plane in planes]
    result = np.stack(drawn).reshape(*given.shape[:-2], height, width)
    if not np.issubdtype(given.dtype, np.floating):
        limits = np.iinfo(given.dtype)
        result = np.clip(np.round(result), limits.min, limits.max)
    return ms.Tensor(result.astype(given.dtype))


def to_tensor(pic: Any) -> Any:
    """Height, width, channel in 0..255 as channel, height, width in 0..1; other dtypes unscaled."""
    values = np.asarray(pic)
    if isinstance(pic, Image.Image) and pic.mode == "1":
        values = values.astype(np.uint8) * 255
    values = values[:, :, None] if values.ndim == 2 else values
    values = np.ascontiguousarray(values.transpose(2, 0, 1))
    return ms.Tensor(values.astype(np.float32) / 255 if values.dtype == np.uint8 else values)


def image_normalize(tensor: Any, mean: Any, std: Any, inplace: bool = False) -> Any:
    """Each channel less its mean, over its deviation."""
    values = tensor.asnumpy()
    shape = (-1, 1, 1)
    centre = np.asarray(mean, values.dtype).reshape(shape)
    return ms.Tensor((values - centre) / np.asarray(std, values.dtype).reshape(shape))


def hflip(img: Any) -> Any:
    """Left and right exchanged."""
    if isinstance(img, Image.Image):
        return img.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    return ms.Tensor(np.ascontiguousarray(img.asnumpy()[..., ::-1]))


def vflip(img: Any) -> Any:
    """Top and bottom exchanged."""
    if isinstance(img, Image.Image):
        return img.transpose(Image.Transpose.FLIP_TOP_BOTTOM)
    return ms.Tensor(np.ascontiguousarray(img.asnumpy()[..., ::-1, :]))


def image_resize(
    img: Any,
    size: Any,
    interpolation: Any = InterpolationMode.BILINEAR,
    max_size: int | None = None,
    antialias: Any = True,
) -> Any:
    """To height and width; one number is that of the shorter side."""
    height, width = _height_width(img)
    if isinstance(size, (list, tuple)) and len(size) == 2:
        return _resized(img, int(size[0]), int(size[1]), interpolation)
    short, long = min(height, width), max(height, width)
    new_short = int(_pair(size)[0])
    new_long = int(new_short * long / short)
    if max_size is not None and new_long > max_size:
        new_short, new_long = int(max_size * new_short / new_long), max_size
    wanted = (new_long, new_short) if width <= height else (new_short, new_long)
    return img if wanted == (height, width) else _resized(img, *wanted, interpolation)


def center_crop(img: Any, output_size: Any) -> Any:
    """The middle; an image that is too small gets a border of 0."""
    wanted = _pair(output_size)
    height, width = _height_width(img)
    if wanted[0] > height or wanted[1] > width:
        over = [max(0, wanted[0] - height), max(0, wanted[1] - width)]
        top, left = over[0] // 2, over[1] // 2
        img = _crop(img, -top, -left, height + over[0], width + over[1])
        height, width = height + over[0], width + over[1]
    top, left = (round((n - m) / 2.0) for n, m in zip((height, width), wanted, strict=True))
    return _crop(img, top, left, *wanted)


class Compose:
    """Transforms one after the other."""

    def __init__(self, transforms: Sequence[Callable[[Any], Any]]) -> None:
        self.transforms = transforms

    def __call__(self, img: Any) -> Any:
        for transform in self.transforms:
            img = transform(img)
        return img


class ToTensor:
    """See `to_tensor`."""

    def __call__(self, pic: Any) -> Any:
        return to_tensor(pic)


class PILToTensor:
    """Height, width, channel as channel, height, width."""

    def __call__(self, pic: Any) -> Any:
        values = np.asarray(pic)
        values = values[:, :, None] if values.ndim == 2 else values
        return ms.Tensor(np.ascontiguousarray(values.transpose(2, 0, 1)))


class ToPILImage:
    """A tensor of channel, height, width, or an array of height, width, channel, as an image."""

    def __init__(self, mode: Any = None) -> None:
        self.mode = mode

    def __call__(self, pic: Any) -> Any:
        is_tensor = isinstance(pic, ms.Tensor)
        values = pic.asnumpy() if is_tensor else np.asarray(pic)
        values = values.transpose(1, 2, 0) if is_tensor and values.ndim == 3 else values
        if is_tensor and np.issubdtype(values.dtype, np.floating):
            values = (values * 255).astype(np.uint8)
        values = values[:, :, 0] if values.ndim == 3 and values.shape[2] == 1 else values
        return Image.fromarray(values, self.mode)


class Normalize:
    """See `image_normalize`."""

    def __init__(self, mean: Any, std: Any, inplace: bool = False) -> None:
        self.mean, self.std = mean, std

    def __call__(self, tensor: Any) -> Any:
        return image_normalize(tensor, self.mean, self.std)


class ConvertImageDtype:
    """Whole numbers to 0..1 and back."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype

    def __call__(self, image: Any) -> Any:
        values = image.asnumpy()
        wanted = ms.Tensor([0]).astype(self.dtype).asnumpy().dtype
        was_float = np.issubdtype(values.dtype, np.floating)
        if was_float == np.issubdtype(wanted, np.floating):
            return ms.Tensor(values.astype(wanted))
        if was_float:
            most = float(np.iinfo(wanted).max)
            return ms.Tensor((values * (most + 1.0 - 1e-3)).astype(wanted))
        return ms.Tensor(values.astype(wanted) / np.iinfo(values.dtype).max)


class Lambda:
    """A function."""

    def __init__(self, lambd: Callable[[Any], Any]) -> None:
        self.lambd = lambd

    def __call__(self, img: Any) -> Any:
        return self.lambd(img)


class Resize:
    """See `image_resize`."""

    def __init__(
        self,
        size: Any,
        interpolation: Any = InterpolationMode.BILINEAR,
        max_size: int | None = None,
        antialias: Any = True,
    ) -> None:
        self.size, self.interpolation, self.max_size = size, interpolation, max_size

    def __call__(self, img: Any) -> Any:
        return image_resize(img, self.size, self.interpolation, self.max_size)


class CenterCrop:
    """See `center_crop`."""

    def __init__(self, size: Any) -> None:
        self.size = size

    def __call__(self, img: Any) -> Any:
        return center_crop(img, self.size)


class Pad:
    """A border; padding is left, top, right, bottom, or fewer numbers."""

    def __init__(self, padding: Any, fill: Any = 0, padding_mode: str = "constant") -> None:
        several: list[Any] = [padding] if isinstance(padding, int) else list(padding)
        self.left, self.top = several[0], several[min(1, len(several) - 1)]
        self.right = several[2] if len(several) == 4 else self.left
        self.bottom = several[3] if len(several) == 4 else self.top
        self.fill, self.padding_mode = fill, padding_mode

    def __call__(self, img: Any) -> Any:
        borders = [(self.top, self.bottom), (self.left, self.right)]
        mode = {"constant": "constant", "edge": "edge"}.get(self.padding_mode, self.padding_mode)
        more = {"constant_values": self.fill} if mode == "constant" else {}
        if isinstance(img, Image.Image):
            if mode == "constant":
                border = (self.left, self.top, self.right, self.bottom)
                return ImageOps.expand(img, border, self.fill)
            values = np.asarray(img)
            padded = np.pad(values, borders + [(0, 0)] * (values.ndim - 2), mode)  # type: ignore[call-overload]
            return Image.fromarray(padded)
        values = img.asnumpy()
        return ms.Tensor(np.pad(values, [(0, 0)] * (values.ndim - 2) + borders, mode, **more))  # type: ignore[call-overload]


class Grayscale:
    """One channel of brightness, or three equal ones."""

    def __init__(self, num_output_channels: int = 1) -> None:
        self.num_output_channels = num_output_channels

    def __call__(self, img: Any) -> Any:
        if isinstance(img, Image.Image):
            grey = img.convert("L")
            return Image.merge("RGB", [grey] * 3) if self.num_output_channels == 3 else grey
        values = img.asnumpy()
        weighed = 0.2989 * values[0] + 0.587 * values[1] + 0.114 * values[2]
        return ms.Tensor(np.stack([weighed.astype(values.dtype)] * self.num_output_channels))


class RandomHorizontalFlip:
    """Left and right exchanged with probability p."""

    def __init__(self, p: float = 0.5) -> None:
        self.p = p

    def __call__(self, img: Any) -> Any:
        return hflip(img) if np.random.rand() < self.p else img


class RandomVerticalFlip:
    """Top and bottom exchanged with probability p."""

    def __init__(self, p: float = 0.5) -> None:
        self.p = p

    def __call__(self, img: Any) -> Any:
        return vflip(img) if np.random.rand() < self.p else img


class RandomCrop:
    """A part at a random place."""

    def __init__(
        self,
        size: Any,
        padding: Any = None,
        pad_if_needed: bool = False,
        fill: Any = 0,
        padding_mode: str = "constant",
    ) -> None:
        self.size, self.padding, self.pad_if_needed = _pair(size), padding, pad_if_needed
        self.fill, self.padding_mode = fill, padding_mode

    def __call__(self, img: Any) -> Any:
        if self.padding is not None:
            img = Pad(self.padding, self.fill, self.padding_mode)(img)
        height, width = _height_width(img)
        if self.pad_if_needed:
            across, down = max(0, self.size[1] - width), max(0, self.size[0] - height)
            img = Pad((across, down), self.fill, self.padding_mode)(img)
            height, width = _height_width(img)
        if self.size[0] > height or self.size[1] > width:
            raise ValueError(f"crop size {self.size} is larger than the image ({height}, {width})")
        top = np.random.randint(0, height - self.size[0] + 1)
        left = np.random.randint(0, width - self.size[1] + 1)
        return _crop(img, int(top), int(left), *self.size)


class RandomResizedCrop:
    """A part of random area and ratio, drawn in one size."""

    def __init__(
        self,
        size: Any,
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: Any = InterpolationMode.BILINEAR,
        antialias: Any = True,
    ) -> None:
        self.size, self.scale, self.ratio = _pair(size), scale, ratio
        self.interpolation = interpolation

    def __call__(self, img: Any) -> Any:
        return _resized(
            _crop(img, *self._part(*_height_width(img))), *self.size, self.interpolation
        )

    def _part(self, height: int, width: int) -> tuple[int, int, int, int]:
        for _ in range(10):
            area = height * width * np.random.uniform(self.scale[0], self.scale[1])
            ratio = math.exp(np.random.uniform(math.log(self.ratio[0]), math.log(self.ratio[1])))
            across, down = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < across <= width and 0 < down <= height:
                top = np.random.randint(0, height - down + 1)
                return int(top), int(np.random.randint(0, width - across + 1)), down, across
        across, down = width, height
        if width / height < min(self.ratio):
            down = round(width / min(self.ratio))
        elif width / height > max(self.ratio):
            across = round(height * max(self.ratio))
        return (height - down) // 2, (width - across) // 2, down, across


class RandomApply:
    """Transforms with probability p."""

    def __init__(self, transforms: Sequence[Callable[[Any], Any]], p: float = 0.5) -> None:
        self.transforms, self.p = transforms, p

    def __call__(self, img: Any) -> Any:
        return Compose(self.transforms)(img) if np.random.rand() < self.p else img


class RandomGrayscale:
    """Brightness alone with probability p."""

    def __init__(self, p: float = 0.1) -> None:
        self.p = p

    def __call__(self, img: Any) -> Any:
        bands = len(img.getbands()) if isinstance(img, Image.Image) else int(img.shape[0])
        return Grayscale(bands)(img) if np.random.rand() < self.p else img


class ColorJitter:
    """Brightness, contrast, saturation and hue of an image, changed at random."""

    def __init__(
        self, brightness: Any = 0, contrast: Any = 0, saturation: Any = 0, hue: Any = 0
    ) -> None:
        self.brightness, self.contrast = self._range(brightness), self._range(contrast)
        self.saturation = self._range(saturation)
        self.hue = (-hue, hue) if isinstance(hue, numbers.Number) else tuple(hue)  # type: ignore[operator]

    @staticmethod
    def _range(value: Any) -> tuple[float, float]:
        if isinstance(value, numbers.Number):
            return max(0.0, 1 - value), 1 + value  # type: ignore[operator]
        return float(value[0]), float(value[1])

    def __call__(self, img: Any) -> Any:
        kinds = (ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color, None)
        ranges = (self.brightness, self.contrast, self.saturation, self.hue)
        for number in np.random.permutation(4):
            kind, (low, high) = kinds[number], ranges[number]
            factor = np.random.uniform(low, high)
            if kind is not None and (low, high) != (1.0, 1.0):
                img = kind(img).enhance(factor)
            elif kind is None and (low, high) != (0, 0):
                hue, *others = img.convert("HSV").split()
                turned = (np.asarray(hue).astype(np.int16) + int(factor * 255)) % 256
                parts = (Image.fromarray(turned.astype(np.uint8)), *others)
                img = Image.merge("HSV", parts).convert(img.mode)
        return img

"""Encoded images and sounds: recognised by their first bytes, decoded within bounds by Pillow."""

from __future__ import annotations

import io
import warnings
import wave
from typing import Any

import numpy as np

from isograd.data.limits import MAX_PIXELS, MAX_RECORD_BYTES
from isograd.errors import DataError
from isograd.tensors import Array

_IMAGES = (
    (b"\xff\xd8\xff", "jpeg"),
    (b"\x89PNG\r\n\x1a\n", "png"),
    (b"GIF87a", "gif"),
    (b"GIF89a", "gif"),
    (b"BM", "bmp"),
    (b"II*\x00", "tiff"),
    (b"MM\x00*", "tiff"),
)
#: Formats that Pillow may open here.  Others (EPS runs Ghostscript) are never tried.
_ALLOWED = ("JPEG", "PNG", "GIF", "BMP", "TIFF", "WEBP", "PPM")


class UndecodableError(ValueError):
    """Bytes that are no whole image or sound, or declare more than is allowed."""


def kind_of(data: bytes) -> str | None:
    """ "image", "audio" or None, by the first bytes."""
    for magic, name in _IMAGES:
        if data.startswith(magic) and (name != "bmp" or _is_bmp(data)):
            return "image"
    if data[:4] == b"RIFF":
        return {b"WEBP": "image", b"WAVE": "audio"}.get(data[8:12])
    if data[:2] in (b"P4", b"P5", b"P6") and data[2:3].isspace():
        return "image"
    return None


def _is_bmp(data: bytes) -> bool:
    return len(data) >= 26 and int.from_bytes(data[14:18], "little") in (12, 40, 52, 56, 108, 124)


def pillow() -> Any:
    """Pillow's Image module; DataError where it is not installed."""
    try:
        from PIL import Image
    except ImportError as error:
        raise DataError(
            "images are decoded by Pillow, which is not installed",
            'Install it: pip install "isograd[data]".',
        ) from error
    return Image


def open_image(data: bytes) -> Any:
    """A decoded PIL image in its own mode; UndecodableError for what is no whole image.

    The size is checked before a pixel is decoded, so that a small file cannot ask for memory.
    """
    image_module = pillow()
    if len(data) > MAX_RECORD_BYTES:
        raise UndecodableError(f"it holds {len(data):,} bytes")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            image = image_module.open(io.BytesIO(data), formats=_ALLOWED)
            width, height = image.size
            if width * height > MAX_PIXELS:
                raise UndecodableError(
                    f"it declares {width:,} × {height:,} pixels, more than {MAX_PIXELS:,}"
                )
            image.load()
    except UndecodableError:
        raise
    except Exception as error:  # Pillow's decoders raise many kinds for damaged files
        said = str(error) or type(error).__name__
        raise UndecodableError(f"the image cannot be decoded ({said[:120]})") from error
    return image


def decode_image(data: bytes) -> Array:
    """Pixels as (H, W) or (H, W, C), uint8 or wider; palettes are turned into RGB."""
    image = open_image(data)
    if image.mode in ("P", "PA"):
        image = image.convert("RGBA" if "transparency" in image.info else "RGB")
    elif image.mode in ("CMYK", "YCbCr", "LAB", "HSV"):
        image = image.convert("RGB")
    elif image.mode == "1":
        image = image.convert("L")
    return np.asarray(image)


def image_size(data: bytes) -> tuple[int, int, str]:
    """Width, height and mode of an image, from its header alone."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            image = pillow().open(io.BytesIO(data), formats=_ALLOWED)
            return image.size[0], image.size[1], image.mode
    except DataError:
        raise
    except Exception as error:
        raise UndecodableError("the header of the image cannot be read") from error


_WIDTHS: dict[int, np.dtype[Any]] = {1: np.dtype("u1"), 2: np.dtype("<i2"), 4: np.dtype("<i4")}


def decode_audio(data: bytes) -> tuple[Array, int]:
    """Samples of a PCM WAVE file as (T,) or (T, channels), and its rate in Hz.

    Returns unsigned or signed integers of the file's width as dtype. Raises UndecodableError where
    the file is damaged or has another width.
    """
    try:
        with wave.open(io.BytesIO(data)) as file:
            parameters = file.getparams()
            dtype: np.dtype[Any] | None = _WIDTHS.get(parameters.sampwidth)
            if dtype is None or parameters.nchannels < 1:
                raise UndecodableError(f"the sound has {8 * parameters.sampwidth} bits a sample")
            announced = parameters.nframes * parameters.nchannels * parameters.sampwidth
            if announced > len(data):
                raise UndecodableError(f"the sound announces {announced:,} bytes and has fewer")
            values = np.frombuffer(file.readframes(parameters.nframes), dtype)
    except (wave.Error, EOFError, ValueError) as error:
        if isinstance(error, UndecodableError):
            raise
        raise UndecodableError(f"the sound cannot be decoded ({error})") from error
    if parameters.nchannels > 1:
        values = values.reshape(-1, parameters.nchannels)
    return values, parameters.framerate


def encode_png(pixels: Array) -> bytes:
    """A PNG of (H, W) or (H, W, 3 or 4) uint8 pixels.

    pixels: (H, W), (H, W, 3) or (H, W, 4) uint8.
    """
    stream = io.BytesIO()
    pillow().fromarray(np.ascontiguousarray(pixels)).save(stream, "PNG")
    return stream.getvalue()

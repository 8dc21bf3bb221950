"""Short-time Fourier transforms, and those of Hermitian signals."""

from __future__ import annotations

from typing import Any

import mindspore as ms  # noqa: TID253
from mindspore import ops  # noqa: TID253

from isograd.runtime import shapes


def stft(
    input: Any,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Any = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
) -> Any:
    """The spectrum of each window of a signal: (…, frequencies, frames), complex.

    Without return_complex, the real and imaginary parts on a last axis.
    """
    if center:
        input = shapes.pad(input, (n_fft // 2, n_fft // 2), pad_mode)
    step = n_fft // 4 if hop_length is None else hop_length
    weights = _window(window, n_fft, win_length)
    is_complex = input.is_complex() or weights.is_complex()
    if is_complex:
        input, weights = input.astype(ms.complex64), weights.astype(ms.complex64)
    frames = shapes.unfold_windows(input, -1, n_fft, step) * weights
    is_half = not is_complex if onesided is None else onesided
    norm = "ortho" if normalized else "backward"
    found = ops.rfft(frames, n_fft, -1, norm) if is_half else ops.fft(frames, n_fft, -1, norm)
    found = ops.swapaxes(found, -1, -2)
    is_shown_so = is_complex if return_complex is None else return_complex
    return found if is_shown_so else ops.stack([ops.real(found), ops.imag(found)], -1)


def istft(
    input: Any,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Any = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Any:
    """The signal of which these are the spectra: (…, frequencies, frames) to (…, samples)."""
    spectra = ops.swapaxes(input, -1, -2)
    norm = "ortho" if normalized else "backward"
    if return_complex:
        frames = ops.ifft(spectra, n_fft, -1, norm)
    else:
        frames = ops.irfft(spectra[..., : n_fft // 2 + 1], n_fft, -1, norm)
    step = n_fft // 4 if hop_length is None else hop_length
    weights = _window(window, n_fft, win_length)
    signal = _overlapped(frames * weights.astype(frames.dtype), step)
    squares = ops.broadcast_to(weights * weights, (frames.shape[-2], n_fft))
    first = n_fft // 2 if center else 0
    last = signal.shape[-1] - first if length is None else first + length
    found = signal[..., first:last] / _overlapped(squares, step)[first:last]
    missing = 0 if length is None else length - found.shape[-1]
    return shapes.pad(found, (0, missing)) if missing > 0 else found


#: How the inverse transform scales where the transform scales so.
_OF_INVERSE = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}


def hfft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Any:
    """The Fourier transform of half of a Hermitian signal."""
    count = 2 * (input.shape[dim] - 1) if n is None else n
    return ops.irfft(ops.conj(input), count, dim, _OF_INVERSE[norm])


def ihfft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Any:
    """The inverse of `hfft`."""
    return ops.conj(ops.rfft(input, n, dim, _OF_INVERSE[norm]))


def hfftn(input: Any, s: Any = None, dim: Any = None, norm: str | None = None) -> Any:
    """The Fourier transform over several axes of half of a Hermitian signal."""
    return ops.irfftn(ops.conj(input), s, dim, _OF_INVERSE[norm])


def ihfftn(input: Any, s: Any = None, dim: Any = None, norm: str | None = None) -> Any:
    """The inverse of `hfftn`."""
    return ops.conj(ops.rfftn(input, s, dim, _OF_INVERSE[norm]))


def hfft2(input: Any, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Any:
    """`hfftn` over two axes."""
    return hfftn(input, s, dim, norm)


def ihfft2(input: Any, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Any:
    """`ihfftn` over two axes."""
    return ihfftn(input, s, dim, norm)


def _window(window: Any, n_fft: int, win_length: int | None) -> Any:
    """The window in the middle of a frame; ones where none is given."""
    size = n_fft if win_length is None else win_length
    if window is None:
        window = ops.ones((size,), dtype=ms.float32)
    before = (n_fft - size) // 2
    return shapes.pad(window, (before, n_fft - size - before)) if size < n_fft else window


def _overlapped(frames: Any, step: int) -> Any:
    """The sum of frames (…, frames, samples), each so many samples behind the one before."""
    count, size = frames.shape[-2:]
    parts = -(-size // step)
    frames = shapes.pad(frames, (0, parts * step - size))
    rows = sum(
        shapes.pad(frames[..., part * step : (part + 1) * step], (0, 0, part, parts - 1 - part))
        for part in range(parts)
    )
    return rows.reshape(*rows.shape[:-2], -1)[..., : size + step * (count - 1)]

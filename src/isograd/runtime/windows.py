"""The windows of torch.signal.windows and of torch, computed by numpy in float64 and rounded once.

MindSpore has the symmetric and the periodic form of some (`ops.hann_window`), in float64 and with
a tensor as length, and none of the general ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import mindspore as ms  # noqa: TID253
import numpy as np

_KINDS = {ms.float32: np.float32, ms.float64: np.float64}
_NUTTALL = (0.3635819, 0.4891775, 0.1365995, 0.0106411)


def _places(name: str, count: int, dtype: Any) -> Any:
    """0, 1, ... of a window's samples; raises ValueError for what torch refuses."""
    if count < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={count}")
    if dtype not in (None, *_KINDS):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    return np.arange(count, dtype=np.float64)


def _tensor(values: Any, dtype: Any) -> Any:
    return ms.Tensor(values.astype(_KINDS[ms.float32 if dtype is None else dtype]))


def signal_general_cosine(
    M: int,  # noqa: N803
    *,
    a: Iterable[float],
    sym: bool = True,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
) -> Any:
    """A weighted sum of cosines with alternating signs."""
    places = _places("general_cosine", M, dtype)
    if M == 1:
        return _tensor(np.ones(1), dtype)
    weights = list(a)
    if not weights:
        raise ValueError("Coefficients cannot be empty")
    angles = places * (2 * math.pi / (M - 1 if sym else max(M, 1)))
    terms = [(-1) ** k * w * np.cos(k * angles) for k, w in enumerate(weights)]
    return _tensor(np.sum(terms, axis=0), dtype)


def signal_general_hamming(
    M: int,  # noqa: N803
    *,
    alpha: float = 0.54,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
) -> Any:
    """A raised cosine: alpha - (1 - alpha) cos."""
    return signal_general_cosine(M, a=(alpha, 1.0 - alpha), sym=sym, dtype=dtype)


def signal_hamming(
    M: int,  # noqa: N803
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
) -> Any:
    """A raised cosine that ends above 0."""
    return signal_general_hamming(M, sym=sym, dtype=dtype)


def signal_hann(
    M: int,  # noqa: N803
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
) -> Any:
    """A raised cosine."""
    return signal_general_hamming(M, alpha=0.5, sym=sym, dtype=dtype)


def signal_blackman(
    M: int,  # noqa: N803
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
) -> Any:
    """Three cosine terms."""
    return signal_general_cosine(M, a=(0.42, 0.5, 0.08), sym=sym, dtype=dtype)


def signal_nuttall(
    M: int,  # noqa: N803
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
) -> Any:
    """Four cosine terms, Nuttall's."""
    return signal_general_cosine(M, a=_NUTTALL, sym=sym, dtype=dtype)


def signal_bartlett(
    M: int,  # noqa: N803
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
) -> Any:
    """A triangle that begins at 0."""
    places = _places("bartlett", M, dtype)
    if M == 1:
        return _tensor(np.ones(1), dtype)
    step = 2 / (M - 1 if sym else max(M, 1))
    return _tensor(1 - np.abs(places * step - 1), dtype)


def signal_cosine(
    M: int,  # noqa: N803
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
) -> Any:
    """Half a period of a sine."""
    places = _places("cosine", M, dtype)
    return _tensor(np.sin((places + 0.5) * math.pi / max(_length(M, sym), 1)), dtype)


def _length(count: int, sym: bool) -> int:
    """The samples of a window's whole length: the periodic one lacks the last."""
    return count if sym or count <= 1 else count + 1


def signal_gaussian(
    M: int,  # noqa: N803
    *,
    std: float = 1.0,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
) -> Any:
    """The density of a normal distribution, 1 in the middle."""
    places = _places("gaussian", M, dtype)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    distances = places - (_length(M, sym) - 1) / 2
    return _tensor(np.exp(-(distances**2) / (2 * std**2)), dtype)


def signal_exponential(
    M: int,  # noqa: N803
    *,
    center: float | None = None,
    tau: float = 1.0,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
) -> Any:
    """Falling from a centre by exp(-distance / tau)."""
    places = _places("exponential", M, dtype)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    middle = (_length(M, sym) - 1) / 2 if center is None else center
    return _tensor(np.exp(-np.abs(places - middle) / tau), dtype)


def signal_kaiser(
    M: int,  # noqa: N803
    *,
    beta: float = 12.0,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
) -> Any:
    """Kaiser's window: a ratio of Bessel functions."""
    places = _places("kaiser", M, dtype)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    if M == 1:
        return _tensor(np.ones(1), dtype)
    shares = places * (2 / (M - 1 if sym else max(M, 1))) - 1
    roots = np.sqrt(np.maximum(0, 1 - shares**2))
    return _tensor(np.i0(beta * roots) / np.i0(np.float64(beta)), dtype)


def _window(values: Any, count: Any, periodic: Any) -> Any:
    found = values(count + 1)[:-1] if periodic else values(count)
    return ms.Tensor(found.astype(np.float32))


def hann_window(window_length: Any, periodic: Any = True) -> Any:
    """A raised cosine."""
    return _window(np.hanning, window_length, periodic)


def hamming_window(window_length: Any, periodic: Any = True) -> Any:
    """A raised cosine that ends above 0."""
    return _window(np.hamming, window_length, periodic)


def blackman_window(window_length: Any, periodic: Any = True) -> Any:
    """Three cosine terms."""
    return _window(np.blackman, window_length, periodic)


def bartlett_window(window_length: Any, periodic: Any = True) -> Any:
    """A triangle."""
    return _window(np.bartlett, window_length, periodic)


def kaiser_window(window_length: Any, periodic: Any = True, beta: Any = 12.0) -> Any:
    """Kaiser's window."""
    return _window(lambda count: np.kaiser(count, beta), window_length, periodic)

"""The inputs of examples: numpy expressions, drawn anew for each seed."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

#: Between numbers of a draw with ties, which has the borders of most definitions: 0, 0.5, 1, 3, 6.
_STEP = 0.5
_SPREAD = 2.0


class Drawer:
    """The functions that input expressions may call; the same seed and text give the same array.

    with_ties: real numbers are multiples of a half, so that many are equal, and those of the first
    row are 0: a gradient is a matter of definition there, and a mean of zeros has no direction.
    """

    def __init__(self, seed: int, text: str, with_ties: bool = False) -> None:
        self._generator = np.random.default_rng([seed, zlib.crc32(text.encode())])
        self._with_ties = with_ties

    def normal(self, *shape: int) -> Any:
        """Standard normal float32."""
        found = self._generator.standard_normal(shape)
        return self._tied(found * _SPREAD if self._with_ties else found).astype(np.float32)

    def uniform(self, low: float, high: float, shape: Sequence[int]) -> Any:
        """Uniform float32."""
        found = self._tied(self._generator.uniform(low, high, tuple(shape)))
        return np.clip(found, low, high).astype(np.float32)

    def _tied(self, found: Any) -> Any:
        if not self._with_ties:
            return found
        tied = np.array(np.round(found / _STEP) * _STEP + 0.0)  # no -0.0
        if tied.ndim > 1 and len(tied) > 1:
            tied[0] = 0
        return tied

    def integers(self, low: int, high: int, shape: Sequence[int]) -> Any:
        """Uniform int64 below `high`."""
        return self._generator.integers(low, high, tuple(shape))

    def boolean(self, *shape: int) -> Any:
        """True and False alike often, both present."""
        found = self._generator.random(shape) < 0.5
        found.reshape(-1)[:2] = [True, False]
        return found

    def definite(self, size: int) -> Any:
        """A symmetric positive definite matrix, well conditioned."""
        root = self._generator.standard_normal((size, size))
        return (root @ root.T / size + np.eye(size)).astype(np.float32)

    def permutation(self, size: int) -> Any:
        """The numbers below `size` in any order."""
        return self._generator.permutation(size)

    def complex(self, *shape: int) -> Any:
        """Standard normal complex64."""
        parts = self._generator.standard_normal((2, *shape))
        return (parts[0] + 1j * parts[1]).astype(np.complex64)


def draw(name: str, text: str, seed: int, with_ties: bool = False) -> Any:
    """The value of an input expression."""
    drawer = Drawer(seed, f"{name} = {text}", with_ties)
    known = {key: getattr(drawer, key) for key in dir(drawer) if not key.startswith("_")}
    return eval(text, {"np": np, **known})  # noqa: S307  # our own data files


def output_weights(shape: Sequence[int], number: int, seed: int) -> Any:
    """What an output is multiplied with before the sum that is differentiated."""
    generator = np.random.default_rng([seed, number, 7])
    return generator.uniform(0.5, 1.5, tuple(shape))

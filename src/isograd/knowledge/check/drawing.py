"""The inputs of examples: numpy expressions, drawn anew for each seed."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np


class Drawer:
    """The functions that input expressions may call; the same seed and text give the same array."""

    def __init__(self, seed: int, text: str) -> None:
        self._generator = np.random.default_rng([seed, zlib.crc32(text.encode())])

    def normal(self, *shape: int) -> Any:
        """Standard normal float32."""
        return self._generator.standard_normal(shape).astype(np.float32)

    def uniform(self, low: float, high: float, shape: Sequence[int]) -> Any:
        """Uniform float32."""
        return self._generator.uniform(low, high, tuple(shape)).astype(np.float32)

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


def draw(name: str, text: str, seed: int) -> Any:
    """The value of an input expression."""
    drawer = Drawer(seed, f"{name} = {text}")
    known = {key: getattr(drawer, key) for key in dir(drawer) if not key.startswith("_")}
    return eval(text, {"np": np, **known})  # noqa: S307  # our own data files


def output_weights(shape: Sequence[int], number: int, seed: int) -> Any:
    """What an output is multiplied with before the sum that is differentiated."""
    generator = np.random.default_rng([seed, number, 7])
    return generator.uniform(0.5, 1.5, tuple(shape))

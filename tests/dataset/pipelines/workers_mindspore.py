"""Pipelines of mindspore.dataset whose workers draw, in processes or threads."""

from __future__ import annotations

import os
from typing import Any

import mindspore.dataset as ds
import numpy as np


class _Noisy:
    """Samples with noise from numpy's own generator, or from one of the process."""

    def __init__(self, *, is_own: bool = False) -> None:
        self._is_own = is_own
        self._generators: dict[int, Any] = {}

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.int32]:
        draw: Any = np.random
        if self._is_own:
            process = os.getpid()
            draw = self._generators.setdefault(process, np.random.default_rng((0, process)))
        return np.full(3, float(index)) + draw.normal(), np.int32(index)


def _add_noise(x: np.ndarray) -> np.ndarray:
    return x + np.random.normal()  # noqa: NPY002 - what a user writes


def _add_one(x: np.ndarray) -> np.ndarray:
    return x + 1.0


def _generator(**options: Any) -> Any:
    own = options.pop("is_own", False)
    source = _Noisy(is_own=own)
    return ds.GeneratorDataset(source, ["x", "y"], shuffle=False, **options).batch(4)


def _map(function: Any) -> Any:
    numbers = ds.NumpySlicesDataset(np.arange(8.0), ["x"], shuffle=False)
    mapped = numbers.map(function, ["x"], num_parallel_workers=2, python_multiprocessing=True)
    return mapped.batch(2)


def processes() -> Any:
    return _generator(num_parallel_workers=2)


def own_generators() -> Any:
    return _generator(num_parallel_workers=2, is_own=True)


def threads() -> Any:
    return _generator(num_parallel_workers=2, python_multiprocessing=False)


def one_process() -> Any:
    return _generator()


def mapped() -> Any:
    return _map(_add_noise)


def mapped_without_draws() -> Any:
    return _map(_add_one)

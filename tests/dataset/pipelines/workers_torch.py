"""DataLoaders whose workers draw, each in a process."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class _Noisy(Dataset):  # type: ignore[type-arg]  # torch's stub takes no argument at run time
    """Samples with noise from a generator that the data set holds, or from numpy's own."""

    def __init__(
        self, generator: np.random.Generator | None = None, *, is_coin: bool = False
    ) -> None:
        self.generator, self.is_coin = generator, is_coin

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        draw: Any = np.random if self.generator is None else self.generator
        number = draw.normal()
        return torch.full((3,), float(number > 0) if self.is_coin else index + number), index


def _seed_alike(number: int) -> None:
    np.random.seed(3)  # noqa: NPY002 - what a user writes


def _seed_anew(number: int) -> None:
    info = torch.utils.data.get_worker_info()
    info.dataset._dataset.generator = np.random.default_rng(info.seed)


def numpys_own() -> Any:
    return DataLoader(_Noisy(), 4, num_workers=2)


def held() -> Any:
    return DataLoader(_Noisy(np.random.default_rng(0)), 4, num_workers=2)


def held_by_one() -> Any:
    return DataLoader(_Noisy(np.random.default_rng(0)), 4)


def held_and_seeded() -> Any:
    return DataLoader(_Noisy(np.random.default_rng(0)), 4, num_workers=2, worker_init_fn=_seed_anew)


def coins() -> Any:
    return DataLoader(_Noisy(is_coin=True), 4, num_workers=3)


def coins_seeded_alike() -> Any:
    return DataLoader(_Noisy(is_coin=True), 4, num_workers=3, worker_init_fn=_seed_alike)

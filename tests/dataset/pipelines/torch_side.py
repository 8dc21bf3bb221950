"""Pipelines of torch, the references of the tests; ISOGRAD_TEST_IMAGES names their folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
import torchvision_cpu  # noqa: F401 - makes torchvision importable
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset
from torchvision import transforms as T
from torchvision.datasets import ImageFolder

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def _images(*steps: Any, **options: Any) -> DataLoader[Any]:
    folder = ImageFolder(os.environ["ISOGRAD_TEST_IMAGES"], T.Compose(list(steps)))
    return DataLoader(folder, batch_size=4, **options)


def evaluation() -> DataLoader[Any]:
    """ImageNet's pipeline for evaluation, in small."""
    return _images(T.Resize(40), T.CenterCrop(32), T.ToTensor(), T.Normalize(MEAN, STD))


def training() -> DataLoader[Any]:
    """ImageNet's pipeline for training, in small."""
    steps = (T.RandomResizedCrop(32), T.RandomHorizontalFlip(), T.ToTensor())
    return _images(*steps, T.Normalize(MEAN, STD), shuffle=True)


class Drawn(Dataset[Any]):
    """The pictures whose numbers are given, each turned over by a third of its draws."""

    def __init__(self, numbers: list[int], steps: list[Any]) -> None:
        folder = ImageFolder(os.environ["ISOGRAD_TEST_IMAGES"])
        self._images = [folder[number] for number in numbers]
        self.transform = T.Compose([T.Resize((40, 40)), *steps, T.ToTensor()])

    def __len__(self) -> int:
        return len(self._images)

    def __getitem__(self, index: int) -> Any:
        image, label = self._images[index]
        return self.transform(image), label


def _drawn(numbers: list[int], *steps: Any, **options: Any) -> DataLoader[Any]:
    steps = steps or (T.RandomHorizontalFlip(0.3),)
    return DataLoader(Drawn(numbers, [*steps]), batch_size=4, shuffle=True, **options)


_MIXED = [3, 9, 1, 0, 8, 2, 7, 5, 4, 6]


def flipped() -> DataLoader[Any]:
    """All ten pictures."""
    return _drawn(list(range(10)))


def flipped_mixed() -> DataLoader[Any]:
    """The same ones from files in another order."""
    return _drawn(_MIXED)


def flipped_cut() -> DataLoader[Any]:
    """The last batch of two is dropped."""
    return _drawn(_MIXED, drop_last=True)


def flipped_half() -> DataLoader[Any]:
    """The first shard of two."""
    return _drawn(list(range(0, 10, 2)))


def flipped_other_half() -> DataLoader[Any]:
    """The other shard."""
    return _drawn(list(range(1, 10, 2)))


def flipped_twice() -> DataLoader[Any]:
    """One picture is missing, and another is there twice."""
    return _drawn([*range(9), 2])


def flipped_nine() -> DataLoader[Any]:
    """Nine pictures."""
    return _drawn(list(range(9)))


def flipped_other_nine() -> DataLoader[Any]:
    """Nine, one of which is another, in another order."""
    return _drawn([number for number in _MIXED if number != 4])


def cropped() -> DataLoader[Any]:
    """Turned over and cut out of a wider picture."""
    return _drawn(list(range(10)), T.RandomHorizontalFlip(), _crop(0))


def cropped_only() -> DataLoader[Any]:
    """Never turned over."""
    return _drawn(list(range(10)), _crop(0))


def _crop(fill: int) -> Any:
    return T.RandomCrop(32, padding=8, fill=fill)


def table() -> DataLoader[Any]:
    """Twenty rows in order."""
    rows = torch.arange(60, dtype=torch.float32).reshape(20, 3)
    return DataLoader(TensorDataset(rows, torch.arange(20)), batch_size=6)


def shuffled_table() -> DataLoader[Any]:
    """Twenty rows, another permutation in every epoch."""
    rows = torch.arange(60, dtype=torch.float32).reshape(20, 3)
    return DataLoader(TensorDataset(rows, torch.arange(20)), batch_size=6, shuffle=True)


class Tokens(Dataset[dict[str, Any]]):
    """Texts of different lengths, padded on the right by 0."""

    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int) -> dict[str, Any]:
        if index >= len(self):
            raise IndexError(index)
        ids = np.zeros(16, np.int64)
        count = 5 + index % 8
        ids[:count] = np.random.default_rng(index).integers(5, 900, count)
        return {"ids": ids, "mask": (ids != 0).astype(np.int64)}


class Stream(IterableDataset[Any]):
    """The rows of `table`, one at a time, without places."""

    def __iter__(self) -> Iterator[Any]:
        rows = torch.arange(60, dtype=torch.float32).reshape(20, 3)
        return iter([(row, number) for number, row in enumerate(rows)])


def stream() -> Stream:
    """A data set that can only be iterated, without a loader."""
    return Stream()


def tokens() -> Tokens:
    """A Dataset without a loader."""
    return Tokens()


def raises() -> None:
    """A pipeline that cannot be made."""
    raise RuntimeError("no disk")

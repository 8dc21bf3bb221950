"""Pipelines of mindspore.dataset, the ports of the tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import mindspore.dataset as ds
import numpy as np
from mindspore.dataset import vision as V

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def _images(*steps: Any, shuffle: bool = False, drop_remainder: bool = False) -> Any:
    found = ds.ImageFolderDataset(os.environ["ISOGRAD_TEST_IMAGES"], shuffle=shuffle)
    found = found.map(list(steps), ["image"], num_parallel_workers=1)
    return found.batch(4, drop_remainder=drop_remainder)


def _evaluation(resize: Any, crop: Any, mean: list[float]) -> Any:
    normalize = V.Normalize(mean, STD, is_hwc=False)
    return _images(V.Decode(to_pil=True), resize, crop, V.ToTensor(), normalize)


def same() -> Any:
    """On Pillow's images every step is torchvision's."""
    return _evaluation(V.Resize(40), V.CenterCrop(32), MEAN)


def guide() -> Any:
    """As the migration guide has it: the C++ transforms, which do not antialias."""
    mean, std = ([255 * v for v in values] for values in (MEAN, STD))
    steps = (V.Decode(), V.Resize(40), V.CenterCrop(32), V.Normalize(mean, std), V.HWC2CHW())
    return _images(*steps)


def other_mean() -> Any:
    """The mean's channels stand in the order of BGR."""
    return _evaluation(V.Resize(40), V.CenterCrop(32), MEAN[::-1])


def other_crop() -> Any:
    """Another size of the window."""
    return _evaluation(V.Resize(40), V.CenterCrop(30), MEAN)


def bicubic() -> Any:
    """Another interpolation."""
    return _evaluation(V.Resize(40, V.Inter.BICUBIC), V.CenterCrop(32), MEAN)


def no_crop() -> Any:
    """The picture is resized to the window at once."""
    normalize = V.Normalize(MEAN, STD, is_hwc=False)
    return _images(V.Decode(to_pil=True), V.Resize((32, 32)), V.ToTensor(), normalize)


def training() -> Any:
    """Draws as torchvision's does, shuffled anew in every epoch."""
    steps = (V.Decode(to_pil=True), V.RandomResizedCrop(32), V.RandomHorizontalFlip())
    normalize = V.Normalize(MEAN, STD, is_hwc=False)
    return _images(*steps, V.ToTensor(), normalize, shuffle=True)


def rarely_flipped() -> Any:
    """Flips a fifth of the pictures instead of half, and drops the last batch."""
    steps = (V.Decode(to_pil=True), V.RandomResizedCrop(32), V.RandomHorizontalFlip(0.2))
    normalize = V.Normalize(MEAN, STD, is_hwc=False)
    return _images(*steps, V.ToTensor(), normalize, shuffle=True, drop_remainder=True)


def flipped() -> Any:
    """A third of the pictures is turned over."""
    found = ds.ImageFolderDataset(os.environ["ISOGRAD_TEST_IMAGES"], shuffle=True)
    steps = [V.Decode(to_pil=True), V.Resize((40, 40)), V.RandomHorizontalFlip(0.3), V.ToTensor()]
    return found.map(steps, ["image"], num_parallel_workers=1).batch(4)


def cropped_on_gray() -> Any:
    """Cut out of a picture with a gray rim."""
    found = ds.ImageFolderDataset(os.environ["ISOGRAD_TEST_IMAGES"], shuffle=True)
    steps = [V.Decode(to_pil=True), V.Resize((40, 40)), V.RandomHorizontalFlip()]
    steps += [V.RandomCrop(32, padding=8, fill_value=128), V.ToTensor()]
    return found.map(steps, ["image"], num_parallel_workers=1).batch(4)


def _rows(shuffle: bool = False) -> Any:
    rows = np.arange(60, dtype=np.float32).reshape(20, 3)
    data = {"x": rows, "y": np.arange(20)}
    return ds.NumpySlicesDataset(data, shuffle=shuffle)


def table() -> Any:
    """The same twenty rows."""
    return _rows().batch(6)


def dropped() -> Any:
    """The last two rows are left out."""
    return _rows().batch(6, drop_remainder=True)


def shuffled() -> Any:
    """Shuffled by default."""
    return _rows(shuffle=True).batch(6)


def repeated() -> Any:
    """Two epochs in one, whose batches cross the border."""
    return _rows().repeat(2).batch(6)


def shard() -> Any:
    """Every second row."""
    rows = np.arange(60, dtype=np.float32).reshape(20, 3)
    data = {"x": rows, "y": np.arange(20)}
    return ds.NumpySlicesDataset(data, shuffle=False, num_shards=2, shard_id=1).batch(6)


def seeded() -> Any:
    """With a seed, every new iterator has the same shuffle."""
    ds.config.set_seed(5)
    return _rows(shuffle=True).batch(6)


def _tokens() -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for index in range(12):
        ids = np.full(16, 1, np.int64)
        count = 5 + index % 8
        ids[16 - count :] = np.random.default_rng(index).integers(5, 900, count)
        yield ids, (ids != 1).astype(np.int64)


def left_padded() -> Any:
    """Texts padded on the left by 1."""
    return ds.GeneratorDataset(_tokens, ["ids", "mask"], shuffle=False)

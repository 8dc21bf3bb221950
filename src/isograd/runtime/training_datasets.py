"""torchvision.datasets that lie in files; nothing is downloaded."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from isograd.runtime.loading import Dataset

IMAGES = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


def default_loader(path: str) -> Any:
    """An image in red, green and blue."""
    with open(path, "rb") as file:
        return Image.open(file).convert("RGB")


class ImageFolder(Dataset):
    """Images in folders that are named by their class."""

    def __init__(
        self,
        root: Any,
        transform: Any = None,
        target_transform: Any = None,
        loader: Callable[[str], Any] = default_loader,
        is_valid_file: Callable[[str], bool] | None = None,
        allow_empty: bool = False,
    ) -> None:
        self.root, self.loader = os.path.expanduser(os.fspath(root)), loader
        self.transform, self.target_transform = transform, target_transform
        self.classes = sorted(entry.name for entry in os.scandir(self.root) if entry.is_dir())
        if not self.classes:
            raise FileNotFoundError(f"Couldn't find any class folder in {self.root}.")
        self.class_to_idx = {name: number for number, name in enumerate(self.classes)}
        is_image = is_valid_file or (lambda path: path.lower().endswith(IMAGES))
        self.samples = [
            (path, number)
            for name, number in self.class_to_idx.items()
            for path in _files(os.path.join(self.root, name))
            if is_image(path)
        ]
        self.imgs = self.samples
        self.targets = [number for _, number in self.samples]

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        path, target = self.samples[index]
        return _changed(self.loader(path), target, self)


def _files(folder: str) -> list[str]:
    found = []
    for place, _, names in sorted(os.walk(folder, followlinks=True)):
        found += [os.path.join(place, name) for name in sorted(names)]
    return found


def _changed(image: Any, target: Any, dataset: Any) -> tuple[Any, Any]:
    if dataset.transform is not None:
        image = dataset.transform(image)
    if dataset.target_transform is not None:
        target = dataset.target_transform(target)
    return image, target


class MNIST(Dataset):
    """Handwritten digits, from the files of its makers in `root/MNIST/raw`."""

    folder = "MNIST"

    def __init__(
        self,
        root: Any,
        train: bool = True,
        transform: Any = None,
        target_transform: Any = None,
        download: bool = False,
    ) -> None:
        self.transform, self.target_transform, self.train = transform, target_transform, train
        place = Path(root) / self.folder / "raw"
        part = "train" if train else "t10k"
        self.data = _idx(place / f"{part}-images-idx3-ubyte")
        self.targets = _idx(place / f"{part}-labels-idx1-ubyte").astype(np.int64)

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return _changed(Image.fromarray(self.data[index]), int(self.targets[index]), self)


class FashionMNIST(MNIST):
    """Pieces of clothing, from files as MNIST's."""

    folder = "FashionMNIST"


def _idx(path: Path) -> Any:
    """An array of bytes in the format of MNIST's files, also packed."""
    packed = path.with_name(f"{path.name}.gz")
    if path.is_file():
        raw = path.read_bytes()
    elif packed.is_file():
        raw = gzip.decompress(packed.read_bytes())
    else:
        raise RuntimeError(f"Dataset not found: {path}. Nothing is downloaded here.")
    sizes = np.frombuffer(raw, ">i4", raw[3], 4)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * raw[3]).reshape(tuple(sizes))


class FakeData(Dataset):
    """Random images, each the same whenever it is asked for."""

    def __init__(
        self,
        size: int = 1000,
        image_size: tuple[int, int, int] = (3, 224, 224),
        num_classes: int = 10,
        transform: Any = None,
        target_transform: Any = None,
        random_offset: int = 0,
    ) -> None:
        self.size, self.image_size, self.num_classes = size, image_size, num_classes
        self.transform, self.target_transform = transform, target_transform
        self.random_offset = random_offset

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        if index >= self.size:
            raise IndexError(f"{type(self).__name__} index out of range")
        generator = np.random.default_rng(index + self.random_offset)
        values = (generator.standard_normal(self.image_size) * 255).astype(np.int64)
        image = Image.fromarray(values.astype(np.uint8).transpose(1, 2, 0))
        return _changed(image, int(generator.integers(self.num_classes)), self)

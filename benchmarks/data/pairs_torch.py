"""The references: pipelines of torch and torchvision, by the name FAMILY__OPTION__OPTION."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "tests" / "dataset" / "pipelines")]
import python_steps  # noqa: E402
import sources  # noqa: E402
import torchvision_cpu  # noqa: E402, F401 - makes torchvision importable
from torch.utils.data import DataLoader, Dataset, DistributedSampler  # noqa: E402
from torchvision import transforms as T  # noqa: E402
from torchvision.datasets import ImageFolder  # noqa: E402
from torchvision.transforms import InterpolationMode as Mode  # noqa: E402

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


class Rows(Dataset[Any]):
    """Samples by a function of their number; transforms are applied to the first field."""

    def __init__(
        self, make: Callable[[int], tuple[Any, ...]], transform: Any = None, mask: Any = None
    ) -> None:
        self.make, self.transform, self.mask_transform = make, transform, mask

    def __len__(self) -> int:
        return sources.COUNT

    def __getitem__(self, n: int) -> tuple[Any, ...]:
        if n >= len(self):
            raise IndexError(n)
        first, *rest = self.make(n)
        if self.transform is not None:
            first = self.transform(first)
        if self.mask_transform is not None:
            rest[0] = self.mask_transform(rest[0])
        return (first, *rest)


def _loader(data: Any, **options: Any) -> DataLoader[Any]:
    return DataLoader(data, batch_size=4, **options)


def make_imagenet_eval(o: frozenset[str]) -> Any:
    mode = Mode.BICUBIC if "bicubic" in o else Mode.NEAREST if "nearest" in o else Mode.BILINEAR
    size: Any = (48, 44) if "exact" in o else 48
    steps = [T.Resize(size, mode), T.CenterCrop(40), T.ToTensor()]
    if "plain" not in o:
        steps.append(T.Normalize(MEAN, STD))
    data = ImageFolder(os.environ["ISOGRAD_BENCH_IMAGES"], T.Compose(steps))
    return _loader(data, drop_last="drop" in o)


def make_imagenet_train(o: frozenset[str]) -> Any:
    steps: list[Any] = [
        T.RandomResizedCrop(
            40, (0.5, 1) if "scale" in o else (0.08, 1), (1, 1) if "square" in o else (3 / 4, 4 / 3)
        ),
        T.RandomHorizontalFlip(0.8 if "often" in o else 0.5),
    ]
    if "jitter" in o:
        steps.append(T.ColorJitter(0.4, 0.4))
    if "vertical" in o:
        steps.append(T.RandomVerticalFlip())
    if "gray" in o:
        steps.append(T.RandomGrayscale(0.3))
    steps += [T.ToTensor(), T.Normalize(MEAN, STD)]
    data = ImageFolder(os.environ["ISOGRAD_BENCH_IMAGES"], T.Compose(steps))
    return _loader(data, shuffle="fixed" not in o)


def make_cifar(o: frozenset[str]) -> Any:
    images, labels = sources.cifar()
    steps: list[Any] = [T.ToPILImage()]
    if "still" not in o:
        steps += [T.RandomCrop(32, 2 if "narrow" in o else 4), T.RandomHorizontalFlip()]
    steps += [T.ToTensor(), T.Normalize([0.49, 0.48, 0.45], [0.2, 0.2, 0.2])]
    return _loader(Rows(lambda n: (images[n], labels[n]), T.Compose(steps)))


def make_segmentation(o: frozenset[str]) -> Any:
    from PIL import Image

    images, masks = sources.segmentation()
    image = T.Compose([T.Resize((32, 40)), T.ToTensor()])
    mask = T.Compose([T.Resize((32, 40), Mode.NEAREST), np.asarray])
    data = Rows(lambda n: (Image.fromarray(images[n]), Image.fromarray(masks[n])), image, mask)
    return _loader(data)


def make_detection(o: frozenset[str]) -> Any:
    return _loader(Rows(lambda n: python_steps.detection(n, frozenset())))


def make_bert(o: frozenset[str]) -> Any:
    return _loader(Rows(lambda n: python_steps.bert(n, o & {"short"})))


def make_blocks(o: frozenset[str]) -> Any:
    return _loader(Rows(lambda n: python_steps.blocks(n, frozenset())))


def make_tabular(o: frozenset[str]) -> Any:
    return _loader(Rows(lambda n: python_steps.tabular(n, frozenset())))


def make_audio(o: frozenset[str]) -> Any:
    return _loader(Rows(lambda n: python_steps.audio(n, o & {"mel"})))


def make_sharded(o: frozenset[str]) -> Any:
    data = Rows(lambda n: python_steps.record(n))
    if "whole" in o:
        return _loader(data, drop_last="drop" in o, shuffle="shuffle" in o)
    sampler: Any = DistributedSampler(data, 2, 0, shuffle=False)
    return _loader(data, sampler=sampler)


def __getattr__(name: str) -> Any:
    family, *options = name.split("__")
    function = globals().get(f"make_{family}")
    if function is None:
        raise AttributeError(name)
    torch.manual_seed(0)
    return lambda: function(frozenset(options))

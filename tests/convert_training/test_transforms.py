"""Transforms give torchvision's numbers, which PIL and the formulas of its documentation say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("mindspore")

import mindspore as ms

from isograd.runtime import training_datasets
from isograd.runtime import training_transforms as port

VALUES = np.random.default_rng(0).integers(0, 255, (37, 53, 3), dtype=np.uint8)
IMAGE = Image.fromarray(VALUES)
BILINEAR = Image.Resampling.BILINEAR


def array(value: Any) -> Any:
    return value.asnumpy() if isinstance(value, ms.Tensor) else np.asarray(value)


SCALED = VALUES.transpose(2, 0, 1).astype(np.float32) / 255
MEAN, STD = np.array([0.4, 0.5, 0.6], np.float32), np.array([0.2, 0.3, 0.4], np.float32)
CASES: list[tuple[Any, Any]] = [
    (port.ToTensor(), SCALED),
    (
        port.Compose([port.ToTensor(), port.Normalize(MEAN.tolist(), STD.tolist())]),
        (SCALED - MEAN[:, None, None]) / STD[:, None, None],
    ),
    (port.Resize(24), IMAGE.resize((34, 24), BILINEAR)),
    (port.Resize((20, 31)), IMAGE.resize((31, 20), BILINEAR)),
    (port.Resize(24, max_size=30), IMAGE.resize((30, 21), BILINEAR)),
    (port.Resize(24, port.InterpolationMode.BICUBIC), IMAGE.resize((34, 24), Image.BICUBIC)),
    (port.CenterCrop(21), VALUES[8:29, 16:37]),
    (port.CenterCrop((41, 53)), np.pad(VALUES, ((2, 2), (0, 0), (0, 0)))),
    (port.Pad((1, 2, 3, 4)), np.pad(VALUES, ((2, 4), (1, 3), (0, 0)))),
    (port.Pad(3, padding_mode="reflect"), np.pad(VALUES, ((3, 3), (3, 3), (0, 0)), "reflect")),
    (port.RandomHorizontalFlip(1.0), VALUES[:, ::-1]),
    (port.RandomVerticalFlip(1.0), VALUES[::-1]),
    (port.RandomHorizontalFlip(0.0), VALUES),
    (port.PILToTensor(), VALUES.transpose(2, 0, 1)),
    (port.Compose([port.ToTensor(), port.ToPILImage()]), VALUES),
    (port.Compose([port.ToTensor(), port.CenterCrop(21)]), SCALED[:, 8:29, 16:37]),
    (port.Compose([port.ToTensor(), port.RandomVerticalFlip(1.0)]), SCALED[:, ::-1]),
    (port.ColorJitter(), VALUES),
    (port.Lambda(lambda image: image.size), (53, 37)),
]


@pytest.mark.parametrize(("transform", "wanted"), CASES)
def test_numbers(transform: Any, wanted: Any) -> None:
    np.testing.assert_array_equal(array(transform(IMAGE)), np.asarray(wanted))


@pytest.mark.parametrize(
    ("transform", "shape"),
    [
        (port.RandomCrop(32), (32, 32, 3)),
        (port.RandomCrop(60, pad_if_needed=True), (60, 60, 3)),
        (port.RandomResizedCrop(24), (24, 24, 3)),
        (port.RandomGrayscale(1.0), (37, 53, 3)),
    ],
)
def test_random_parts_have_their_shape_and_follow_the_seed(transform: Any, shape: Any) -> None:
    drawn = []
    for _ in range(2):
        ms.set_seed(3)
        drawn.append(array(transform(IMAGE)))
    assert drawn[0].shape == shape
    np.testing.assert_array_equal(*drawn)


def test_images_of_folders(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / name).mkdir()
        IMAGE.save(tmp_path / name / "x.png")
    (tmp_path / "a" / "notes.txt").write_text("no image")
    found = training_datasets.ImageFolder(tmp_path, port.ToTensor())
    assert (found.classes, found.targets, len(found)) == (["a", "b"], [0, 1], 2)
    image, target = found[1]
    np.testing.assert_array_equal(image.asnumpy(), SCALED)
    assert target == 1


def test_digits_in_their_makers_files(tmp_path: Path) -> None:
    folder = tmp_path / "MNIST" / "raw"
    folder.mkdir(parents=True)
    images = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4)
    sizes = np.array([2, 3, 4], ">i4").tobytes()
    raw = b"\x00\x00\x08\x03" + sizes + images.tobytes()
    (folder / "train-images-idx3-ubyte").write_bytes(raw)
    labels = b"\x00\x00\x08\x01" + np.array([2], ">i4").tobytes() + bytes([7, 1])
    (folder / "train-labels-idx1-ubyte").write_bytes(labels)
    found = training_datasets.MNIST(tmp_path)
    np.testing.assert_array_equal(np.asarray(found[1][0]), images[1])
    assert found[0][1] == 7
    with pytest.raises(RuntimeError, match="Nothing is downloaded"):
        training_datasets.MNIST(tmp_path, train=False, download=True)

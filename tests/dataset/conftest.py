"""Makers of small data sets in every format, and images that are smooth as photographs are."""

from __future__ import annotations

import io
import json
import struct
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import google_crc32c
import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image

from isograd.data.inventory.rules import Example
from isograd.data.sources.base import Item, SampleSource
from isograd.data.sources.example_proto import encode_example
from isograd.data.sources.tfrecord import masked

#: A few arrays of different dtypes and shapes.
ARRAYS = st.lists(
    hnp.arrays(
        st.sampled_from([np.float32, np.int16, np.uint8]),
        st.sampled_from([(), (3,), (4, 5, 3), (2, 6, 7)]),
        elements=st.integers(0, 200),
    ),
    min_size=1,
    max_size=12,
)
#: How many samples every maker writes.
COUNT = 6


class InMemory(SampleSource):
    """Samples that a test gives, each as if it were a file."""

    format = "memory"

    def __init__(self, example: Example) -> None:
        super().__init__("memory")
        self._items = example.items
        self.labels = example.labels

    @property
    def is_divisible(self) -> bool:
        return True

    def samples(self) -> Iterator[Item]:
        return iter(self._own(lambda: self._items))


def picture(seed: int, height: int = 24, width: int = 32) -> np.ndarray:
    """A smooth picture, (H, W, 3) uint8."""
    coarse = np.random.default_rng(seed).integers(0, 256, (height // 8, width // 8, 3))
    image = Image.fromarray(coarse.astype(np.uint8))
    return np.asarray(image.resize((width, height), Image.Resampling.BICUBIC))


def png(pixels: np.ndarray) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    return stream.getvalue()


def framed(record: bytes) -> bytes:
    """A record in TFRecord's frame."""
    head = struct.pack("<Q", len(record))
    crc = struct.pack("<I", masked(google_crc32c.value(head)))
    return head + crc + record + struct.pack("<I", masked(google_crc32c.value(record)))


def image_folder(folder: Path) -> Path:
    for number in range(COUNT):
        path = folder / "images" / ("cat", "dog")[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png(picture(number)))
    return folder / "images"


def tfrecord(folder: Path) -> Path:
    path = folder / "train.tfrecord"
    records = [
        encode_example({"image": [png(picture(n))], "label": np.asarray([n % 2])})
        for n in range(COUNT)
    ]
    path.write_bytes(b"".join(map(framed, records)))
    return path


def npz(folder: Path) -> Path:
    path = folder / "train.npz"
    images = np.stack([picture(n) for n in range(COUNT)])
    np.savez(path, image=images, label=np.arange(COUNT) % 2)
    return path


def npy_folder(folder: Path) -> Path:
    for number in range(COUNT):
        path = folder / "arrays" / ("cat", "dog")[number % 2] / f"{number}.npy"
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, picture(number))
    return folder / "arrays"


def csv_file(folder: Path) -> Path:
    path = folder / "train.csv"
    rows = [f"{n / 4},text {n},{n % 2}" for n in range(COUNT)]
    path.write_text("\n".join(["x,words,label", *rows]) + "\n")
    return path


def json_lines(folder: Path) -> Path:
    path = folder / "train.jsonl"
    rows = [{"ids": [n, n + 1, 2], "text": f"a {n}", "label": n % 2} for n in range(COUNT)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def parquet(folder: Path) -> Path:
    path = folder / "train.parquet"
    table = pyarrow.table(
        {
            "x": np.arange(COUNT, dtype=np.float32),
            "image": [png(picture(n)) for n in range(COUNT)],
            "label": np.arange(COUNT) % 2,
        }
    )
    pyarrow.parquet.write_table(table, path)
    return path


def webdataset(folder: Path) -> Path:
    path = folder / "train-000.tar"
    with tarfile.open(path, "w") as archive:
        for number in range(COUNT):
            for suffix, content in (("png", png(picture(number))), ("cls", b"%d" % (number % 2))):
                member = tarfile.TarInfo(f"{number:05d}.{suffix}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    return path


def mnist(folder: Path) -> Path:
    (folder / "mnist").mkdir()
    images = np.stack([picture(n, 24, 24)[..., 0] for n in range(COUNT)])
    head = struct.pack(">HBB3I", 0, 8, 3, *images.shape)
    (folder / "mnist" / "train-images-idx3-ubyte").write_bytes(head + images.tobytes())
    labels = (np.arange(COUNT) % 2).astype(np.uint8)
    head = struct.pack(">HBBI", 0, 8, 1, COUNT)
    (folder / "mnist" / "train-labels-idx1-ubyte").write_bytes(head + labels.tobytes())
    return folder / "mnist"


def cifar(folder: Path) -> Path:
    (folder / "cifar").mkdir()
    rows = [bytes([n % 2]) + picture(n, 32, 32).transpose(2, 0, 1).tobytes() for n in range(COUNT)]
    (folder / "cifar" / "data_batch_1.bin").write_bytes(b"".join(rows))
    return folder / "cifar"


def coco(folder: Path) -> Path:
    root = folder / "coco"
    (root / "images").mkdir(parents=True)
    (root / "annotations").mkdir()
    images, boxes = [], []
    for number in range(COUNT):
        (root / "images" / f"{number}.png").write_bytes(png(picture(number)))
        images.append({"id": number, "file_name": f"{number}.png"})
        boxes.append({"image_id": number, "category_id": number % 2, "bbox": [1, 2, 10, 8]})
    content = {
        "images": images,
        "annotations": boxes,
        "categories": [{"id": 0, "name": "cat"}, {"id": 1, "name": "dog"}],
    }
    (root / "annotations" / "instances.json").write_text(json.dumps(content))
    return root


Maker = Callable[[Path], Path]
#: Each format with its maker and the name that the reader gives it.
MAKERS: dict[str, Maker] = {
    "image folder": image_folder,
    "TFRecord": tfrecord,
    "npz": npz,
    "npy folder": npy_folder,
    "CSV": csv_file,
    "JSON lines": json_lines,
    "Parquet": parquet,
    "WebDataset": webdataset,
    "MNIST": mnist,
    "CIFAR-10": cifar,
    "COCO": coco,
}


@pytest.fixture(params=list(MAKERS))
def made(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    """A data set of each format: the format's name and its path."""
    return request.param, MAKERS[request.param](tmp_path)

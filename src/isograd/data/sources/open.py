"""Which reader a file, folder or URL needs, decided by its content and layout."""

from __future__ import annotations

import glob
from collections.abc import Callable
from pathlib import Path

from isograd.checkpoints.remote import is_url, local_copy
from isograd.data.sources.base import SampleSource, refuse
from isograd.errors import CheckpointError, DataError

_KNOWN = (
    "Known are folders of images, TFRecord, MindRecord, .npy, .npz, CSV, JSON lines, Parquet, "
    "WebDataset, and the layouts of MNIST, CIFAR and COCO; or name a pipeline as file.py:callable."
)


def open_samples(address: str) -> SampleSource:
    """Open a file, a folder, a pattern of files (`part-*.tfrecord`) or a URL of fsspec.

    Raises DataError where there is none, or no reader knows it.
    """
    try:
        path = local_copy(address) if is_url(address) else Path(address)
        if any(sign in address for sign in "*?[") and not path.exists():
            paths = [Path(name) for name in sorted(glob.glob(address))]
            if not paths:
                raise refuse(address, "no file has such a name", "Correct the pattern.")
            return _open_files(paths, address)
        if path.is_dir():
            return _open_folder(path, address)
        if not path.is_file():
            raise refuse(address, "does not exist", "Name a data set or file.py:callable.")
        return _open_files([path], address)
    except CheckpointError as error:
        raise DataError(error.what, error.advice) from error
    except OSError as error:
        raise refuse(address, f"cannot be read ({error.strerror})", "Check its rights.") from error


def _open_files(paths: list[Path], address: str) -> SampleSource:
    from isograd.data.sources.arrays import ArrayRows
    from isograd.data.sources.classics import Cifar, is_cifar, is_idx
    from isograd.data.sources.coco import Coco, coco_file
    from isograd.data.sources.lines import CsvFile, JsonLines
    from isograd.data.sources.mindrecord import is_mindrecord, open_mindrecords
    from isograd.data.sources.parquet import MAGIC, ParquetFiles
    from isograd.data.sources.tfrecord import is_tfrecord, open_tfrecords
    from isograd.data.sources.webdataset import WebDataset, is_tar

    first = paths[0]
    with first.open("rb") as file:
        head = file.read(512)
    plain = first.name.removesuffix(".gz")
    if not head:
        raise refuse(address, "is empty", "Copy it again.")
    readers: tuple[tuple[Callable[[], bool], Callable[[], SampleSource]], ...] = (
        (lambda: is_mindrecord(first), lambda: open_mindrecords(paths, address)),
        (lambda: head.startswith(MAGIC), lambda: ParquetFiles(paths, address)),
        (lambda: head.startswith((b"\x93NUMPY", b"PK\x03\x04")), lambda: ArrayRows(first, address)),
        (lambda: plain.endswith((".csv", ".tsv")), lambda: CsvFile(first, address)),
        (lambda: coco_file(first) is not None, lambda: Coco(first, address)),
        (
            lambda: plain.endswith((".jsonl", ".ndjson", ".json")),
            lambda: JsonLines(first, address),
        ),
        (lambda: is_tar(first), lambda: WebDataset(paths, address)),
        (lambda: is_cifar(first), lambda: Cifar(paths, address)),
        (
            lambda: not _is_pickle(head) and (".tfrec" in first.name or is_tfrecord(first)),
            lambda: open_tfrecords(paths, address),
        ),
    )
    for is_such, reader in readers:
        if is_such():
            return reader()
    if _is_pickle(head):
        raise refuse(
            address,
            "is pickled, which could run code when it is read",
            "Take the binary version of the data set, or save it with numpy.save.",
        )
    if is_idx(first):
        raise refuse(address, "is one file of MNIST's layout", "Name its folder.")
    raise refuse(address, "is no data set that isograd knows", _KNOWN)


def _is_pickle(head: bytes) -> bool:
    return head[:1] == b"\x80" and b"\x02" <= head[1:2] <= b"\x05"


def _open_folder(path: Path, address: str) -> SampleSource:
    from isograd.data.sources.arrays import ArrayFolder
    from isograd.data.sources.classics import Cifar, Mnist, cifar_files, idx_pairs
    from isograd.data.sources.coco import Coco, coco_file
    from isograd.data.sources.images import ImageFolder
    from isograd.data.sources.mindrecord import is_mindrecord, open_mindrecords
    from isograd.data.sources.parquet import ParquetFiles
    from isograd.data.sources.tfrecord import open_tfrecords, tfrecords_in
    from isograd.data.sources.webdataset import WebDataset

    if idx_pairs(path):
        return Mnist(path, address)
    if binaries := cifar_files(path):
        return Cifar(binaries, address)
    if annotations := coco_file(path):
        return Coco(annotations, address)
    if records := tfrecords_in(path):
        return open_tfrecords(records, address)
    files = sorted(p for p in path.iterdir() if p.is_file())
    if shards := [p for p in files if p.suffix != ".db" and is_mindrecord(p)]:
        return open_mindrecords(shards, address)
    if tables := [p for p in files if p.suffix == ".parquet"]:
        return ParquetFiles(tables, address)
    if tars := [p for p in files if p.name.endswith((".tar", ".tar.gz"))]:
        return WebDataset(tars, address)
    if next((p for p in path.rglob("*") if p.suffix in (".npy", ".npz")), None):
        return ArrayFolder(path, address)
    if any(_is_pickle(p.open("rb").read(2)) for p in files[:16]):
        raise refuse(
            address,
            "holds pickled files, which could run code when they are read",
            "Take the binary version of the data set.",
        )
    return ImageFolder(path, address)

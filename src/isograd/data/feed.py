"""Batches that were stored once, for both trainings: the same numbers in the same order.

`isograd data pipeline.py:make -o FOLDER --batches N` stores them; in either framework one line
reads them::

    for image, label in isograd.data.feed.batches("FOLDER", "torch"):       # or "mindspore"
        ...

A folder is `feed.json` (schema isograd/feed/1: fields in their order, files with SHA-256) and one
.npz per batch.  Nothing in it is ever executed.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isograd.data.pipelines.host import PipelineHandle
from isograd.errors import DataError
from isograd.files import prepare_folder
from isograd.progress import Progress
from isograd.tensors import TensorValue

SCHEMA = "isograd/feed/1"
_INDEX = "feed.json"


def store(handle: PipelineHandle, folder: Path, count: int, progress: Progress) -> int:
    """Store the first batches of one epoch; how many there were.

    The folder appears whole or not at all.  Raises DataError for a field that is no array.
    """
    prepare_folder(folder)
    partial = folder.resolve().with_name(f".isograd-{os.getpid()}-{os.urandom(4).hex()}")
    partial.mkdir()
    progress.stage("storing batches")
    files: list[dict[str, str]] = []
    fields: list[str] = []
    try:
        for batch in handle.batches("real", is_split=False):
            (row,) = batch["rows"]
            fields = fields or list(row)
            content = _packed(row, len(files))
            name = f"batch-{len(files):06d}.npz"
            (partial / name).write_bytes(content)
            files.append({"file": name, "sha256": hashlib.sha256(content).hexdigest()})
            progress.advance(len(files), count, unit="batches")
            if len(files) == count:
                break
        if not files:
            raise DataError(f"{handle.address}: yields no batch", "There is nothing to store.")
        index = {
            "schema": SCHEMA,
            "source": handle.address,
            "pipeline": handle.about["kind"],
            "fields": fields,
            "batches": files,
        }
        (partial / _INDEX).write_text(json.dumps(index, indent=1) + "\n", "utf-8")
        folder.rmdir()
        partial.replace(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return len(files)


def _packed(row: dict[str, Any], number: int) -> bytes:
    arrays = {}
    for position, (name, found) in enumerate(row.items()):
        value = found.get("array")
        if value is None:
            raise DataError(
                f"batch {number:,}: field {name!r} is {found['text'][:60]!r} and no array",
                "Let the pipeline yield arrays of equal shapes.",
            )
        array = value.values if isinstance(value, TensorValue) else value
        arrays[f"f{position}"] = np.asarray(array)
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


class Feed:
    """The stored batches of a folder.

    Raises DataError where the folder is none, or a batch is not what was stored.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        try:
            index = json.loads((self.folder / _INDEX).read_text("utf-8"))
            if index["schema"] != SCHEMA:
                raise ValueError(f"schema {index['schema']!r}")
            self.fields = tuple(str(name) for name in index["fields"])
            self._files = [(str(b["file"]), str(b["sha256"])) for b in index["batches"]]
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise DataError(
                f"{folder}: is no folder of stored batches ({error})",
                "Store them: isograd data PIPELINE -o FOLDER --batches N.",
            ) from error

    def __len__(self) -> int:
        return len(self._files)

    def batch(self, number: int) -> tuple[NDArray[Any], ...]:
        """The arrays of one batch in the order of the fields, in the shapes and dtypes that were
        stored.

        Raises DataError where the file is missing or is not what was stored.
        """
        name, digest = self._files[number]
        path = self.folder / name
        if Path(name).name != name or not path.is_file():
            raise DataError(f"{path}: is missing", "Store the batches again.")
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() != digest:
            raise DataError(f"{path}: is not what was stored", "Store the batches again.")
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            return tuple(arrays[f"f{position}"] for position in range(len(self.fields)))


def is_feed(folder: str | Path) -> bool:
    """Whether a folder holds stored batches."""
    return (Path(folder) / _INDEX).is_file()


def batches(folder: str | Path, framework: str = "numpy") -> Iterator[tuple[Any, ...]]:
    """The stored batches in order: arrays of numpy, or tensors of "torch" or "mindspore"."""
    feed = Feed(folder)
    make = _maker(framework)
    for number in range(len(feed)):
        yield tuple(make(array) for array in feed.batch(number))


def _maker(framework: str) -> Any:
    if framework == "torch":
        import torch

        return lambda array: torch.from_numpy(array.copy())
    if framework == "mindspore":
        import mindspore

        return mindspore.Tensor
    if framework == "numpy":
        return lambda array: array
    raise DataError(f"{framework!r} is no framework", "Use 'numpy', 'torch' or 'mindspore'.")

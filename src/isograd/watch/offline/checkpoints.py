"""A series of checkpoints: weights that do not change, explode, or are not finite."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from isograd.checkpoints.base import TensorInfo, TensorSource
from isograd.checkpoints.open import open_source
from isograd.errors import RunError
from isograd.watch.looks import change_of, extended_row, sample_of
from isograd.watch.model import WatchReport
from isograd.watch.observation import Floats, Look, Network, StepRecord, TensorTable
from isograd.watch.offline.judging import judged

_SUFFIXES = (".ckpt", ".pt", ".pth", ".safetensors", ".npz", ".bin")
_NUMBERS = re.compile(r"\d+")
_STATISTICS = ("running_mean", "running_var", "moving_mean", "moving_variance")


def checkpoint_files(folder: Path) -> list[Path]:
    """The checkpoints of a folder in the order of the numbers in their names."""
    files = [p for p in folder.iterdir() if p.is_file() and p.suffix.lower() in _SUFFIXES]
    return sorted(files, key=lambda p: ([int(n) for n in _NUMBERS.findall(p.stem)], p.name))


def judge_checkpoints(folder: Path, files: list[Path]) -> WatchReport:
    """The weights of consecutive checkpoints; RunError where they are of different networks."""
    infos = _trainable(files[0])
    if not infos:
        raise RunError(f"{files[0]}: holds no floating tensors", "Give checkpoints of weights.")
    names = tuple(info.name for info in infos)
    network = Network(
        names,
        np.array([len(info.shape) for info in infos], dtype=np.int64),
        np.ones(len(names), dtype=bool),
        np.zeros(len(names), dtype=bool),
    )
    notes = (f"{len(files)} checkpoints in the order of the numbers in their names",)
    return judged(folder, "checkpoints", network, _records(files, names), notes=notes)


def _trainable(path: Path) -> list[TensorInfo]:
    with open_source(path) as source:
        return [info for info in source if _is_weight(info)]


def _is_weight(info: TensorInfo) -> bool:
    is_statistic = info.name.rpartition(".")[2] in _STATISTICS
    return info.dtype.startswith(("float", "bfloat")) and not info.part and not is_statistic


def _records(files: list[Path], names: tuple[str, ...]) -> Iterator[StepRecord]:
    before: list[Floats] | None = None
    for step, path in enumerate(files):
        with open_source(path) as source:
            rows, samples = _measured(path, source, names)
        look = Look(weights=TensorTable(names, np.array(rows)))
        if before is not None:
            pairs = list(zip(before, samples, strict=True))
            look = Look(
                weights=look.weights,
                update_ratio=np.array([change_of(a, b) for a, b in pairs]),
                unchanged=np.array([np.array_equal(a, b) for a, b in pairs], dtype=bool),
            )
        # The learning rate is not in a checkpoint; that training went on is known.
        yield StepRecord(step, learning_rates=(float("inf"),), look=look)
        before = samples


def _measured(
    path: Path, source: TensorSource, names: tuple[str, ...]
) -> tuple[list[list[float]], list[Floats]]:
    rows, samples = [], []
    for name in names:
        if name not in source:
            raise RunError(
                f"{path}: has no tensor {name!r}, which the first checkpoint has",
                "Give the checkpoints of one training in a folder of their own.",
            )
        values = source.read(name).values
        if values.dtype == np.float16:
            values = values.astype(np.float32)
        rows.append(extended_row(values))
        samples.append(sample_of(values).astype(np.float64))
    return rows, samples

"""One side of a comparison: a pipeline in its process, or a data set in files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from isograd.data.pipelines.host import PipelineHandle, field_value, is_pipeline
from isograd.data.pipelines.worker_draws import WorkerDraws
from isograd.data.sources.base import Problem, SampleSource, Value
from isograd.data.sources.media import UndecodableError, decode_audio, decode_image, kind_of
from isograd.data.sources.open import open_samples
from isograd.data.worker_seeds import draws_of

#: Fields of one sample.
Fields = dict[str, Value]


@dataclass(frozen=True)
class Step:
    """A transform of a chain, as `listing.describe` says it."""

    label: str
    kind: str
    parameters: dict[str, Any]
    is_random: bool | None
    where: str
    library: str


@dataclass(frozen=True)
class ChainInfo:
    """The transforms of one field; number: by which the worker knows it."""

    number: int
    field: str
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Epoch:
    """One epoch: positions of samples (-1 where unknown) and the sizes of batches."""

    ids: tuple[int, ...]
    sizes: tuple[int, ...]


class Side(Protocol):
    """What a comparison asks of a side."""

    address: str

    @property
    def kind(self) -> str:
        """What it is, in words."""
        ...

    @property
    def size(self) -> int | None:
        """How many samples an epoch has, where it says so."""
        ...

    @property
    def drop_last(self) -> bool | None:
        """Whether a last batch that is not full is left out; None where that is unknown."""
        ...

    @property
    def chains(self) -> tuple[ChainInfo, ...]:
        """The transforms that it lists."""
        ...

    def rows(self, most: int) -> Iterator[tuple[str, Fields]]:
        """Samples in the source's order, with their keys."""
        ...

    def epochs(self, count: int, most: int) -> tuple[list[Epoch] | None, list[str]]:
        """The order of some epochs, and notes; None where it cannot be known."""
        ...

    def worker_draws(self) -> tuple[list[WorkerDraws], list[str]]:
        """What its worker processes draw for one sample, and why that is not known."""
        ...

    def call(self, method: str, *arguments: Any) -> Any:
        """Ask the worker about a chain."""
        ...


class PipelineSide:
    """A pipeline of the user's."""

    def __init__(self, handle: PipelineHandle) -> None:
        self.address = handle.address
        self._handle = handle
        self.call = handle.call

    @property
    def kind(self) -> str:
        return str(self._handle.about["kind"])

    @property
    def size(self) -> int | None:
        size: int | None = self._handle.about["size"]
        return size

    @property
    def drop_last(self) -> bool | None:
        found: bool | None = self._handle.about["drop_last"]
        return found

    @property
    def chains(self) -> tuple[ChainInfo, ...]:
        return tuple(
            ChainInfo(number, chain["field"], tuple(_step(step) for step in chain["steps"]))
            for number, chain in enumerate(self._handle.about["chains"])
        )

    def rows(self, most: int) -> Iterator[tuple[str, Fields]]:
        for number, row in enumerate(self._handle.rows("ordered", most)):
            yield f"#{number}", {name: field_value(found) for name, found in row.items()}

    def epochs(self, count: int, most: int) -> tuple[list[Epoch] | None, list[str]]:
        found = self._handle.call("epochs", count, most)
        if found["epochs"] is None:
            return None, list(found["notes"])
        epochs = [Epoch(tuple(e["ids"]), tuple(e["sizes"])) for e in found["epochs"]]
        return epochs, list(found["notes"])

    def worker_draws(self) -> tuple[list[WorkerDraws], list[str]]:
        return draws_of(self._handle)


def _step(found: dict[str, Any]) -> Step:
    return Step(
        found["label"],
        found["kind"],
        found["parameters"],
        found["is_random"],
        found["where"],
        found["library"],
    )


class SourceSide:
    """A data set in files: its samples in their order, encoded images decoded."""

    chains: tuple[ChainInfo, ...] = ()
    drop_last: bool | None = None

    def __init__(self, source: SampleSource) -> None:
        self.address = source.address
        self._source = source

    @property
    def kind(self) -> str:
        return self._source.format

    @property
    def size(self) -> int | None:
        return self._source.count()

    def rows(self, most: int) -> Iterator[tuple[str, Fields]]:
        count = 0
        for item in self._source.samples():
            if isinstance(item, Problem):
                continue
            yield item.key, item.fields
            count += 1
            if most and count >= most:
                return

    def epochs(self, count: int, most: int) -> tuple[list[Epoch] | None, list[str]]:
        size = sum(1 for _ in self.rows(most))
        return [Epoch(tuple(range(size)), ())] * count, []

    def worker_draws(self) -> tuple[list[WorkerDraws], list[str]]:
        return [], []

    def call(self, method: str, *arguments: Any) -> Any:
        raise AssertionError(f"a data set in files has no chains ({method}, {arguments})")


@contextmanager
def open_side(address: str, name: str, python: str | None = None) -> Iterator[Side]:
    """Open a side and end its process afterwards; name: "A" or "B"."""
    if is_pipeline(address):
        with PipelineHandle(address, name, python) as handle:
            yield PipelineSide(handle)
        return
    source = open_samples(address)
    try:
        yield SourceSide(source)
    finally:
        source.close()


def numbers(value: Value) -> np.ndarray[Any, Any] | None:
    """The numbers of a field: of an encoded image its pixels; None for texts and other bytes.

    Returns (H, W) or (H, W, C) for an image, (T,) or (T, channels) for a sound, else the array of
    the field; the dtype is that of the content.
    """
    if isinstance(value, str):
        return None
    if isinstance(value, bytes):
        kind = kind_of(value)
        try:
            if kind == "image":
                return decode_image(value)
            if kind == "audio":
                return decode_audio(value)[0]
        except UndecodableError:
            return None
        return None
    return value if value.dtype.kind in "biufc" else None

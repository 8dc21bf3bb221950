"""A source of tensors in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from isograd.checkpoints.base import IndexedSource, RawTensor, TensorInfo
from isograd.errors import CheckpointError
from isograd.tensors import Array

MakeSource = Callable[..., IndexedSource]


class MemorySource(IndexedSource):
    """Tensors of a dictionary; names in `damaged` cannot be read."""

    def __init__(
        self, tensors: Mapping[str, Array], name: str, damaged: tuple[str, ...], ordered: bool
    ) -> None:
        super().__init__(Path(name))
        self.reads = 0
        self._tensors = dict(tensors)
        self._damaged = damaged
        for order, (key, values) in enumerate(tensors.items()):
            place = order if ordered else None
            self.add(TensorInfo(key, str(values.dtype), values.shape, values.nbytes, order=place))

    def raw(self, name: str) -> RawTensor:
        self.reads += 1
        if name in self._damaged:
            raise CheckpointError(f"{self.path}: {name} is damaged", "Copy it again.")
        return RawTensor(self._tensors[name], str(self._tensors[name].dtype))


@pytest.fixture
def make_source() -> MakeSource:
    def make(
        tensors: Mapping[str, Array],
        *,
        name: str = "memory",
        damaged: tuple[str, ...] = (),
        ordered: bool = False,
    ) -> IndexedSource:
        return MemorySource(tensors, name, damaged, ordered)

    return make

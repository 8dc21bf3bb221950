"""Hugging Face data sets, sequences and any other iterable."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from isograd.data.pipelines.base import Emitted, Pipeline
from isograd.data.pipelines.values import row_of


class IndexedPipeline(Pipeline):
    """What has a length and gives a sample for each number: a sequence, a Hugging Face set."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self._value = value
        is_hugging_face = type(value).__module__.startswith("datasets.")
        self.kind = "Hugging Face dataset" if is_hugging_face else "sequence"

    def size(self) -> int | None:
        return len(self._value)

    def real(self) -> Iterator[Emitted]:
        for number in range(len(self._value)):
            yield Emitted(row_of(self._value[number]), [number])

    def ordered(self) -> Iterator[Emitted]:
        return self.real()


class IterablePipeline(Pipeline):
    """Anything that can be iterated; an iterator is made anew by the callable for each epoch."""

    kind = "iterable"

    def __init__(self, value: Any, again: Callable[[], Any]) -> None:
        super().__init__()
        self._value = value
        self._again = again

    def real(self) -> Iterator[Emitted]:
        value, self._value = self._value, None
        if value is None:
            value = self._again()
        elif iter(value) is not value:
            self._value = value  # it can be iterated again
        for found in value:
            yield Emitted(row_of(found))

    def ordered(self) -> Iterator[Emitted]:
        return self.real()

"""isograd's end of a pipeline: open it in a process of its own, ask it, end it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from isograd.data.sources.base import Item, Sample, SampleSource, Value
from isograd.errors import DataError
from isograd.tensors import TensorValue
from isograd.worker.host import Worker

_PIPELINE = re.compile(r"(?:[^:]+\.py|[A-Za-z_][\w.]*):[A-Za-z_][\w.]*\Z")
_SERVICE = "isograd.data.pipelines.service:DataService"
#: Samples that cross the pipe at once.
_AT_ONCE = 16


def is_pipeline(address: str) -> bool:
    """Whether an address names a callable rather than a file: `file.py:name`, `module:name`."""
    return _PIPELINE.match(address) is not None and not Path(address).exists()


class PipelineHandle:
    """A pipeline in its worker."""

    def __init__(self, address: str, side: str = "A", python: str | None = None) -> None:
        self.address = address
        place, _, name = address.rpartition(":")
        path = Path(place)
        folder = path.parent if place.endswith(".py") else Path()
        reference = f"{path.name}:{name}" if place.endswith(".py") else address
        if place.endswith(".py") and not path.is_file():
            raise DataError(f"{place}: does not exist", "Name the pipeline as file.py:callable.")
        self._worker = Worker("data", side, python, _SERVICE)
        try:
            self.about: dict[str, Any] = self._worker.call(
                "open", reference, str(folder.resolve()), f"pipeline {side}"
            )
        except BaseException:
            self._worker.close()
            raise

    def __enter__(self) -> PipelineHandle:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def call(self, method: str, *arguments: Any) -> Any:
        """Ask the worker."""
        return self._worker.call(method, *arguments)

    def batches(self, order: str, *, is_split: bool) -> Iterator[dict[str, Any]]:
        """Batches of a new stream as the service gives them; order: "real" or "ordered"."""
        self.call("begin", order, order)
        while found := self.call("next", order, _AT_ONCE, is_split):
            yield from found

    def rows(self, order: str, most: int = 0) -> Iterator[dict[str, dict[str, Any]]]:
        """Single samples of a new stream: their fields as `values.wire` gave them."""
        count = 0
        for batch in self.batches(order, is_split=True):
            for row in batch["rows"]:
                yield row
                count += 1
                if most and count >= most:
                    return

    def close(self) -> None:
        """End the process; safe to call again."""
        self._worker.close()


def field_value(found: dict[str, Any]) -> Value:
    """A field of a sample from the pipe: an array, bytes or a text."""
    value = found.get("array")
    if value is None:
        return str(found["text"])
    array = value.values if isinstance(value, TensorValue) else value
    if found["container"] == "bytes":
        return np.asarray(array, np.uint8).tobytes()
    return np.asarray(array)


class PipelineSource(SampleSource):
    """A pipeline as a source of samples for the inventory: one epoch, as a training gets it."""

    def __init__(self, address: str, python: str | None = None) -> None:
        super().__init__(address)
        self.handle = PipelineHandle(address, "A", python)
        self.format = self.handle.about["kind"]

    def count(self) -> int | None:
        size: int | None = self.handle.about["size"]
        return size

    def samples(self) -> Iterator[Item]:
        for number, row in enumerate(self.handle.rows("real")):
            yield Sample(f"#{number}", {name: field_value(found) for name, found in row.items()})

    def close(self) -> None:
        self.handle.close()

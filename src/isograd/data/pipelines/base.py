"""What every kind of pipeline answers, in the worker's process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from isograd.data.pipelines.values import Row
from isograd.data.pipelines.worker_draws import WorkerDraws


@dataclass
class Chain:
    """Transforms that one field of a sample passes, in their order.

    field: the field of the result that they make, "" until that is known; call: how a transform is
    called, which differs between libraries.
    """

    transforms: list[Any]
    field: str = ""

    def call(self, transform: Any, value: Any) -> Any:
        """Apply one transform."""
        return transform(value)


@dataclass
class Emitted:
    """What one step of iterating yields: a batch or a sample.

    ids: for each sample, its position among those in the source's order, where that is known.
    """

    row: Row
    ids: list[int] | None = None


class Pipeline(ABC):
    """A pipeline that the user's callable returned."""

    kind: str = ""
    is_batched: bool = False
    batch_size: int | None = None
    drop_last: bool | None = None
    workers: int = 0
    notes: list[str]

    def __init__(self) -> None:
        self.notes = []

    @abstractmethod
    def real(self) -> Iterator[Emitted]:
        """One epoch, as a training's `for batch in …` would get it."""

    @abstractmethod
    def ordered(self) -> Iterator[Emitted]:
        """The same samples in the source's own order, without shuffling."""

    def epoch_ids(self, epochs: int, most: int) -> list[dict[str, Any]] | None:
        """Per epoch the positions of samples in their order, and the sizes of batches.

        A position that is not known is -1.  None where positions cannot be known.
        """
        found = []
        for _ in range(epochs):
            ids: list[int] = []
            sizes: list[int] = []
            for emitted in self.real():
                if emitted.ids is None:
                    return None
                ids += emitted.ids
                sizes.append(len(emitted.ids))
                if len(ids) >= most:
                    break
            found.append({"ids": ids, "sizes": sizes})
        return found

    def size(self) -> int | None:
        """How many samples one epoch has, where the pipeline says so."""
        return None

    def chains(self) -> list[Chain]:
        """The transforms that can be listed."""
        return []

    def inputs(self, chain: Chain, positions: list[int]) -> list[Any]:
        """What goes into a chain for the samples at some positions of the order."""
        raise NotImplementedError

    def fresh_inputs(self, chain: Chain, positions: list[int]) -> Iterator[Any]:
        """The same, where what was taken before is not used again."""
        yield from self.inputs(chain, positions)

    def worker_draws(self) -> list[WorkerDraws]:
        """What each place with several worker processes drew for one sample."""
        return []

    def before_draw(self, number: int) -> None:  # noqa: B027 - most libraries need nothing
        """Called before each draw of a random transform: the draws must not repeat."""

    def after_draws(self) -> None:  # noqa: B027 - most libraries need nothing
        """Called after the last draw: seeds are again as they were."""

"""Whether the worker processes of a pipeline draw the same random numbers.

Processes begin as copies of one: a generator of random numbers that nobody seeds anew in each
draws the same in all of them.  torch seeds `random`, `numpy.random` and its own in each worker of
a DataLoader, and no generator that a Dataset holds; MindSpore 2.10 does not seed `numpy.random`
either (executed: GeneratorDataset and map with python_multiprocessing).

Each worker is asked for one and the same sample, again and again.  Draws that are the same in two
workers repeat, unless equal draws are so frequent within one worker that chance explains it.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from isograd.data.pipelines.values import Row, as_array
from isograd.data.sources.base import Value, digest

#: Draws of each worker: with two outcomes of equal chance 20 would do.
DRAWS = 64
#: Seconds after which asking ends, with as many draws as there are.
_PATIENCE_S = 10.0
#: Chance at which workers that draw apart may be said to repeat.
_LEVEL = 1e-6


@dataclass(frozen=True)
class WorkerDraws:
    """What the workers of one place drew.

    place: in words; draws: of each worker; alike: workers that share one sequence, 1 for none.
    """

    place: str
    workers: int
    draws: int
    alike: int


def judge(place: str, workers: int, drawn: Sequence[bytes]) -> WorkerDraws:
    """How many workers share their draws.

    drawn: digests in the order of the samples; the n-th comes from worker n modulo workers.
    """
    count = len(drawn) // workers
    sequences = Counter(tuple(drawn[n : count * workers : workers]) for n in range(workers))
    if not count:
        return WorkerDraws(place, workers, 0, 1)
    sequence, alike = sequences.most_common(1)[0]
    equal = sum(seen * (seen - 1) for seen in Counter(sequence).values())
    chance = max(equal / max(1, count * (count - 1)), 1 / count)
    is_repeated = alike > 1 and count * math.log(chance) <= math.log(_LEVEL)
    return WorkerDraws(place, workers, count, alike if is_repeated else 1)


def gathered(rows: Iterable[bytes], workers: int) -> list[bytes]:
    """The digests as long as they come in time."""
    found: list[bytes] = []
    started = time.monotonic()
    for row in rows:
        found.append(row)
        if len(found) >= DRAWS * workers or time.monotonic() - started > _PATIENCE_S:
            break
    return found


def digest_of(row: Row) -> bytes:
    """A digest of everything in a sample."""
    fields: dict[str, Value] = {}
    for name, value in row.items():
        array = as_array(value)
        fields[name] = str(value) if array is None else array
    return digest(fields)


class Asked:
    """A data set that is asked for one sample at every place."""

    def __init__(self, dataset: Any, index: int, length: int) -> None:
        self._dataset, self._index, self._length = dataset, index, length

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> Any:
        return self._dataset[self._index]


def digests(rows: Iterable[Row]) -> Iterator[bytes]:
    """The digests of samples as they come."""
    return (digest_of(row) for row in rows)


def as_wire(found: Iterable[WorkerDraws]) -> list[dict[str, Any]]:
    """The answers as they cross the pipe."""
    return [asdict(one) for one in found]


def from_wire(found: Iterable[dict[str, Any]]) -> list[WorkerDraws]:
    """The answers of the other process."""
    return [WorkerDraws(**one) for one in found]

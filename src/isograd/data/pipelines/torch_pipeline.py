"""torch's DataLoader and Dataset, also those of torchvision and albumentations within them."""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator
from typing import Any

from isograd.data.pipelines.base import Chain, Emitted, Pipeline
from isograd.data.pipelines.listing import flattened, inner_list
from isograd.data.pipelines.values import as_array, row_of
from isograd.data.pipelines.worker_draws import (
    DRAWS,
    Asked,
    WorkerDraws,
    digest_of,
    gathered,
    judge,
)

_DEPTH = 3


def is_torch_pipeline(value: Any) -> bool:
    """Whether a value is a DataLoader or a Dataset of torch."""
    data = sys.modules.get("torch.utils.data")
    return data is not None and isinstance(value, (data.DataLoader, data.Dataset))


class AlbumentationsChain(Chain):
    """Transforms of albumentations take and give an image by its name."""

    def call(self, transform: Any, value: Any) -> Any:
        return transform(image=value)["image"]


class TorchPipeline(Pipeline):
    """A DataLoader, or a Dataset alone."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        data = sys.modules["torch.utils.data"]
        self._loader = value if isinstance(value, data.DataLoader) else None
        self._dataset = value.dataset if self._loader is not None else value
        self._is_map_style = not isinstance(self._dataset, data.IterableDataset)
        self.kind = "torch DataLoader" if self._loader is not None else "torch Dataset"
        if self._loader is not None:
            self.is_batched = self._loader.batch_sampler is not None or bool(value.batch_size)
            self.batch_size = value.batch_size
            self.drop_last = bool(value.drop_last)
            self.workers = int(value.num_workers)
        self._chains: list[Chain] | None = None
        self._taken: dict[int, dict[int, Any]] = {}

    def size(self) -> int | None:
        try:
            return len(self._loader.sampler if self._loader is not None else self._dataset)
        except (TypeError, AttributeError):
            return None

    def real(self) -> Iterator[Emitted]:
        if not self._is_map_style:
            for found in self._dataset if self._loader is None else self._loader:
                yield Emitted(row_of(found))
            return
        if self._loader is None:
            yield from self._items(range(len(self._dataset)))
            return
        recorder = _Recorder(self._loader.batch_sampler or self._loader.sampler)
        name = "batch_sampler" if self._loader.batch_sampler is not None else "sampler"
        loader = copy.copy(self._loader)
        # DataLoader refuses this attribute once it is made; the copy is iterated and let go
        object.__setattr__(loader, name, recorder)
        ranks = self._ranks()
        for number, batch in enumerate(loader):
            indices = [ranks.get(index, -1) for index in recorder.batches[number]]
            yield Emitted(row_of(batch), indices)

    def _ranks(self) -> dict[int, int]:
        return {index: rank for rank, index in enumerate(self._own_indices())}

    def _own_indices(self) -> list[int]:
        """The indices that the sampler may draw, sorted: a shard has its own part."""
        if self._loader is None:
            return list(range(len(self._dataset)))
        sampler = self._loader.sampler
        for name in ("RandomSampler", "SequentialSampler", "WeightedRandomSampler"):
            if type(sampler).__name__ == name:
                return list(range(len(self._dataset)))
        if type(sampler).__name__ == "DistributedSampler":
            count, start = int(sampler.num_replicas), int(sampler.rank)
            return list(range(start, len(self._dataset), count))
        indices = getattr(sampler, "indices", None)
        if indices is not None:
            return sorted(int(index) for index in indices)
        return list(range(len(self._dataset)))

    def ordered(self) -> Iterator[Emitted]:
        if not self._is_map_style:
            yield from self.real()
            return
        indices = self._own_indices()
        if self._loader is None or not self.is_batched:
            yield from self._items(indices)
            return
        size = self.batch_size or getattr(self._loader.batch_sampler, "batch_size", None) or 1
        for start in range(0, len(indices), size):
            chosen = indices[start : start + size]
            if len(chosen) < size and self.drop_last:
                return
            batch = self._loader.collate_fn([self._dataset[index] for index in chosen])
            yield Emitted(row_of(batch), list(range(start, start + len(chosen))))

    def _items(self, indices: Any) -> Iterator[Emitted]:
        for rank, index in enumerate(indices):
            yield Emitted(row_of(self._dataset[index]), [rank])

    def chains(self) -> list[Chain]:
        if self._chains is None:
            self._chains = list(self._found_chains())
        return self._chains

    def worker_draws(self) -> list[WorkerDraws]:
        if self._loader is None or not self._is_map_style or self.workers < 2 or not self.size():
            return []
        asked = Asked(self._dataset, self._own_indices()[0], DRAWS * self.workers)
        loader = sys.modules["torch.utils.data"].DataLoader(
            asked,
            batch_size=None,
            num_workers=self.workers,
            collate_fn=_digest,
            worker_init_fn=self._loader.worker_init_fn,
            multiprocessing_context=self._loader.multiprocessing_context,
        )
        found = gathered(loader, self.workers)
        return [judge(f"DataLoader(num_workers={self.workers})", self.workers, found)]

    def _found_chains(self) -> Iterator[Chain]:
        if not self._is_map_style or not len(self._dataset):
            return
        seen: set[int] = set()
        for owner, name, transform in _transforms_of(self._dataset, _DEPTH):
            parts = flattened(transform)
            if id(transform) in seen or not parts:
                continue
            seen.add(id(transform))
            is_album = type(transform).__module__.startswith("albumentations")
            chain = (AlbumentationsChain if is_album else Chain)(parts)
            spy = _Spy(transform, chain)
            if self._run_with(owner, name, spy) and spy.inputs:
                chain.field = spy.field
                self._taken[id(chain)] = {0: spy.inputs[0]}
                self._spied = getattr(self, "_spied", {})
                self._spied[id(chain)] = (owner, name, transform)
                yield chain

    def _run_with(self, owner: Any, name: str, spy: _Spy, index: int = 0) -> bool:
        """Ask for one sample with a spy in a transform's place; whether that worked."""
        original = getattr(owner, name)
        try:
            setattr(owner, name, spy)
            row = row_of(self._dataset[self._own_indices()[index]])
        except Exception:  # the user's own code decides what a spy breaks
            return False
        finally:
            setattr(owner, name, original)
        spy.field = _field_of(spy.outputs[-1], row) if spy.outputs else ""
        return bool(spy.field)

    def inputs(self, chain: Chain, positions: list[int]) -> list[Any]:
        known = self._taken[id(chain)]
        owner, name, transform = self._spied[id(chain)]
        for position in positions:
            if position not in known:
                spy = _Spy(transform, chain)
                self._run_with(owner, name, spy, position)
                known[position] = spy.inputs[0]
        return [known[position] for position in positions]

    def fresh_inputs(self, chain: Chain, positions: list[int]) -> Iterator[Any]:
        for position in positions:  # one at a time: pictures are large before they are cropped
            kept = self._taken[id(chain)]
            self._taken[id(chain)] = {}
            try:
                (found,) = self.inputs(chain, [position])
            finally:
                self._taken[id(chain)] = kept
            yield found


def _digest(sample: Any) -> bytes:
    return digest_of(row_of(sample))


class _Recorder:
    """A sampler that remembers what it gave."""

    def __init__(self, sampler: Any) -> None:
        self._sampler = sampler
        self.batches: list[list[int]] = []

    def __iter__(self) -> Iterator[Any]:
        for found in self._sampler:
            given = list(found) if isinstance(found, (list, tuple)) else [found]
            self.batches.append([int(index) for index in given])
            yield found

    def __len__(self) -> int:
        return len(self._sampler)


class _Spy:
    """A transform that does its work and keeps what went in and came out."""

    def __init__(self, transform: Any, chain: Chain) -> None:
        self._transform = transform
        self._is_named = isinstance(chain, AlbumentationsChain)
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self.field = ""

    def __call__(self, *values: Any, **named: Any) -> Any:
        if self._is_named:
            self.inputs.append(copy.deepcopy(named["image"]))
            found = self._transform(**named)
            self.outputs.append(found["image"])
            return found
        self.inputs.append(copy.deepcopy(values[0]) if values else None)
        found = self._transform(*values, **named)
        self.outputs.append(found)
        return found


def _field_of(output: Any, row: dict[str, Any]) -> str:
    """The field of a sample that holds a transform's output."""
    for name, value in row.items():
        if value is output:
            return name
    wanted = as_array(output)
    for name, value in row.items():
        found = as_array(value)
        if wanted is None or found is None or found.shape != wanted.shape:
            continue
        if found.dtype == wanted.dtype and (found == wanted).all():
            return name
    return ""


def _transforms_of(value: Any, depth: int) -> Iterator[tuple[Any, str, Any]]:
    """Attributes of a data set, and of data sets within it, that are callables on samples."""
    for name, found in list(getattr(value, "__dict__", {}).items()):
        is_pair = type(found).__name__ == "StandardTransform"  # torchvision's, of input and target
        if not is_pair and _is_transform(name, found):
            yield value, name, found
        elif depth and (is_pair or (hasattr(found, "__getitem__") and not callable(found))):
            yield from _transforms_of(found, depth - 1)


def _is_transform(name: str, value: Any) -> bool:
    if isinstance(value, type) or not callable(value):
        return False
    return inner_list(value) is not None or "transform" in name

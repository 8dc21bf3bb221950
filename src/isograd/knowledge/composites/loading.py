"""torch.utils.data in plain Python: datasets, samplers, the loader; batches are tensors."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import ops  # noqa: TID253

from isograd.knowledge.composites.making import tensor


def _permutation(count: int) -> list[int]:
    return [int(i) for i in np.argsort(ops.rand(count).asnumpy())]


class TensorDataset:
    """Rows of tensors of the same length."""

    def __init__(self, *tensors: Any) -> None:
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        return tuple(part[index] for part in self.tensors)

    def __len__(self) -> int:
        return int(self.tensors[0].shape[0])


class Subset:
    """Some items of a dataset."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: int) -> Any:
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)


class ConcatDataset:
    """Datasets one after the other."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        self.ends = [int(n) for n in np.cumsum([len(dataset) for dataset in self.datasets])]

    def __getitem__(self, index: int) -> Any:
        index = index % len(self)
        number = bisect.bisect_right(self.ends, index)
        start = self.ends[number - 1] if number else 0
        return self.datasets[number][index - start]

    def __len__(self) -> int:
        return self.ends[-1]


def random_split(dataset: Any, lengths: Sequence[int]) -> list[Subset]:
    """Parts of a dataset, drawn without repetition."""
    order, parts, start = _permutation(len(dataset)), [], 0
    for length in lengths:
        parts.append(Subset(dataset, order[start : start + length]))
        start += length
    return parts


class SequentialSampler:
    """The positions in order."""

    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(SequentialSampler):
    """The positions in random order, or drawn with replacement."""

    def __init__(
        self, data_source: Any, replacement: bool = False, num_samples: int | None = None
    ) -> None:
        super().__init__(data_source)
        self.replacement, self.num_samples = replacement, num_samples

    def __iter__(self) -> Iterator[int]:
        count = len(self.data_source)
        if self.replacement:
            return iter(int(i) for i in ops.randint(0, count, (len(self),)).asnumpy())
        return iter(_permutation(count)[: len(self)])

    def __len__(self) -> int:
        return self.num_samples or len(self.data_source)


class SubsetRandomSampler:
    """Some positions in random order."""

    def __init__(self, indices: Sequence[int]) -> None:
        self.indices = indices

    def __iter__(self) -> Iterator[int]:
        return iter([self.indices[i] for i in _permutation(len(self.indices))])

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler:
    """Positions drawn by weights."""

    def __init__(self, weights: Any, num_samples: int, replacement: bool = True) -> None:
        self.weights = np.asarray(weights, np.float64)
        self.num_samples, self.replacement = num_samples, replacement

    def __iter__(self) -> Iterator[int]:
        seed = int(ops.randint(0, 2**31 - 1, (1,)).asnumpy()[0])
        share = self.weights / self.weights.sum()
        generator = np.random.default_rng(seed)
        found = generator.choice(len(share), self.num_samples, self.replacement, share)
        return iter(int(i) for i in found)

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler:
    """Positions in lists of a size."""

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        batch: list[int] = []
        for index in self.sampler:
            batch.append(index)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        count = len(self.sampler)  # type: ignore[arg-type]
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


def default_collate(batch: Sequence[Any]) -> Any:
    """Items as tensors with a batch axis, inside tuples and dicts."""
    first = batch[0]
    if isinstance(first, ms.Tensor):
        return ops.stack(list(batch))
    if isinstance(first, np.ndarray):
        return ms.Tensor(np.stack(batch))
    if isinstance(first, float):
        return ms.Tensor(np.array(batch, np.float64))
    if isinstance(first, Mapping):
        return {key: default_collate([item[key] for item in batch]) for key in first}
    if isinstance(first, str):
        return batch
    if isinstance(first, (tuple, list)):
        return [default_collate(part) for part in zip(*batch, strict=True)]
    return tensor(list(batch))


class DataLoader:
    """Batches of a dataset, loaded in this process."""

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        collate_fn: Callable[[Any], Any] | None = None,
        drop_last: bool = False,
    ) -> None:
        self.dataset, self.batch_size = dataset, batch_size
        self.collate_fn = collate_fn or default_collate
        chosen = sampler or (RandomSampler if shuffle else SequentialSampler)(dataset)
        self.sampler = chosen
        self.batch_sampler = batch_sampler or BatchSampler(chosen, batch_size or 1, drop_last)

    def __iter__(self) -> Iterator[Any]:
        for batch in self.batch_sampler:
            items = [self.dataset[index] for index in batch]
            yield items[0] if self.batch_size is None else self.collate_fn(items)

    def __len__(self) -> int:
        return len(self.batch_sampler)

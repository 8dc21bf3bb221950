"""torch.utils.data in plain Python: datasets, samplers, the loader; batches are tensors."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import mindspore as ms  # noqa: TID253
import mindspore.dataset as ds  # noqa: TID253
import numpy as np
from mindspore import ops  # noqa: TID253

from isograd.runtime.making import tensor
from isograd.runtime.writing import position


def _permutation(count: int) -> list[int]:
    return [int(i) for i in np.argsort(ops.rand(count).asnumpy())]


def _number(index: Any) -> Any:
    """A position as Python's number if it is one of numpy's, which MindSpore's tensors refuse."""
    return index.item() if isinstance(index, np.integer) else index


class Dataset:
    """Items by number, in a class of its own."""

    def __class_getitem__(cls, _: Any) -> Any:
        return cls

    def __add__(self, other: Any) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset:
    """Items one after the other, in a class of its own."""

    def __class_getitem__(cls, _: Any) -> Any:
        return cls

    def __add__(self, other: Any) -> ChainDataset:
        return ChainDataset([self, other])


class Sampler:
    """Positions of a dataset, in a class of its own."""

    def __init__(self, data_source: Any = None) -> None:
        self.data_source = data_source

    def __class_getitem__(cls, _: Any) -> Any:
        return cls


class TensorDataset(Dataset):
    """Rows of tensors of the same length."""

    def __init__(self, *tensors: Any) -> None:
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        return tuple(part[position(index)] for part in self.tensors)

    def __len__(self) -> int:
        return int(self.tensors[0].shape[0])


class Subset(Dataset):
    """Some items of a dataset."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[_number(self.indices[i]) for i in index]]
        return self.dataset[_number(self.indices[index])]

    def __getitems__(self, indices: Sequence[int]) -> Any:
        return _items(self.dataset, [self.indices[index] for index in indices])

    def __len__(self) -> int:
        return len(self.indices)


def _items(dataset: Any, positions: Iterable[Any]) -> Any:
    """The items of a batch: by one call of the dataset's own `__getitems__` where it has that."""
    numbers = [_number(index) for index in positions]
    taking = getattr(dataset, "__getitems__", None)
    return taking(numbers) if taking else [dataset[index] for index in numbers]


class ConcatDataset(Dataset):
    """Datasets one after the other."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        sizes = [len(dataset) for dataset in self.datasets]
        self.cumulative_sizes = list(itertools.accumulate(sizes))

    def __getitem__(self, index: int) -> Any:
        if index < 0:
            if -index > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            index += len(self)
        number = bisect.bisect_right(self.cumulative_sizes, index)
        start = self.cumulative_sizes[number - 1] if number else 0
        return self.datasets[number][index - start]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


class ChainDataset(IterableDataset):
    """Streams one after the other."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[Any]:
        for dataset in self.datasets:
            yield from dataset

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self.datasets)


class StackDataset(Dataset):
    """The items of datasets side by side: tuples, or dicts where the datasets have names."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if bool(args) == bool(kwargs):
            raise ValueError("datasets are given by their places or by their names")
        self.datasets: Any = args or kwargs
        sizes = {len(dataset) for dataset in args or kwargs.values()}
        if len(sizes) > 1:
            raise ValueError("Size mismatch between datasets")
        self._length = sizes.pop()

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __len__(self) -> int:
        return self._length


def get_worker_info() -> None:
    """None, as in torch's main process: a port's loader has no processes of workers."""


def random_split(dataset: Any, lengths: Sequence[Any], generator: Any = None) -> list[Subset]:
    """Parts of a dataset, drawn without repetition; lengths are numbers, or shares of one."""
    count = len(dataset)
    if sum(lengths) <= 1 < count:
        shares = [int(count * share) for share in lengths]
        left = count - sum(shares)
        lengths = [size + (number < left) for number, size in enumerate(shares)]
    order, parts, start = _permutation(count), [], 0
    for length in lengths:
        parts.append(Subset(dataset, order[start : start + length]))
        start += length
    return parts


class SequentialSampler(Sampler):
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
        self,
        data_source: Any,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Any = None,
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
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*map(default_collate, zip(*batch, strict=True)))
    if isinstance(first, (tuple, list)):
        return [default_collate(part) for part in zip(*batch, strict=True)]
    return tensor(list(batch))


def default_convert(item: Any) -> Any:
    """An item as it is, its arrays of numbers as tensors; a named tuple stays one."""
    if isinstance(item, (np.ndarray, np.generic)):
        return item if item.dtype.kind in "SUO" else ms.Tensor(item)
    if isinstance(item, Mapping):
        return {key: default_convert(part) for key, part in item.items()}
    if isinstance(item, tuple) and hasattr(item, "_fields"):
        return type(item)(*[default_convert(part) for part in item])
    if isinstance(item, (tuple, list, range)):
        return [default_convert(part) for part in item]
    return item


class DataLoader:
    """Batches of a dataset.

    With workers, items that hold no tensors are loaded by threads of mindspore.dataset; the other
    arguments of torch's have no meaning here.  Orders are drawn from MindSpore's random numbers.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        *_: Any,
        **__: Any,
    ) -> None:
        self.dataset, self.batch_size, self.num_workers = dataset, batch_size, num_workers
        self.drop_last = drop_last
        self.collate_fn = collate_fn or (default_collate if batch_size else default_convert)
        self._is_stream = not hasattr(dataset, "__getitem__") and hasattr(dataset, "__iter__")
        if batch_sampler is not None:
            self.batch_size = None
        if sampler is None and not self._is_stream:
            sampler = (RandomSampler if shuffle else SequentialSampler)(dataset)
        self.sampler, self.batch_sampler = sampler, batch_sampler
        if batch_sampler is None and batch_size is not None and not self._is_stream:
            self.batch_sampler = BatchSampler(sampler, batch_size, drop_last)

    def __iter__(self) -> Iterator[Any]:
        if self._is_stream:
            return self._stream()
        if not self._auto_collation:
            return (self.collate_fn(self.dataset[_number(i)]) for i in self._index_sampler)
        if self.num_workers > 0:
            return self._parallel()
        return (self._loaded(positions) for positions in self._index_sampler)

    @property
    def _auto_collation(self) -> bool:
        """Whether the loader asks for single items and makes a batch of them."""
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        """What the dataset is asked for; loaders derived from torch's define both anew."""
        return self.batch_sampler if self._auto_collation else self.sampler

    def __len__(self) -> int:
        if self._is_stream:
            size = self.batch_size or 1
            return len(self.dataset) // size if self.drop_last else -(-len(self.dataset) // size)
        return len(self._index_sampler)

    def _loaded(self, positions: Iterable[int]) -> Any:
        return self.collate_fn(_items(self.dataset, positions))

    def _stream(self) -> Iterator[Any]:
        items = iter(self.dataset)
        if self.batch_size is None:
            yield from (self.collate_fn(item) for item in items)
            return
        while batch := list(itertools.islice(items, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield self.collate_fn(batch)

    def _parallel(self) -> Iterator[Any]:
        """Whole batches, each a row of a GeneratorDataset, where their items are plain."""
        waiting = iter(self._index_sampler)
        first = next(waiting, None)
        if first is None:
            return
        items = _items(self.dataset, first)
        batches = list(waiting)
        if self.collate_fn is not default_collate or not all(map(_is_plain, items)):
            yield self.collate_fn(items)
            yield from (self._loaded(positions) for positions in batches)
            return
        yield default_collate(items)
        if not batches:
            return
        columns = [f"column_{number}" for number, _ in enumerate(_leaves(items[0]))]
        rows = ds.GeneratorDataset(
            _Rows(self.dataset, batches),
            columns,
            shuffle=False,
            num_parallel_workers=self.num_workers,
            python_multiprocessing=False,
        )
        for row in rows.create_tuple_iterator(num_epochs=1):
            yield _rebuilt(items[0], iter(row))


class _Rows:
    """The batches of an epoch as rows of arrays."""

    def __init__(self, dataset: Any, batches: Sequence[Sequence[int]]) -> None:
        self.dataset, self.batches = dataset, batches

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, number: int) -> tuple[Any, ...]:
        items = [_leaves(item) for item in _items(self.dataset, self.batches[int(number)])]
        return tuple(np.stack([np.asarray(p) for p in part]) for part in zip(*items, strict=True))


def _is_plain(item: Any) -> bool:
    return all(isinstance(leaf, (np.ndarray, np.generic, int, float)) for leaf in _leaves(item))


def _leaves(item: Any) -> list[Any]:
    if isinstance(item, Mapping):
        item = list(item.values())
    if isinstance(item, (tuple, list)):
        return [leaf for part in item for leaf in _leaves(part)]
    return [item]


def _rebuilt(item: Any, leaves: Iterator[Any]) -> Any:
    """A batch in the shape of an item."""
    if isinstance(item, Mapping):
        return {key: _rebuilt(part, leaves) for key, part in item.items()}
    if isinstance(item, (tuple, list)):
        return [_rebuilt(part, leaves) for part in item]
    return next(leaves)

"""Loaders yield torch's batches: nested, short at the end, from samplers, streams and workers."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.utils.data as theirs
from tests.convert.support import converted, run_both

pytest.importorskip("mindspore")

import mindspore as ms

from isograd.runtime import loading, training_distributed


class Pairs:
    """Arrays and numbers."""

    def __len__(self) -> int:
        return 7

    def __getitem__(self, index: int) -> Any:
        return np.full((2,), index, np.float32), index


class Dicts(Pairs):
    """Dicts with everything in them."""

    def __getitem__(self, index: int) -> Any:
        return {"x": np.float32(index), "name": str(index), "pair": (index, index / 2)}


Sample = namedtuple("Sample", ["x", "name"])


class Named(Pairs):
    """Tuples with names."""

    def __getitem__(self, index: int) -> Any:
        return Sample(np.float32(index), str(index))


class Stream:
    """Items without number."""

    def __iter__(self) -> Iterator[Any]:
        return iter(np.arange(5))


class TorchStream(Stream, theirs.IterableDataset):  # type: ignore[type-arg, misc]
    """The same for torch."""


def plain(value: Any) -> Any:
    if isinstance(value, (ms.Tensor, torch.Tensor)):
        array = value.asnumpy() if isinstance(value, ms.Tensor) else value.numpy()
        return str(array.dtype), array.tolist()
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    return [plain(part) for part in value] if isinstance(value, (list, tuple)) else value


@pytest.mark.parametrize("dataset", [Pairs(), Dicts(), Named()], ids=["pairs", "dicts", "names"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"batch_size": 3},
        {"batch_size": 3, "drop_last": True},
        {"batch_size": None},
        {"batch_size": 2, "sampler": [4, 1, 1]},
        {"batch_sampler": [[0, 2], [3]]},
        {"batch_size": 2, "collate_fn": len},
    ],
    ids=str,
)
def test_batches_are_torchs(dataset: Any, options: dict[str, Any]) -> None:
    ours = loading.DataLoader(dataset, **options)
    original: Any = theirs.DataLoader(dataset, **options)
    assert [plain(batch) for batch in ours] == [plain(batch) for batch in original]
    assert len(ours) == len(original)


def test_a_batch_sampler_of_torchs_kind_is_taken() -> None:
    batches = theirs.BatchSampler(range(5), 2, drop_last=False)
    ours = loading.DataLoader(Pairs(), batch_sampler=batches)
    original: Any = theirs.DataLoader(Pairs(), batch_sampler=batches)
    assert [plain(batch) for batch in ours] == [plain(batch) for batch in original]
    assert (len(ours), ours.batch_size) == (len(original), original.batch_size)


@pytest.mark.parametrize("size", [2, 4])
def test_workers_yield_the_same(size: int) -> None:
    alone = loading.DataLoader(Pairs(), batch_size=size)
    several = loading.DataLoader(Pairs(), batch_size=size, num_workers=2)
    assert [plain(batch) for batch in several] == [plain(batch) for batch in alone]


def test_streams_are_batched() -> None:
    ours = loading.DataLoader(Stream(), batch_size=2)
    original: Any = theirs.DataLoader(TorchStream(), batch_size=2)
    assert [plain(batch) for batch in ours] == [plain(batch) for batch in original]


def test_shuffling_draws_each_once_and_anew() -> None:
    ms.set_seed(1)
    loader = loading.DataLoader(Pairs(), batch_size=7, shuffle=True)
    orders = [plain(next(iter(loader)))[1][1] for _ in range(3)]
    assert all(sorted(order) == list(range(7)) for order in orders)
    assert orders[0] != orders[1] or orders[1] != orders[2]


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("count", [7, 8, 2])
def test_shares_are_torchs(count: int, drop_last: bool) -> None:
    for rank in range(3):
        options = {"num_replicas": 3, "rank": rank, "shuffle": False, "drop_last": drop_last}
        ours = training_distributed.DistributedSampler(range(count), **options)
        original: Any = theirs.DistributedSampler(range(count), **options)  # type: ignore[arg-type]
        assert list(ours) == list(original)
        assert len(ours) == len(original)


def test_shuffled_shares_are_disjoint_and_differ_by_epoch() -> None:
    samplers = [training_distributed.DistributedSampler(range(9), 3, rank) for rank in range(3)]
    first = [list(sampler) for sampler in samplers]
    assert sorted(position for share in first for position in share) == list(range(9))
    for sampler in samplers:
        sampler.set_epoch(1)
    assert [list(sampler) for sampler in samplers] != first


def test_numpys_numbers_are_positions_and_sizes_add_up() -> None:
    """`Subset(dataset, fold)` of an array, rows of it in lists, and datasets one after another."""
    fold, values = np.arange(6)[::-1].copy(), np.arange(12.0).reshape(6, 2)
    found = []
    for module, make in ((loading, ms.Tensor), (theirs, torch.tensor)):
        rows: Any = module.TensorDataset(make(values))  # type: ignore[attr-defined]
        part: Any = module.Subset(rows, fold)  # type: ignore[attr-defined]
        both: Any = module.ConcatDataset([rows, part, rows])  # type: ignore[attr-defined]
        items = rows[fold[1]], rows[fold[:2]], part[0], part[[0, 2]], both[7]
        # Python asks for items until there is none.
        all_of_both = [item for _, item in zip(range(30), both, strict=False)]
        with pytest.raises(ValueError, match="exceed"):
            both[-19]
        found.append((plain((*items, both[-1], all_of_both)), both.cumulative_sizes))
    assert found[0] == found[1]
    assert found[0][1] == [6, 12, 18]


class Batches(Pairs):
    """Items that are made for a whole batch."""

    def __getitems__(self, indices: list[int]) -> list[Any]:
        return [(np.float32(len(indices)), np.float32(index)) for index in indices]


@pytest.mark.parametrize("workers", [0, 2], ids=["alone", "workers"])
def test_a_dataset_makes_the_items_of_a_batch_at_once(workers: int) -> None:
    """`__getitems__`, also through a Subset and for a `collate_fn`."""
    found = []
    for module in (loading, theirs):
        whole: Any = Batches()
        part: Any = module.Subset(whole, [5, 3, 1])  # type: ignore[attr-defined]
        options = {"batch_size": 2, "num_workers": workers}
        loaders = [module.DataLoader(data, **options) for data in (whole, part)]  # type: ignore[attr-defined]
        as_they_are = module.DataLoader(whole, batch_size=3, collate_fn=list)  # type: ignore[attr-defined]
        found.append([plain(list(loader)) for loader in (*loaders, as_they_are)])
    assert found[0] == found[1]


def test_named_tuples_stay_such_in_a_batch() -> None:
    (batch,) = loading.DataLoader(Named(), batch_size=7)
    assert isinstance(batch, Sample)
    assert batch.x.shape == (7,)


def test_streams_are_added_to_one() -> None:
    class Own(Stream, loading.IterableDataset):
        """A stream of the port's."""

    assert len(list(Own() + Own())) == 10


def test_loaders_that_ask_for_whole_batches() -> None:
    """Loaders derived from torch's that let the dataset take a list of positions."""
    found = []
    for module in (theirs, loading):

        class Whole(module.DataLoader):  # type: ignore[name-defined,misc]
            @property
            def _auto_collation(self) -> bool:
                return False

            @property
            def _index_sampler(self) -> Any:
                return self.batch_sampler

        class Rows(module.Dataset):  # type: ignore[name-defined,misc]
            def __len__(self) -> int:
                return 5

            def __getitem__(self, index: Any) -> Any:
                return np.arange(5.0)[index] * 2

        loader = Whole(Rows(), 2, collate_fn=lambda batch: batch)
        found.append((len(loader), [batch.tolist() for batch in loader]))
    assert found[0] == found[1] == (3, [[0.0, 2.0], [4.0, 6.0], [8.0]])


CLASSES = """
import torch
from torch.utils.data import Dataset, Subset, TensorDataset


class Named(TensorDataset):
    def __init__(self, name, *tensors):
        super().__init__(*tensors)
        self.name = name


def made(*rows, kind=TensorDataset):
    return kind(*rows)


def kinds(data):
    return [isinstance(data, kind) for kind in (TensorDataset, Subset, Dataset)]


KINDS = {"rows": TensorDataset, "part": Subset}


def results():
    rows = torch.arange(6.0)
    part = KINDS["part"](made(rows), [1, 3])
    named = Named("some", rows, rows + 1)
    return [kinds(part), kinds(made(rows)), kinds(named), named.name, len(named),
            [float(one) for one in named[2]], float(part[1][0])]
"""


def test_datasets_are_classes(tmp_path: Path) -> None:
    """They are derived from, handed over, looked up and asked for."""
    port, report = converted(tmp_path, {"rows.py": CLASSES})
    assert not report.findings
    asked = "import json, rows; print(json.dumps(rows.results()))"
    of_torch, of_port = run_both(tmp_path, port, asked)
    assert of_port == of_torch

"""Pipelines of mindspore.dataset: a tree of data sets, of which maps hold the transforms."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import sys
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from isograd.data.pipelines.base import Chain, Emitted, Pipeline
from isograd.data.pipelines.listing import flattened
from isograd.data.pipelines.values import Row
from isograd.data.pipelines.worker_draws import (
    DRAWS,
    Asked,
    WorkerDraws,
    digests,
    gathered,
    judge,
)

#: Samples in the source's order whose digests tell positions.
_MOST_KNOWN = 65536


def is_mindspore_pipeline(value: Any) -> bool:
    """Whether a value is a data set of mindspore.dataset."""
    data = sys.modules.get("mindspore.dataset")
    return data is not None and isinstance(value, data.Dataset)


class MindSporePipeline(Pipeline):
    """A tree of data sets, from its root."""

    kind = "MindSpore dataset"

    def __init__(self, value: Any) -> None:
        super().__init__()
        self._root = value
        batches = [n for n in _nodes(value) if type(n).__name__ in _BATCHES]
        self.is_batched = bool(batches)
        if batches:
            size = getattr(batches[0], "batch_size", None)
            self.batch_size = size if isinstance(size, int) else None
            self.drop_last = bool(getattr(batches[0], "drop_remainder", False))
        self._names = tuple(value.get_col_names())
        self._raw: dict[int, Row] = {}
        self._seed: int | None = None

    def size(self) -> int | None:
        with contextlib.suppress(Exception):  # a tree that cannot say so counts nothing
            return int(_without(self._root, _BATCHES).get_dataset_size())
        return None

    def real(self) -> Iterator[Emitted]:
        yield from self._emitted(self._root)

    def ordered(self) -> Iterator[Emitted]:
        yield from self._emitted(_unshuffled(self._root))

    def _emitted(self, dataset: Any) -> Iterator[Emitted]:
        # worker processes begin with this process's state, which nothing else advances
        np.random.random()  # noqa: NPY002 - that state is what is to be advanced
        for row in dataset.create_dict_iterator(num_epochs=1, output_numpy=True):
            yield Emitted({name: row[name] for name in self._names if name in row})

    def epoch_ids(self, epochs: int, most: int) -> list[dict[str, Any]] | None:
        """By the index that a source is asked for, else by digests of samples before transforms.

        A new iterator per epoch, as `for batch in dataset` makes one.
        """
        try:
            bare = _digested(self._root)
            flat = _without(_unshuffled(bare), (*_BATCHES, "RepeatDataset"))
            known: dict[bytes, list[int]] = {}
            is_whole = True
            for position, row in enumerate(_rows(flat)):
                if position >= _MOST_KNOWN:
                    is_whole = False
                    break
                known.setdefault(_key(row), []).append(position)
            found = [_epoch(bare, known, most, self.is_batched) for _ in range(epochs)]
            if is_whole and any(-1 in epoch["ids"] for epoch in found):
                self.notes.append("the order was not compared: the source draws its samples anew")
                return None
            return found
        except Exception as error:  # a tree that filters or joins by columns cannot be cut
            said = (str(error).splitlines() or [type(error).__name__])[0]
            self.notes.append(f"the order was not compared: {said[:120]}")
            return None

    def chains(self) -> list[Chain]:
        found: dict[str, list[Any]] = {}
        names: dict[str, str] = {}
        for node in reversed(list(_nodes(self._root))):
            if type(node).__name__ != "MapDataset" or len(node.input_columns) != 1:
                continue
            (column,) = node.input_columns
            operations = [part for one in _listed(node.operations) for part in flattened(one)]
            target = node.output_columns[0] if node.output_columns else column
            found[target] = found.pop(column, []) + operations
            names[target] = names.pop(column, column)
        chains = []
        for target, operations in found.items():
            chain = Chain(operations, target)
            self._sources = getattr(self, "_sources", {})
            self._sources[id(chain)] = names[target]
            chains.append(chain)
        return chains

    def inputs(self, chain: Chain, positions: list[int]) -> list[Any]:
        missing = [position for position in positions if position not in self._raw]
        if missing:
            cut = (*_BATCHES, "RepeatDataset", "MapDataset", "ProjectDataset")
            flat = _without(_unshuffled(self._root), cut)
            for position, row in enumerate(_rows(flat)):
                self._raw.setdefault(position, row)
                if position >= max(missing):
                    break
        column = self._sources[id(chain)]
        return [self._raw[position][column] for position in positions]

    def fresh_inputs(self, chain: Chain, positions: list[int]) -> Iterator[Any]:
        self._raw = {}
        yield from self.inputs(chain, positions)

    def worker_draws(self) -> list[WorkerDraws]:
        found = []
        for node in _nodes(self._root):
            kind, workers = type(node).__name__, node.num_parallel_workers or 1
            if workers < 2 or not getattr(node, "python_multiprocessing", False):
                continue
            probe = _PROBES[kind](node, DRAWS * workers) if kind in _PROBES else None
            if probe is not None:
                place = f"{kind.removesuffix('Dataset').lower()}(num_parallel_workers={workers})"
                found.append(judge(place, workers, gathered(digests(_rows(probe)), workers)))
        return found

    def before_draw(self, number: int) -> None:
        # Eager C++ transforms under a set seed return the same draw at every call.
        config = sys.modules["mindspore.dataset"].config
        if self._seed is None:
            self._seed = config.get_seed()
        config.set_seed(20_000 + number)

    def after_draws(self) -> None:
        if self._seed is not None:
            sys.modules["mindspore.dataset"].config.set_seed(self._seed)
            self._seed = None


def _asked(node: Any, count: int) -> Any:
    """The source of a node, whose workers are asked for one sample; None for an iterable."""
    if not hasattr(node.source, "__getitem__") or not node.source_len:
        return None
    return sys.modules["mindspore.dataset"].GeneratorDataset(
        Asked(node.source, 0, count),
        node.column_names,
        shuffle=False,
        num_parallel_workers=node.num_parallel_workers,
    )


def _mapped(node: Any, count: int) -> Any:
    """The functions of a node, whose workers get one sample."""
    (child,) = node.children
    first = next(_rows(child))
    sample = tuple(first[name] for name in node.input_columns)
    one = sys.modules["mindspore.dataset"].GeneratorDataset(
        Asked([sample], 0, count), node.input_columns, shuffle=False
    )
    return one.map(
        node.operations,
        node.input_columns,
        node.output_columns,
        num_parallel_workers=node.num_parallel_workers,
        python_multiprocessing=True,
    )


_PROBES = {"GeneratorDataset": _asked, "MapDataset": _mapped}
_BATCHES = ("BatchDataset", "PaddedBatchDataset", "BucketBatchByLengthDataset")


def _listed(operations: Any) -> list[Any]:
    return list(operations) if isinstance(operations, (list, tuple)) else [operations]


def _nodes(root: Any) -> Iterator[Any]:
    """The nodes of a tree, each before its children."""
    yield root
    for child in root.children:
        yield from _nodes(child)


def _without(root: Any, names: tuple[str, ...]) -> Any:
    """A copy of a tree without its nodes of some classes; their children take their places."""
    found = copy.deepcopy(root)
    while type(found).__name__ in names:
        (found,) = found.children
        found.parent = []
    for node in list(_nodes(found)):
        while any(type(child).__name__ in names for child in node.children):
            node.children = [
                inner
                for child in node.children
                for inner in (child.children if type(child).__name__ in names else [child])
            ]
        for child in node.children:
            child.parent = [weakref.ref(node)]
    return found


def _unshuffled(root: Any) -> Any:
    """A copy of a tree that yields the samples in the source's order."""
    found = _without(root, ("ShuffleDataset",))
    samplers = sys.modules["mindspore.dataset"]
    for node in _nodes(found):
        sampler: Any = getattr(node, "sampler", None)
        if hasattr(node, "shuffle_flag"):
            node.shuffle_flag = 0
        if type(sampler).__name__ == "RandomSampler":
            node.sampler = samplers.SequentialSampler()
        elif type(sampler).__name__ == "DistributedSampler":
            node.sampler = samplers.DistributedSampler(
                sampler.num_shards, sampler.shard_id, shuffle=False
            )
    return found


def _rows(dataset: Any) -> Iterator[Row]:
    yield from dataset.create_dict_iterator(num_epochs=1, output_numpy=True)


def _digested(root: Any) -> Any:
    """A copy of a tree in which every source yields the digests of its samples, and no map is left.

    Digests have one size, so that samples of any shape can be batched.
    """
    found = _without(root, ("MapDataset", "ProjectDataset", "RenameDataset"))
    leaves = [node for node in _nodes(found) if not node.children]
    for number, leaf in enumerate(leaves):
        if _yields_indices(leaf, f"digest{number}"):
            continue
        columns = list(leaf.get_col_names())
        parents = [node for node in _nodes(found) if any(c is leaf for c in node.children)]
        leaf.parent = []
        mapped = leaf.map(
            _digest,
            input_columns=columns,
            output_columns=[f"digest{number}"],
            num_parallel_workers=1,
        )
        mapped = mapped.project([f"digest{number}"])
        for parent in parents:
            parent.children = [mapped if c is leaf else c for c in parent.children]
        mapped.parent = [weakref.ref(parent) for parent in parents]
        if leaf is found:
            found = mapped
    for node in _nodes(found):
        if type(node).__name__ in _BATCHES:
            for name in ("per_batch_map", "input_columns", "output_columns", "pad_info"):
                if hasattr(node, name):
                    setattr(node, name, None if name in ("per_batch_map", "pad_info") else [])
    return found


def _yields_indices(leaf: Any, column: str) -> bool:
    """Let a source in Python yield the index that it is asked for; whether it can be asked."""
    source = getattr(leaf, "source", None)
    if not hasattr(source, "__getitem__") or leaf.source_len < 0 or leaf.has_batch_sampler:
        return False
    leaf.source = [(np.asarray([index]),) for index in range(leaf.source_len)]
    leaf.column_names, leaf.column_types, leaf.schema = [column], [], None
    leaf.num_parallel_workers, leaf.python_multiprocessing = 1, False
    return True


def _digest(*columns: Any) -> Any:
    found = hashlib.blake2b(digest_size=16)
    for column in columns:
        value = np.asarray(column)
        found.update(f"{value.dtype.str}{value.shape}".encode())
        found.update(np.ascontiguousarray(value).tobytes())
    return np.frombuffer(found.digest(), np.uint8)


def _key(row: Row) -> bytes:
    return b"".join(np.asarray(row[name]).tobytes() for name in sorted(row))


def _epoch(bare: Any, known: dict[bytes, list[int]], most: int, is_batched: bool) -> dict[str, Any]:
    ids: list[int] = []
    sizes: list[int] = []
    used: dict[bytes, int] = {}
    for row in _rows(bare):
        parts = [row]
        if is_batched:
            size = len(next(iter(row.values())))
            parts = [{name: value[n] for name, value in row.items()} for n in range(size)]
        sizes.append(len(parts))
        for part in parts:
            key = _key(part)
            places = known.get(key, [-1])
            ids.append(places[used.get(key, 0) % len(places)])
            used[key] = used.get(key, 0) + 1
        if len(ids) >= most:
            break
    return {"ids": ids, "sizes": sizes}

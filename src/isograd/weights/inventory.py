"""What a checkpoint holds: its tensors, totals, and the share of each module."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from isograd.checkpoints.base import TensorInfo, TensorSource
from isograd.checkpoints.parts import with_parts
from isograd.weights.health import Issue, TensorHealth, health_of, issues_of
from isograd.weights.structure import STATISTICS, split_name


@dataclass(frozen=True)
class Share:
    """A group of tensors: how many, their elements and bytes."""

    name: str
    tensors: int
    elements: int
    size_bytes: int


@dataclass(frozen=True)
class Row:
    """One tensor with its health, or None where its numbers were not read.

    trainable: None where neither the file nor the name tells.
    """

    info: TensorInfo
    health: TensorHealth | None
    trainable: bool | None = None


@dataclass(frozen=True)
class Inventory:
    """One file or folder; totals count tied tensors once.

    trainable, frozen: the elements that are known to train, and known not to.
    by_module: of the network, by the first part of the name that tells tensors apart.
    by_part: of what lies beside the network, such as the state of an optimizer.
    is_verified: whether the file has checksums and they fit.
    """

    path: str
    kind: str
    rows: tuple[Row, ...]
    elements: int
    size_bytes: int
    trainable: int
    frozen: int
    by_module: tuple[Share, ...]
    by_part: tuple[Share, ...]
    by_dtype: tuple[Share, ...]
    issues: tuple[Issue, ...]
    metadata: dict[str, str]
    skipped: dict[str, str]
    is_verified: bool


_Listener = Callable[[int], None]
#: What is wrong in the states of an optimizer, too: their squares are small by their nature.
_OF_STATES = frozenset({"params.nan", "params.inf"})


def take_inventory(
    source: TensorSource, *, read: bool = True, listener: _Listener = lambda size_bytes: None
) -> Inventory:
    """List a source; with read, look at every number and check the file's checksums.

    listener: gets the bytes of each tensor when it was read.
    """
    verified = source.verify() if read else False
    rows: list[Row] = []
    issues: list[Issue] = []
    for info in with_parts(source):
        health = None
        if read:
            health = health_of(source.raw(info.name))
            found = issues_of(info.name, info.dtype, info.shape, health)
            issues += [one for one in found if not info.part or one.code in _OF_STATES]
            source.forget()
            listener(info.size_bytes)
        rows.append(Row(info, health, _trainable(info)))
    own = [row for row in rows if row.info.tied_to is None]
    network = [row.info for row in own if not row.info.part]
    return Inventory(
        str(source.path),
        source.kind,
        tuple(rows),
        sum(math.prod(row.info.shape) for row in own),
        sum(row.info.size_bytes for row in own),
        sum(math.prod(row.info.shape) for row in own if row.trainable is True),
        sum(math.prod(row.info.shape) for row in own if row.trainable is False),
        _shares(network, _module_key([info.name for info in network])),
        _shares([row.info for row in own if row.info.part], lambda info: info.part),
        _shares([row.info for row in own], lambda info: info.dtype),
        tuple(sorted(issues, key=lambda issue: not issue.needs_action)),
        dict(source.metadata),
        dict(source.skipped),
        verified,
    )


def _trainable(info: TensorInfo) -> bool | None:
    """What the file says, or what every framework's norms have in common."""
    if info.trainable is not None or info.part:
        return False if info.part else info.trainable
    is_statistic = split_name(info.name)[1] in STATISTICS
    return False if is_statistic or not info.dtype.startswith(("float", "bfloat")) else None


def _module_key(names: Sequence[str]) -> Callable[[TensorInfo], str]:
    """The name up to the first part in which the names differ."""
    split = [name.split(".") for name in names]
    depth = 0
    while split and all(len(parts) > depth + 2 for parts in split):
        if len({parts[depth] for parts in split}) > 1:
            break
        depth += 1
    return lambda info: ".".join(info.name.split(".")[: depth + 1])


def _shares(infos: Iterable[TensorInfo], key: Callable[[TensorInfo], str]) -> tuple[Share, ...]:
    tensors: Counter[str] = Counter()
    elements: Counter[str] = Counter()
    size_bytes: Counter[str] = Counter()
    for info in infos:
        group = key(info)
        tensors[group] += 1
        elements[group] += math.prod(info.shape)
        size_bytes[group] += info.size_bytes
    return tuple(
        Share(name, tensors[name], elements[name], size_bytes[name])
        for name in sorted(tensors, key=lambda name: -size_bytes[name])
    )

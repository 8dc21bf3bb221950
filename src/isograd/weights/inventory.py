"""What a checkpoint holds: its tensors, totals, and the share of each module."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from isograd.checkpoints.base import TensorInfo, TensorSource
from isograd.weights.health import Issue, TensorHealth, health_of, issues_of


@dataclass(frozen=True)
class Share:
    """A group of tensors: how many, their elements and bytes."""

    name: str
    tensors: int
    elements: int
    size_bytes: int


@dataclass(frozen=True)
class Row:
    """One tensor with its health, or None where its numbers were not read."""

    info: TensorInfo
    health: TensorHealth | None


@dataclass(frozen=True)
class Inventory:
    """One file or folder; totals count tied tensors once.

    is_verified: whether the file has checksums and they fit.
    """

    path: str
    kind: str
    rows: tuple[Row, ...]
    elements: int
    size_bytes: int
    trainable: int | None
    by_module: tuple[Share, ...]
    by_dtype: tuple[Share, ...]
    issues: tuple[Issue, ...]
    metadata: dict[str, str]
    skipped: dict[str, str]
    is_verified: bool


def take_inventory(source: TensorSource, *, read: bool = True) -> Inventory:
    """List a source; with read, look at every number and check the file's checksums."""
    verified = source.verify() if read else False
    rows: list[Row] = []
    issues: list[Issue] = []
    for info in source:
        health = None
        if read:
            health = health_of(source.raw(info.name))
            issues += issues_of(info.name, info.dtype, info.shape, health)
            source.forget()
        rows.append(Row(info, health))
    own = [row.info for row in rows if row.info.tied_to is None]
    known = [info.trainable for info in own if info.trainable is not None]
    return Inventory(
        str(source.path),
        source.kind,
        tuple(rows),
        sum(math.prod(info.shape) for info in own),
        sum(info.size_bytes for info in own),
        sum(known) if known else None,
        _shares(own, lambda info: info.name.partition(".")[0]),
        _shares(own, lambda info: info.dtype),
        tuple(sorted(issues, key=lambda issue: not issue.needs_action)),
        dict(source.metadata),
        dict(source.skipped),
        verified,
    )


def _shares(infos: list[TensorInfo], key: object) -> tuple[Share, ...]:
    assert callable(key)
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

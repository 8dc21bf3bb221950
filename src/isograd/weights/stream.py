"""The tensors of a target, made one move at a time and block by block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from isograd.checkpoints.base import RawTensor, TensorSource, size_in_bytes
from isograd.errors import CheckpointError
from isograd.pairing.parametrized import folded_shape
from isograd.pairing.transforms import (
    Chain,
    Concatenate,
    Identity,
    Reshape,
    Split,
    Transform,
)
from isograd.tensors import Array
from isograd.weights.blocks import bytes_of, contiguous_blocks
from isograd.weights.casts import CastLoss, cast, may_overflow, target_dtype
from isograd.weights.folding import folded
from isograd.weights.model import Move, Plan
from isograd.weights.writers import Blocks, Entry

#: Bytes of a mapped source that are read before its pages are let go.
_KEPT_BYTES = 1 << 26


class TensorStream:
    """What a plan makes of a source; every pass over it makes the same bytes."""

    def __init__(self, source: TensorSource, plan: Plan, dtype: str | None) -> None:
        self._source, self._plan, self._dtype = source, plan, dtype
        self._losses: dict[str, CastLoss] = {}
        self._read_bytes = 0

    @property
    def losses(self) -> tuple[CastLoss, ...]:
        """What the casts of the last pass lost, by tensor of the target."""
        return tuple(self._losses.values())

    def entries(self, *, may_share: bool) -> list[Entry]:
        """The table of the target, without reading a tensor.

        may_share: whether tied tensors are written once.
        """
        found: list[Entry] = []
        firsts: dict[tuple[str, object], str] = {}
        for move in self._plan.moves:
            infos = [self._source.info(name) for name in move.source]
            dtypes = {target_dtype(info.dtype, self._dtype) for info in infos}
            if len({info.dtype for info in infos}) != 1:
                raise CheckpointError(
                    f"{', '.join(move.source)} have different dtypes and become one tensor",
                    "Save them in one dtype, or convert them as they are with another map.",
                )
            (dtype,) = dtypes
            for name, shape in zip(move.target, self._shapes(move), strict=True):
                tied_to = None
                if len(infos) == len(move.target) == 1 and may_share:
                    origin = infos[0].tied_to or infos[0].name
                    first = firsts.setdefault((origin, (move.transform, dtype)), name)
                    tied_to = first if first != name else None
                found.append(Entry(name, dtype, shape, size_in_bytes(dtype, shape), tied_to))
        return found

    def tensors(self, entries: Sequence[Entry]) -> Iterator[tuple[Entry, Blocks]]:
        """The tensors in the order of the table; read each one's blocks before the next."""
        self._losses = {}
        table = iter(entries)
        for move in self._plan.moves:
            raws = [self._source.stored(name) for name in move.source]
            for pieces in _pieces(move, _whole(move, raws)):
                entry = next(table)
                yield entry, self._blocks(entry, raws[0].dtype, pieces)
            del raws
            self._source.forget()

    def overflows(self) -> tuple[CastLoss, ...]:
        """What casts would make infinite, found by making them without writing anything."""
        self._losses = {}
        for move in self._plan.moves:
            dtype = self._source.info(move.source[0]).dtype
            target = target_dtype(dtype, self._dtype)
            if not may_overflow(dtype, target):
                continue
            raws = [self._source.stored(name) for name in move.source]
            for name, bits in zip(move.source, _whole(move, raws), strict=False):
                entry = Entry(name, target, (), 0)
                for _ in self._blocks(entry, dtype, [bits]):
                    pass
            del raws
            self._source.forget()
        return tuple(loss for loss in self.losses if loss.overflowed)

    def _blocks(self, entry: Entry, dtype: str, pieces: list[Array]) -> Blocks:
        for piece in pieces:
            for block in contiguous_blocks(piece):
                made, loss = cast(entry.name, RawTensor(block, dtype), entry.dtype)
                if loss is not None:
                    before = self._losses.get(entry.name)
                    self._losses[entry.name] = loss if before is None else _sum(before, loss)
                yield bytes_of(made.bits)
                self._read_bytes += block.nbytes
                if self._read_bytes > _KEPT_BYTES:
                    self._source.forget()
                    self._read_bytes = 0

    def _shapes(self, move: Move) -> list[tuple[int, ...]]:
        """Shapes after the transform, by applying it to arrays that take no memory."""
        shapes = [self._source.info(name).shape for name in move.source]
        try:
            if move.fold is not None:
                shapes = [folded_shape(move.fold, shapes)]
            hollow = [_hollow(shape) for shape in shapes]
            shapes = [array.shape for array in _light(move.transform, hollow)]
        except (ValueError, IndexError) as error:
            raise _does_not_fit(move, error) from error
        if len(shapes) != len(move.target):
            raise _does_not_fit(move, ValueError("it has another number of results"))
        return shapes


def _sum(first: CastLoss, second: CastLoss) -> CastLoss:
    return replace(
        first,
        overflowed=first.overflowed + second.overflowed,
        flushed=first.flushed + second.flushed,
    )


def _whole(move: Move, raws: list[RawTensor]) -> list[Array]:
    """The bits that the transform takes: of the tensors, or of the weight that they make."""
    if move.fold is None:
        return [raw.bits for raw in raws]
    try:
        return [folded(move.fold, raws)]
    except ValueError as error:
        raise _does_not_fit(move, error) from error


def _pieces(move: Move, arrays: list[Array]) -> list[list[Array]]:
    """For each result the arrays whose elements follow each other; rows are not joined."""
    steps = move.transform.steps if isinstance(move.transform, Chain) else (move.transform,)
    try:
        *first, last = steps
        for step in first:
            arrays = step.apply(arrays)
        if isinstance(last, Concatenate) and last.axis == 0:
            return [arrays]
        return [[array] for array in last.apply(arrays)]
    except (ValueError, IndexError) as error:
        raise _does_not_fit(move, error) from error


def _light(transform: Transform, arrays: list[Array]) -> list[Array]:
    steps = transform.steps if isinstance(transform, Chain) else (transform,)
    for step in steps:
        if isinstance(step, Reshape):
            (array,) = arrays
            if array.shape != step.reference or _count(step.port) != array.size:
                raise ValueError(f"{array.shape} cannot become {step.port}")
            arrays = [_hollow(step.port)]
        elif isinstance(step, Concatenate):
            arrays = [_hollow(_joined(arrays, step.axis))]
        elif isinstance(step, Split):
            if sum(step.sizes) != arrays[0].shape[step.axis]:
                raise ValueError(f"{arrays[0].shape} cannot be cut into {step.sizes}")
            arrays = step.apply(arrays)
        elif not isinstance(step, Identity):
            arrays = step.apply(arrays)
    return arrays


def _joined(arrays: list[Array], axis: int) -> tuple[int, ...]:
    first = arrays[0].shape
    length = 0
    for array in arrays:
        if array.shape[:axis] != first[:axis] or array.shape[axis + 1 :] != first[axis + 1 :]:
            raise ValueError(f"{first} and {array.shape} cannot be joined")
        length += array.shape[axis]
    return (*first[:axis], length, *first[axis + 1 :])


def _hollow(shape: tuple[int, ...]) -> Array:
    return np.broadcast_to(np.zeros((), np.uint8), shape)


def _count(shape: tuple[int, ...]) -> int:
    return int(np.prod(shape, dtype=object))


def _does_not_fit(move: Move, error: Exception) -> CheckpointError:
    return CheckpointError(
        f"{', '.join(move.source)} cannot become {', '.join(move.target)} ({error})",
        "Correct the map, or leave it out.",
    )

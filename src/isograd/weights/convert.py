"""One checkpoint written as another: planned, streamed, read back, then put in place."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from isograd.checkpoints.base import RawTensor, TensorSource, size_in_bytes
from isograd.checkpoints.open import open_source
from isograd.errors import CheckpointError, UsageError
from isograd.tensors import Array
from isograd.weights.casts import CastLoss, cast, target_dtype
from isograd.weights.model import ConversionReport, Move, Plan
from isograd.weights.writers import FORMATS, Entry, bytes_of

_Listener = Callable[[int, int], None]


def convert(
    source: TensorSource,
    target: Path,
    plan: Plan,
    *,
    dtype: str | None = None,
    verify: bool = True,
    listener: _Listener = lambda done, total: None,
) -> ConversionReport:
    """Write the target as planned; it appears whole or not at all.

    listener: told the bytes that are done and their total.
    Raises CheckpointError where the source is damaged or what was written reads back differently.
    """
    started = time.monotonic()
    suffix = format_of(target)
    stream = _Stream(source, plan, dtype)
    entries = stream.entries(may_share=suffix in (".pth", ".pt", ".bin"))
    total = sum(entry.size_bytes for entry in entries)
    final = target.resolve()
    partial = final.with_name(f".isograd-{os.getpid()}-{os.urandom(4).hex()}.partial")
    try:
        with partial.open("xb") as file:
            _write(file, suffix, entries, stream, lambda done: listener(done, total))
        if verify:
            _read_back(partial, entries, stream)
        partial.replace(final)
    except OSError as error:
        raise CheckpointError(
            f"{target}: cannot be written ({error})", "Check the folder and the space in it."
        ) from error
    finally:
        partial.unlink(missing_ok=True)
    return ConversionReport(
        str(source.path),
        str(target),
        source.kind,
        suffix,
        plan,
        len(entries),
        total,
        tuple((entry.name, entry.tied_to) for entry in stream.entries(True) if entry.tied_to),
        tuple(stream.losses.values()),
        verify,
        time.monotonic() - started,
    )


def format_of(target: Path) -> str:
    """The suffix that names the format; UsageError for an unknown one."""
    if target.suffix.lower() not in FORMATS:
        raise UsageError(
            f"{target} has the suffix {target.suffix!r}, which names no format",
            f"Use one of these: {', '.join(FORMATS)}.",
        )
    return target.suffix.lower()


class _Stream:
    """The tensors of the target, made one move at a time."""

    def __init__(self, source: TensorSource, plan: Plan, dtype: str | None) -> None:
        self.losses: dict[str, CastLoss] = {}
        self._source, self._plan, self._dtype = source, plan, dtype

    def entries(self, may_share: bool) -> list[Entry]:
        """The table of the target, without reading a tensor."""
        found: list[Entry] = []
        firsts: dict[tuple[str, object], str] = {}
        for move in self._plan.moves:
            infos = [self._source.info(name) for name in move.source]
            dtypes = {target_dtype(info.dtype, self._dtype) for info in infos}
            if len(dtypes) != 1:
                raise CheckpointError(
                    f"{', '.join(move.source)} have different dtypes and become one tensor",
                    "Cast them with --dtype.",
                )
            dtype = dtypes.pop()
            for name, shape in zip(move.target, self._shapes(move), strict=True):
                tied_to = None
                if len(infos) == len(move.target) == 1 and may_share:
                    origin = infos[0].tied_to or infos[0].name
                    first = firsts.setdefault((origin, (move.transform, dtype)), name)
                    tied_to = first if first != name else None
                found.append(Entry(name, dtype, shape, size_in_bytes(dtype, shape), tied_to))
        return found

    def tensors(self, entries: Sequence[Entry]) -> Iterator[tuple[Entry, RawTensor]]:
        """The tensors in the order of the table."""
        table = iter(entries)
        for move in self._plan.moves:
            for made in self._made(move):
                yield next(table), made
            self._source.forget()

    def _made(self, move: Move) -> list[RawTensor]:
        casted: list[RawTensor] = []
        for name in move.source:
            raw = self._source.raw(name)
            done, loss = cast(name, raw, target_dtype(raw.dtype, self._dtype))
            casted.append(done)
            if loss is not None:
                self.losses[name] = loss
        try:
            arrays = move.transform.apply([tensor.bits for tensor in casted])
        except (ValueError, IndexError) as error:
            raise _does_not_fit(move, error) from error
        return [RawTensor(array, casted[0].dtype) for array in arrays]

    def _shapes(self, move: Move) -> list[tuple[int, ...]]:
        """Shapes after the transform, by applying it to arrays that take no memory."""
        hollow: list[Array] = [
            np.broadcast_to(np.zeros((), np.uint8), self._source.info(name).shape)
            for name in move.source
        ]
        try:
            shapes = [array.shape for array in _light(move, hollow)]
        except (ValueError, IndexError) as error:
            raise _does_not_fit(move, error) from error
        if len(shapes) != len(move.target):
            raise _does_not_fit(move, ValueError("it has another number of results"))
        return shapes


def _light(move: Move, arrays: list[Array]) -> list[Array]:
    from isograd.compare.pairing.transforms import Chain, Concatenate, Reshape

    steps = move.transform.steps if isinstance(move.transform, Chain) else (move.transform,)
    for step in steps:
        if isinstance(step, Reshape):
            (array,) = arrays
            if np.prod(step.port, dtype=np.int64) != array.size:
                raise ValueError(f"{array.shape} cannot become {step.port}")
            arrays = [np.broadcast_to(np.zeros((), np.uint8), step.port)]
        elif isinstance(step, Concatenate):
            first = arrays[0].shape
            length = sum(array.shape[step.axis] for array in arrays)
            shape = (*first[: step.axis], length, *first[step.axis + 1 :])
            arrays = [np.broadcast_to(np.zeros((), np.uint8), shape)]
        else:
            arrays = step.apply(arrays)
    return arrays


def _does_not_fit(move: Move, error: Exception) -> CheckpointError:
    return CheckpointError(
        f"{', '.join(move.source)} cannot become {', '.join(move.target)} ({error})",
        "Correct the map, or leave it out.",
    )


def _write(
    file: BinaryIO,
    suffix: str,
    entries: list[Entry],
    stream: _Stream,
    listener: Callable[[int], None],
) -> None:
    def counted() -> Iterator[tuple[Entry, RawTensor]]:
        done = 0
        for entry, tensor in stream.tensors(entries):
            yield entry, tensor
            done += entry.size_bytes
            listener(done)

    writer, _ = FORMATS[suffix]
    writer(file, entries, counted())
    file.flush()


def _read_back(path: Path, entries: Sequence[Entry], stream: _Stream) -> None:
    """Open what was written and compare every bit with the source."""
    with open_source(path) as written:
        if set(written.names()) != {entry.name for entry in entries}:
            raise CheckpointError(
                f"{path}: reads back with other names", "Report this with the source's names."
            )
        for entry, tensor in stream.tensors(entries):
            found = written.raw(entry.name)
            same = found.dtype == entry.dtype and found.bits.shape == entry.shape
            if not same or not _same_bytes(bytes_of(found.bits), bytes_of(tensor.bits)):
                raise CheckpointError(
                    f"{path}: {entry.name!r} reads back differently",
                    "Check the disk, then convert again.",
                )
            written.forget()


def _same_bytes(first: memoryview, second: memoryview) -> bool:
    return len(first) == len(second) and bool(
        np.array_equal(np.frombuffer(first, np.uint8), np.frombuffer(second, np.uint8))
        if first
        else True
    )

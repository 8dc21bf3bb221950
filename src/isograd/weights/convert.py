"""One checkpoint written as another: checked, streamed, read back, then put in place."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from isograd.checkpoints.base import TensorSource
from isograd.checkpoints.open import open_source
from isograd.errors import CheckpointError, UsageError
from isograd.weights.blocks import are_same_bytes, bytes_of
from isograd.weights.casts import CastLoss
from isograd.weights.model import ConversionReport, Plan
from isograd.weights.shards import INDEX, index_text, shard_name, shards_of
from isograd.weights.stream import TensorStream
from isograd.weights.structure import framework_of
from isograd.weights.targets import appearing, check_space, sync
from isograd.weights.writers import FORMATS, Blocks, Entry, WriteOptions

_Listener = Callable[[int, int], None]
#: Bytes of a mapped file that are compared before its pages are let go.
_KEPT_BYTES = 1 << 26


@dataclass(frozen=True)
class ConvertOptions:
    """How a target is written.

    verify: whether the source's checksums are checked and the target is read back.
    shard_bytes: the most bytes of a shard of a folder; None for a single file.
    may_overflow: whether numbers may become infinite by a cast.
    is_partial: whether a target may lack what the loading network needs.
    """

    dtype: str | None = None
    verify: bool = True
    has_checksum: bool = False
    shard_bytes: int | None = None
    may_overflow: bool = False
    is_partial: bool = False


def convert(
    source: TensorSource,
    target: Path,
    plan: Plan,
    options: ConvertOptions | None = None,
    *,
    listener: _Listener = lambda done, total: None,
) -> ConversionReport:
    """Write the target as planned; it appears whole or not at all.

    Where the plan does not fit the loading network, nothing is written and the report says so.
    listener: gets the bytes that are done and their total.
    Raises CheckpointError where the source is damaged or what was written reads back differently,
    UsageError where a cast would overflow.
    """
    options = options or ConvertOptions()
    started = time.monotonic()
    suffix = ".safetensors" if options.shard_bytes is not None else format_of(target)
    stream = TensorStream(source, plan, options.dtype)
    entries = stream.entries(may_share=suffix in (".pth", ".pt", ".bin"))
    size = sum(entry.size_bytes for entry in entries if entry.tied_to is None)
    losses: tuple[CastLoss, ...] = ()
    is_written = options.is_partial or not plan.does_not_fit
    if is_written:
        if not options.may_overflow:
            _refuse_overflows(stream.overflows())
        check_space(target, size)
        _write(source, target, suffix, entries, stream, options, listener)
        losses = stream.losses
    return ConversionReport(
        str(source.path),
        str(target),
        source.kind,
        suffix,
        plan,
        len(entries),
        size,
        tuple(
            (entry.name, entry.tied_to) for entry in stream.entries(may_share=True) if entry.tied_to
        ),
        losses,
        options.verify and is_written,
        is_written,
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


def _refuse_overflows(losses: Sequence[CastLoss]) -> None:
    if not losses:
        return
    worst = max(losses, key=lambda loss: loss.overflowed)
    raise UsageError(
        f"casts overflow: {worst.overflowed:,} of {worst.source} in {worst.name} would be infinite "
        f"in {worst.target}, and {len(losses) - 1:,} other tensors have such numbers",
        "Choose a dtype that holds them, or add --allow-overflow.",
    )


def _write(
    source: TensorSource,
    target: Path,
    suffix: str,
    entries: Sequence[Entry],
    stream: TensorStream,
    options: ConvertOptions,
    listener: _Listener,
) -> None:
    total = sum(entry.size_bytes for entry in entries) * (2 if options.verify else 1)
    counter = _Counter(total, listener)
    write_options = WriteOptions(options.has_checksum, _metadata(source, entries))
    with (
        appearing(target, is_folder=options.shard_bytes is not None) as partial,
        ThreadPoolExecutor(2, thread_name_prefix="isograd-weights") as pool,
    ):
        tensors = counter.counted(stream.tensors(entries))
        # A checksum costs as much as the writing, and the disk waits: both beside the rest.
        waiting: list[Future[object]] = [pool.submit(source.verify)] if options.verify else []
        for path, part in _files(partial, entries, options.shard_bytes):
            with path.open("xb") as file:
                FORMATS[suffix][0](file, part, _first(tensors, len(part)), write_options)
            waiting.append(pool.submit(sync, path))
        if options.verify:
            _read_back(partial, entries, counter.counted(stream.tensors(entries)))
        for done in waiting:
            done.result()
        if partial.is_dir():
            sync(partial)


def _files(
    partial: Path, entries: Sequence[Entry], shard_bytes: int | None
) -> Iterator[tuple[Path, Sequence[Entry]]]:
    """Each file of the target with its part of the table; an index where there are shards."""
    if shard_bytes is None:
        yield partial, entries
        return
    shards = shards_of(entries, shard_bytes)
    for number, shard in enumerate(shards):
        yield partial / shard_name(number, len(shards)), shard
    (partial / INDEX).write_text(index_text(shards), encoding="utf-8")
    sync(partial / INDEX)


def _first(tensors: Iterator[tuple[Entry, Blocks]], count: int) -> Iterator[tuple[Entry, Blocks]]:
    for _ in range(count):
        yield next(tensors)


def _metadata(source: TensorSource, entries: Iterable[Entry]) -> dict[str, str]:
    """What a .safetensors says of itself: `format` as the frameworks' libraries expect it."""
    kept = dict(source.metadata) if source.kind == "safetensors" else {}
    kept.pop("crc_num", None)
    framework = framework_of((entry.name for entry in entries), source.kind)
    return {**kept, "format": "ms" if framework == "mindspore" else "pt"}


class _Counter:
    """Counts the bytes that pass, and tells them to a listener."""

    def __init__(self, total: int, listener: _Listener) -> None:
        self._done, self._total, self._listener = 0, total, listener

    def counted(self, tensors: Iterator[tuple[Entry, Blocks]]) -> Iterator[tuple[Entry, Blocks]]:
        """The same tensors."""
        for entry, blocks in tensors:
            yield entry, self._passing(blocks)

    def _passing(self, blocks: Blocks) -> Blocks:
        for block in blocks:
            yield block
            self._done += len(block)
            self._listener(self._done, self._total)


def _read_back(
    path: Path, entries: Sequence[Entry], tensors: Iterator[tuple[Entry, Blocks]]
) -> None:
    """Open what was written and compare every bit with the source."""
    with open_source(path) as written:
        if set(written.names()) != {entry.name for entry in entries}:
            raise CheckpointError(
                f"{path}: reads back with other names", "Report this with the source's names."
            )
        for entry, blocks in tensors:
            found = written.stored(entry.name)
            same = found.dtype == entry.dtype and found.bits.shape == entry.shape
            if not same or not _is_same(bytes_of(found.bits), blocks, written):
                raise CheckpointError(
                    f"{path}: {entry.name!r} reads back differently",
                    "Check the disk, then convert again.",
                )
            del found
            written.forget()


def _is_same(found: memoryview, blocks: Blocks, written: TensorSource) -> bool:
    position = dropped = 0
    for block in blocks:
        if not are_same_bytes(found[position : position + len(block)], block):
            return False
        position += len(block)
        if position - dropped > _KEPT_BYTES:
            written.forget()
            dropped = position
    return position == len(found)

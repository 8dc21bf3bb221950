"""From one format to another: `convert`, which reads back what it wrote."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from isograd.data.sources.base import Problem, SampleSource
from isograd.data.sources.open import open_samples
from isograd.data.write.base import Writer, canonical
from isograd.data.write.mindrecord import (
    MOST_PAGE_BYTES,
    PAGE_BYTES,
    MindRecordWriter,
    PageTooSmallError,
)
from isograd.data.write.npz import NpzWriter
from isograd.data.write.parquet import ParquetWriter
from isograd.data.write.tfrecord import TFRecordWriter
from isograd.data.write.webdataset import WebDatasetWriter
from isograd.errors import DataError, UsageError
from isograd.files import require_writable
from isograd.progress import Progress

_REPORTED_EVERY = 256
#: Suffix → format and what makes its writer.
FORMATS: dict[str, tuple[str, Callable[[Path, str], Writer]]] = {
    ".tfrecord": ("TFRecord", TFRecordWriter),
    ".mindrecord": ("MindRecord", MindRecordWriter),
    ".npz": ("npz", NpzWriter),
    ".parquet": ("Parquet", ParquetWriter),
    ".tar": ("WebDataset", WebDatasetWriter),
}


@dataclass(frozen=True)
class Converted:
    """What was written: how many samples, what was left out and why, what was not kept."""

    format: str
    samples: int
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]


def require_format(target: Path) -> None:
    """UsageError unless the suffix names a format that can be written, to a place that can be."""
    if target.suffix not in FORMATS:
        known = ", ".join(f"{suffix} ({name})" for suffix, (name, _) in FORMATS.items())
        raise UsageError(f"{target}: its suffix names no format", f"Give one of {known}.")
    require_writable(target)


def convert(source: SampleSource, target: Path, progress: Progress) -> Converted:
    """Write a source's samples to a file, read it back and compare every value.

    The file appears whole or not at all.  Raises DataError where a sample does not fit the format,
    or where what is read back is not what was written.
    """
    name, make = FORMATS[target.suffix]
    resolved = target.resolve()
    partial = resolved.with_name(f".isograd-{os.getpid()}-{os.urandom(4).hex()}{target.suffix}")
    page_bytes = PAGE_BYTES
    while True:
        writer: Writer | None = None
        try:
            if make is MindRecordWriter:
                writer = MindRecordWriter(partial, resolved.name, page_bytes)
            else:
                writer = make(partial, resolved.name)
            digests, problems = _written(source, writer, progress)
            beside = writer.finish()
            _read_back(partial, digests, progress)
            _appear(partial, resolved, beside)
            return Converted(name, len(digests), problems, tuple(writer.notes))
        except PageTooSmallError as error:
            while page_bytes < error.size_bytes:
                page_bytes *= 2
            if page_bytes > MOST_PAGE_BYTES:
                raise DataError(
                    f"a sample has {error.size_bytes:,} bytes, more than MindRecord's largest page",
                    "Split it, or choose another format.",
                ) from error
        finally:
            for left in partial.parent.glob(f"{partial.name}*"):
                left.unlink(missing_ok=True)


def _written(
    source: SampleSource, writer: Writer, progress: Progress
) -> tuple[list[bytes], tuple[Problem, ...]]:
    progress.stage(f"writing {writer.path.suffix[1:]}")
    digests: list[bytes] = []
    problems: list[Problem] = []
    total = source.count() or 0
    for item in source.samples():
        if isinstance(item, Problem):
            problems.append(item)
            continue
        writer.write(item.fields)
        digests.append(canonical(item.fields))
        if len(digests) % _REPORTED_EVERY == 0:
            progress.advance(len(digests), max(total, len(digests)), unit="samples")
    if not digests:
        raise DataError(f"{source.address}: yields no sample", "There is nothing to write.")
    return digests, tuple(problems)


def _read_back(path: Path, digests: list[bytes], progress: Progress) -> None:
    progress.stage("reading back")
    count = 0
    for count, item in enumerate(open_samples(str(path)).samples(), 1):
        if isinstance(item, Problem):
            raise _unfaithful(count - 1, item.what)
        if count > len(digests) or canonical(item.fields) != digests[count - 1]:
            raise _unfaithful(count - 1, "other values than were written")
        if count % _REPORTED_EVERY == 0:
            progress.advance(count, len(digests), unit="samples")
    if count != len(digests):
        raise _unfaithful(count, "the file ends here")


def _unfaithful(number: int, what: str) -> DataError:
    return DataError(
        f"sample {number:,} was not read back as it was written: {what}",
        "Nothing was left behind. This is a fault of isograd or of the disk; please report it.",
    )


def _appear(partial: Path, target: Path, beside: Iterable[Path]) -> None:
    for path in beside:
        partial.with_name(partial.name + path.name.removeprefix(target.name)).replace(path)
    partial.replace(target)

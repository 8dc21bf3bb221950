"""The entry of `isograd data`: look at one source, or compare two."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from isograd.data import worker_seeds
from isograd.data.compare.run import CompareOptions, compare
from isograd.data.compare.side import Side, open_side
from isograd.data.feed import store
from isograd.data.inventory.run import InventoryOptions, inventory, inventory_of_parts
from isograd.data.model import Comparison, DataReport, SourceReport, Verdict, soundness
from isograd.data.pipelines.host import PipelineHandle, PipelineSource, is_pipeline
from isograd.data.sources.base import SampleSource
from isograd.data.sources.open import open_samples
from isograd.data.sources.splits import Splits
from isograd.data.vocabulary import read_vocabulary
from isograd.data.write.run import Converted, convert, require_format
from isograd.engine import executor
from isograd.errors import UsageError
from isograd.findings import Finding, Level
from isograd.progress import Progress, SilentProgress


@dataclass(frozen=True)
class DataOptions:
    """label, classes: as the command's options; limit: samples to read, 0 for all.

    key: the field by which samples of A and B are paired; samples: how many of them are compared;
    draws: of each random transform; python_a, python_b: the interpreter of a pipeline's process.
    vocabulary: the file by which ids of tokens are shown.  engine: "process" or "dask"; jobs:
    Dask's workers on this machine, 0 for as many as cores; scheduler: address of Dask's, None for
    a cluster on this machine.
    """

    label: str | None = None
    classes: int | None = None
    limit: int = 0
    key: str | None = None
    samples: int = 128
    draws: int = 10_000
    python_a: str | None = None
    python_b: str | None = None
    shown: int = 48
    seed: int = 0
    vocabulary: Path | None = None
    engine: str = "process"
    jobs: int = 0
    scheduler: str | None = None

    @property
    def inventory(self) -> InventoryOptions:
        """What of it concerns one source."""
        tokens = None if self.vocabulary is None else read_vocabulary(self.vocabulary)
        return InventoryOptions(self.label, self.classes, self.shown, self.limit, self.seed, tokens)


def look(
    address: str,
    options: DataOptions,
    progress: Progress | None = None,
    against: str | None = None,
) -> DataReport:
    """What is in one source, and is it sound; against: another split of it."""
    started = time.monotonic()
    wanted = options.inventory
    source = _opened(address, options.python_a)
    if against is not None:
        source = Splits((source, _opened(against, options.python_b)))
    try:
        if options.engine == "dask":
            with executor("dask", options.jobs, options.scheduler) as (pool, workers):
                listener = progress or SilentProgress()
                found = inventory_of_parts(source, wanted, listener, pool, workers)
        else:
            found = inventory(source, wanted, progress)
        if isinstance(source, PipelineSource):
            found = _with_workers(found, source)
    finally:
        source.close()
    return DataReport(
        soundness((found,)),
        (found,),
        elapsed_s=time.monotonic() - started,
        seed=options.seed,
    )


def _with_workers(report: SourceReport, source: PipelineSource) -> SourceReport:
    """The report, with what the pipeline's worker processes draw alike."""
    drawn, notes = worker_seeds.draws_of(source.handle)
    more = worker_seeds.findings(source.format, drawn)
    return replace(report, findings=report.findings + more, notes=(*report.notes, *notes))


def _opened(address: str, python: str | None) -> SampleSource:
    return PipelineSource(address, python) if is_pipeline(address) else open_samples(address)


def look_at_both(
    address_a: str, address_b: str, options: DataOptions, progress: Progress | None = None
) -> DataReport:
    """Do two pipelines yield the same, and where do they part?"""
    started = time.monotonic()
    listener = progress or SilentProgress()
    wanted = CompareOptions(options.key, options.samples, options.draws)
    with (
        open_side(address_a, "A", options.python_a) as a,
        open_side(address_b, "B", options.python_b) as b,
    ):
        found = compare(a, b, wanted, listener)
        sources = (_about(a), _about(b))
    return DataReport(
        _verdict(found), sources, found, elapsed_s=time.monotonic() - started, seed=options.seed
    )


def _about(side: Side) -> SourceReport:
    return SourceReport(side.address, side.kind, side.size or 0, (), ())


def _verdict(found: Comparison) -> Verdict:
    if found.differences:
        return Verdict.DIFFERS
    return Verdict.INCOMPLETE if found.gaps else Verdict.SAME


def write(
    address: str,
    target: Path,
    options: DataOptions,
    batches: int | None = None,
    progress: Progress | None = None,
) -> DataReport:
    """Convert a source to another format, or store a pipeline's first batches in a folder."""
    started = time.monotonic()
    listener = progress or SilentProgress()
    if batches is not None:
        if not is_pipeline(address):
            raise UsageError(f"{address} is no pipeline", "Give file.py:callable with --batches.")
        with PipelineHandle(address, "A", options.python_a) as handle:
            count = store(handle, target, batches, listener)
            kind = str(handle.about["kind"])
        about = SourceReport(address, kind, count, (), ())
        said = f"{count:,} batches are stored in {target}"
        if count < batches:
            said += f"; the epoch has no {batches:,}"
        return DataReport(Verdict.SOUND, (about,), written=said)
    require_format(target)
    source = _opened(address, options.python_a)
    try:
        found = convert(source, target, listener)
        about = SourceReport(address, source.format, found.samples, (), _left_out(found))
    finally:
        source.close()
    said = f"{found.samples:,} samples are written to {target} ({found.format}) and read back equal"
    return DataReport(
        soundness((about,)),
        (replace(about, notes=found.notes),),
        written=said,
        elapsed_s=time.monotonic() - started,
    )


def _left_out(found: Converted) -> tuple[Finding, ...]:
    if not found.problems:
        return ()
    count = len(found.problems)
    message = f"{count:,} {'item was' if count == 1 else 'items were'} left out"
    evidence = tuple(f"{problem.key}: {problem.what}" for problem in found.problems[:5])
    advice = "Replace these items, or accept that the copy lacks them."
    return (Finding("data.corrupt", Level.ERROR, message, evidence=evidence, advice=advice),)


def data(
    a: str | Path,
    b: str | Path | None = None,
    *,
    against: str | Path | None = None,
    output: str | Path | None = None,
    batches: int | None = None,
    label: str | None = None,
    classes: int | None = None,
    limit: int = 0,
    key: str | None = None,
    samples: int = 128,
    draws: int = 10_000,
    python_a: str | None = None,
    python_b: str | None = None,
    shown: int = 48,
    seed: int = 0,
    vocabulary: str | Path | None = None,
    engine: Literal["process", "dask"] = "process",
    jobs: int = 0,
    scheduler: str | None = None,
    progress: Progress | None = None,
) -> DataReport:
    """What does A yield; with B, do both yield the same; with output, A in another format.

    against: another split of the same data set; a sample that stands in both is a leak.
    vocabulary: vocab.txt, vocab.json or tokenizer.json, by which samples show ids as tokens.
    engine: "dask" reads the files of A on its workers, at `scheduler` or `jobs` of this machine.
    Raises `UsageError` where two of b, against and output are given, or batches without output.
    """
    options = DataOptions(
        label,
        classes,
        limit,
        key,
        samples,
        draws,
        python_a,
        python_b,
        shown,
        seed,
        None if vocabulary is None else Path(vocabulary),
        engine,
        jobs,
        scheduler,
    )
    _refuse_contradictions(str(a), against, options, is_alone=b is None and output is None)
    if output is not None:
        if b is not None:
            raise UsageError("two sources are given with an output", "Give A alone.")
        return write(str(a), Path(output), options, batches, progress)
    if batches is not None:
        raise UsageError("batches are asked for without an output", "Give the folder.")
    if b is not None:
        return look_at_both(str(a), str(b), options, progress)
    return look(str(a), options, progress, None if against is None else str(against))


def _refuse_contradictions(
    a: str, against: str | Path | None, options: DataOptions, *, is_alone: bool
) -> None:
    """Refuse options that do not go together; is_alone: neither B nor an output is given."""
    if against is not None and str(against) == a:
        raise UsageError(f"{a} is given as both splits", "Give the other split to --against.")
    if options.engine != "dask" and (options.scheduler is not None or options.jobs):
        raise UsageError("--scheduler and --jobs are for --engine dask", "Give it, too.")
    of_a = {
        "--against looks at A and another split": against is not None,
        "--engine dask looks at A": options.engine == "dask",
        "--vocabulary is for the samples of A": options.vocabulary is not None,
    }
    for what, is_given in of_a.items():
        if is_given and not is_alone:
            raise UsageError(what, "Leave out B and the output.")

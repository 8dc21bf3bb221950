"""What `isograd compare` does with two inputs: tensors against tensors, logs against logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from isograd.checkpoints.open import open_source
from isograd.compare.files.logs import is_log
from isograd.compare.files.maps import read_envelope, read_map
from isograd.compare.files.run import compare_ranks, compare_sources
from isograd.compare.files.tolerance import Tolerance
from isograd.errors import UsageError
from isograd.progress import Progress

if TYPE_CHECKING:
    from isograd.compare.files.model import FilesReport
    from isograd.compare.files.options import CompareOptions


def check_count(inputs: Sequence[str], *, is_one_enough: bool) -> None:
    """Raise UsageError unless there are two inputs, or one where its ranks are compared."""
    if len(inputs) == 2 or (len(inputs) == 1 and is_one_enough):
        return
    advice = "Give two: the reference A, and B."
    if len(inputs) == 1:
        advice += " The ranks of one run are compared with --between-ranks."
    raise UsageError(f"{len(inputs)} inputs are given", advice)


def are_logs(inputs: Sequence[str]) -> bool:
    """Whether all inputs are logs of losses; UsageError where some are and some are not."""
    logs = [is_log(name) for name in inputs]
    if any(logs) and not all(logs):
        log, rest = (inputs[logs.index(is_one)] for is_one in (True, False))
        raise UsageError(
            f"{log} is a log of losses, and {rest} is none",
            "Compare two logs, or two sets of tensors.",
        )
    return all(logs)


def with_rules(
    options: CompareOptions,
    inputs: Sequence[str],
    *,
    rtol: float | None,
    atol: float | None,
    envelope: Path | Mapping[str, float] | None,
    names: Path | Mapping[str, str] | None,
) -> CompareOptions:
    """The options with the rules of the comparison: tolerances, or an envelope, and a map of names.

    envelope, names: the values, or the file that holds them.
    Raises UsageError where the rules exclude each other, or an engine lacks what it needs.
    """
    is_fixed = rtol is not None or atol is not None
    if is_fixed and envelope is not None:
        raise UsageError(
            "both an envelope and tolerances are given", "Give --envelope, or --rtol and --atol."
        )
    if names is not None and len(inputs) == 1:
        raise UsageError("--map is given for one run", "The ranks of a run have the same names.")
    if options.scheduler is not None and options.engine != "dask":
        raise UsageError("--scheduler is given without --engine dask", "Give both or neither.")
    return replace(
        options,
        tolerance=Tolerance(relative=rtol or 0.0, absolute=atol or 0.0) if is_fixed else None,
        envelope=read_envelope(envelope) if isinstance(envelope, Path) else dict(envelope or {}),
        renames=read_map(names) if isinstance(names, Path) else dict(names or {}),
        addresses=(inputs[0], inputs[-1]),
    )


def compare_tensors(
    inputs: Sequence[str],
    options: CompareOptions,
    *,
    is_between_ranks: bool,
    progress: Progress | None = None,
) -> FilesReport:
    """Compare two sets of tensors, or the ranks of one run; raises `IsogradError`.

    A file that does not fit its own checksum is refused: damage may stay within a tolerance.
    """
    with open_source(inputs[0]) as reference:
        reference.verify()
        if len(inputs) == 1:
            return compare_ranks(reference, options, progress)
        with open_source(inputs[1]) as other:
            other.verify()
            report = compare_sources(reference, other, options, progress)
            if not is_between_ranks:
                return report
            within = []
            for name, source in zip(inputs, (reference, other), strict=True):
                inner = replace(options, journal=None, addresses=(name, name))
                within.append(compare_ranks(source, inner, progress))
            return replace(report, between=tuple(within))

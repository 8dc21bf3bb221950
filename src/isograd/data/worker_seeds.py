"""What is said of worker processes that draw the same random numbers: `data.worker_seeds`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from isograd.data.model import Cause, Difference
from isograd.data.pipelines.host import PipelineHandle
from isograd.data.pipelines.worker_draws import WorkerDraws, from_wire
from isograd.findings import Finding, Fix, Level

CODE = "data.worker_seeds"
_ADVICE = {
    "torch": (
        "torch seeds random, numpy.random and its own generator in each worker, not one that the "
        "Dataset holds: make that one anew in worker_init_fn, from "
        "torch.utils.data.get_worker_info().seed."
    ),
    "MindSpore": (
        "MindSpore starts its workers with one state of numpy.random and of every generator: make "
        "a generator at the first sample of each process, np.random.default_rng((seed, "
        "os.getpid())), or pass python_multiprocessing=False."
    ),
}


def draws_of(handle: PipelineHandle) -> tuple[list[WorkerDraws], list[str]]:
    """What the workers of a pipeline drew, and why that is not known."""
    found: dict[str, Any] = handle.call("worker_draws")
    return from_wire(found["draws"]), list(found["notes"])


def findings(kind: str, found: Sequence[WorkerDraws]) -> tuple[Finding, ...]:
    """A warning per place whose workers repeat; kind: of the pipeline."""
    return tuple(
        Finding(CODE, Level.WARNING, _said(one), evidence=(_counted(one),), advice=_advice(kind))
        for one in found
        if one.alike > 1
    )


def differences(
    kinds: tuple[str, str], drawn: tuple[Sequence[WorkerDraws], Sequence[WorkerDraws]], file: str
) -> Iterator[Difference]:
    """What one side repeats and the other does not.

    kinds: of the pipelines A and B; drawn: by their workers; file: the port's.
    """
    repeated = [[one for one in found if one.alike > 1] for found in drawn]
    if bool(repeated[0]) == bool(repeated[1]):
        return
    number = 0 if repeated[0] else 1
    side, other = "AB"[number], "BA"[number]
    for one in repeated[number]:
        said = f"{side}: {_said(one)}; those of {other} do not"
        values = [_counted(one), "different in every process"]
        cause = Cause(CODE, True, said, *(values if number == 0 else reversed(values)))
        fix = Fix(_advice(kinds[number]), file if number else "")
        finding = Finding(CODE, Level.ERROR, said, evidence=(_counted(one),), fix=fix)
        yield Difference(finding, cause)


def _said(one: WorkerDraws) -> str:
    who = f"the {one.workers}" if one.alike == one.workers else f"{one.alike} of {one.workers}"
    return f"{who} worker processes of {one.place} draw the same random numbers"


def _counted(one: WorkerDraws) -> str:
    return f"{one.draws} draws for one sample are equal in {one.alike} processes, one by one"


def _advice(kind: str) -> str:
    return next((text for name, text in _ADVICE.items() if name in kind), _ADVICE["torch"])

"""The process that executes a batch of examples.

    python -m isograd.knowledge.check.child JOBS OUT [DEVICE]

JOBS: a JSON list of jobs.  OUT: a line when a job starts and one with what it showed, so that the
parent knows which one a crash or a hang belongs to.
"""

from __future__ import annotations

import contextlib
import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from isograd.knowledge.check.comparing import Outcome, compare
from isograd.knowledge.check.drawing import draw
from isograd.knowledge.check.torch_side import split_module

_STEPS = 6
_SCHEDULE_STEPS = 25


def main(jobs_file: str, out_file: str, device: str = "CPU") -> None:
    """Execute all jobs, one line each before and after."""
    import torch  # first: MindSpore loads beside it only then

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    from isograd.knowledge.check import mindspore_side

    mindspore_side.prepare(device)
    jobs = json.loads(Path(jobs_file).read_text(encoding="utf-8"))
    with Path(out_file).open("a", encoding="utf-8") as out:
        for job in jobs:
            print(json.dumps({"start": job["key"]}), file=out, flush=True)
            result = execute(job)
            print(json.dumps({"key": job["key"], **result}), file=out, flush=True)


def execute(job: dict[str, Any]) -> dict[str, Any]:
    """What an example showed: forward, gradient (None: has none), error, detail."""
    forward, gradient = Outcome(), Outcome()
    seen = False
    draws = [(seed, False) for seed in job["seeds"]]
    draws += [(job["seeds"][0], True)] if job["ties"] and job["inputs"] else []
    for seed, with_ties in draws:
        said = bool(forward.detail or gradient.detail)
        try:
            seen = _execute_seed(job, seed, with_ties, forward, gradient) or seen
        except _WrongReferenceError as error:
            return {"forward": None, "gradient": None, "detail": str(error), "error": 0.0}
        if with_ties and not said:
            for outcome in (forward, gradient):
                outcome.detail = outcome.detail and f"ties and zeros: {outcome.detail}"
        if forward.detail:
            break
    return {
        "forward": not forward.detail,
        "gradient": (not gradient.detail) if seen and not forward.detail else None,
        "error": float(f"{forward.error:.1e}"),
        "gradient_error": float(f"{gradient.error:.1e}"),
        "detail": forward.detail or gradient.detail,
    }


class _WrongReferenceError(Exception):
    """Torch's own code does not run: a fault of the example."""


@contextlib.contextmanager
def _torch_code() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise _WrongReferenceError(f"torch: {_text(error)}") from error


def _text(error: BaseException) -> str:
    lines = [line.strip("- ") for line in str(error).splitlines()]
    first = next((line for line in lines if line), "")
    return f"{type(error).__name__}: {first}"[:240]


@contextlib.contextmanager
def _mindspore_code(outcome: Outcome, what: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # the port's own code may raise anything
        outcome.fail(f"{what}: {_text(error)}")


def _execute_seed(
    job: dict[str, Any], seed: int, with_ties: bool, forward: Outcome, gradient: Outcome
) -> bool:
    inputs = {name: draw(name, text, seed, with_ties) for name, text in job["inputs"]}
    kind = job["kind"]
    if kind == "optimizer":
        return _optimizer(job, seed, forward)
    if kind == "scheduler":
        return _scheduler(job, forward)
    if kind == "module":
        return _module(job, inputs, seed, forward, gradient)
    return _call(job, inputs, seed, forward, gradient)


def _optimizer(job: dict[str, Any], seed: int, forward: Outcome) -> bool:
    from isograd.knowledge.check import mindspore_side, torch_side

    with _torch_code():
        first = torch_side.run_optimizer(job["code"], seed, _STEPS)
    with _mindspore_code(forward, "update"):
        compare(first, mindspore_side.run_optimizer(job["port"], seed, _STEPS), "", forward, "step")
    return False


def _scheduler(job: dict[str, Any], forward: Outcome) -> bool:
    from isograd.knowledge.check import mindspore_side, torch_side

    with _torch_code():
        first = torch_side.run_scheduler(job["code"], _SCHEDULE_STEPS)
    with _mindspore_code(forward, "schedule"):
        compare(first, mindspore_side.run_scheduler(job["port"], _SCHEDULE_STEPS), "", forward)
    return False


def _call(
    job: dict[str, Any], inputs: dict[str, Any], seed: int, forward: Outcome, gradient: Outcome
) -> bool:
    from isograd.knowledge.check import mindspore_side, torch_side

    with _torch_code():
        first = torch_side.run_call(job["code"], inputs, seed, job["gradient"])
    wanted = first["gradients"] is not None
    with _mindspore_code(forward, "forward"):
        second = mindspore_side.run_call(job["port"], inputs, seed, gradient=False)
        compare(first["result"], second["result"], job["compare"], forward)
        compare(first["inputs"], second["inputs"], job["compare"], forward, "inputs after")
    if wanted and not forward.detail:
        with _mindspore_code(gradient, "gradient"):
            second = mindspore_side.run_call(job["port"], inputs, seed, gradient=True)
            compare(first["gradients"], second["gradients"], "values", gradient, "gradient")
    if job.get("mutating"):
        _mutation(job, inputs, seed, forward)
    return wanted


def _mutation(job: dict[str, Any], inputs: dict[str, Any], seed: int, forward: Outcome) -> None:
    """An in-place method's port by `copy_`, without a gradient."""
    from isograd.knowledge.check import mindspore_side, torch_side

    with _torch_code():
        first = torch_side.run_call(job["code"], inputs, seed, gradient=False)
    with _mindspore_code(forward, "copy_"):
        second = mindspore_side.run_call(job["mutating"], inputs, seed, gradient=False)
        compare(first["result"], second["result"], job["compare"], forward, "copy_")


def _module(
    job: dict[str, Any], inputs: dict[str, Any], seed: int, forward: Outcome, gradient: Outcome
) -> bool:
    from isograd.knowledge.check import mindspore_side, torch_side

    construction, call = split_module(job["code"]) or ("", "")
    own_construction, own_call = split_module(job["port"]) or ("", "")
    with _torch_code():
        module = torch_side.build_module(construction, seed)
        parameters, buffers = torch_side.module_state(module)
    cell = None
    with _mindspore_code(forward, "construction"):
        cell = mindspore_side.build_module(own_construction, parameters, buffers)
    wanted = False
    for training in (True, False) if job["compare"] == "values" else (False,):
        if cell is None or forward.detail:
            break
        with _torch_code():
            first = torch_side.run_module(module, call, inputs, seed, training, job["gradient"])
        here = first["gradients"] is not None
        wanted = wanted or here
        with _mindspore_code(forward, "forward"):
            second = mindspore_side.run_module(cell, own_call, inputs, seed, training, False)
            mode = "training" if training else "inference"
            how = "shape" if job["compare"] == "shape" else ""
            compare(first["result"], second["result"], how, forward, mode)
            if first["buffers"]:
                compare(first["buffers"], second["buffers"], "", forward, "buffers after")
        if here and not forward.detail:
            with _mindspore_code(gradient, "gradient"):
                # A second pass would move running statistics once more: restore them after it.
                kept = mindspore_side.build_state(cell)
                second = mindspore_side.run_module(cell, own_call, inputs, seed, training, True)
                mindspore_side.restore_state(cell, kept)
                compare(first["gradients"], second["gradients"], "", gradient, "gradient")
    return wanted


if __name__ == "__main__":
    main(*sys.argv[1:])

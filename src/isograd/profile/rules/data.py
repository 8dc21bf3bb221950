"""Rules about the data pipeline: why the step waits for its batch."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from isograd.profile.analyse.analysis import Analysis
from isograd.profile.analyse.breakdown import Limit
from isograd.profile.model import HostLine, Loader, Phase
from isograd.profile.rules import examples as made
from isograd.profile.rules.rule import CLAIM_SHARE, ProfileFinding, Rule, claim, milliseconds
from isograd.profile.whatif.changes import together, without_data_wait, without_hindrance

#: A line must hold this share of the samples to be named.
LINE_SHARE = 0.3
#: A queue this short cannot even out samples of different length.
SHORT_QUEUE = 2
#: Workers that would suffice on average leave this share of their time free.
SUFFICIENT = 0.9
#: A batch that a worker of torch's DataLoader has ready still takes 1.7 to 2.3 ms to get (128 KB
#: and 800 KB, 1 and 2 workers, 2 cores, torch 2.13): shorter waits have nothing to win.
HANDOVER_S = 1.5e-3


def check_wait(analysis: Analysis) -> Iterable[ProfileFinding]:
    """The wait for data, with what causes it as far as it is known."""
    wait = analysis.breakdown.of(Limit.DATA) - analysis.breakdown.hindered_s
    handed = HANDOVER_S if analysis.profile.loader is not None else 0.0
    if analysis.share(wait - handed) <= 0.05:
        return []
    found = _of_loader(analysis, wait) or _of_pipeline(analysis, wait)
    return found or claim(
        analysis,
        "data.wait",
        wait,
        f"Each step waits {milliseconds(wait)} for its data.",
        "Record with isograd.profile to learn which transform is slow.",
        culprit=_line(analysis)[1],
        where=_line(analysis)[0],
        change=without_data_wait(),
    )


def _of_loader(analysis: Analysis, wait: float) -> list[ProfileFinding]:
    loader = analysis.profile.loader
    if loader is None or not loader.sample_s > 0:
        return []
    where, function = _line(analysis)
    work = loader.sample_s * loader.batch_size + max(loader.collate_s, 0.0)
    rest = max(analysis.step_s - wait, 1e-9)
    needed = math.ceil(work / (rest * SUFFICIENT))
    place = f" in {function} ({where})" if where else ""
    what = (
        f"Each step waits {milliseconds(wait)} for its data: one sample takes "
        f"{milliseconds(loader.sample_s)}{place}, a batch of {loader.batch_size} "
        f"{milliseconds(work)}, with {loader.workers} workers."
    )
    faster = f"make {function or 'the transform'} faster"
    if loader.workers and work / loader.workers < rest * SUFFICIENT:
        code = "data.small_queue"
        advice = (
            f"The workers suffice on average but the queue of {loader.prefetch} batches per worker "
            "runs empty when samples take longer: raise prefetch_factor."
        )
    elif needed <= _possible_workers(analysis, loader, work):
        code = "data.few_workers"
        advice = (
            f"num_workers={needed} would keep up with the {milliseconds(rest)} that the rest of "
            f"the step takes; or {faster}."
        )
    else:
        code = "data.slow_transform"
        advice = (
            f"{needed} workers would be needed and this machine has {_cores(analysis)} processors: "
            f"{faster} or store its result."
        )
    return claim(
        analysis,
        code,
        wait,
        what,
        advice,
        where=where,
        culprit=function,
        change=without_data_wait(),
    )


def _possible_workers(analysis: Analysis, loader: Loader, work: float) -> int:
    """How many workers can run beside the training: waiting costs no processor."""
    busy = loader.cpu_share if loader.cpu_share == loader.cpu_share else 1.0
    free = max(_cores(analysis) - 1, 1)
    return min(int(free / max(busy, 0.02)), 64)


def _cores(analysis: Analysis) -> int:
    host = analysis.profile.host
    return host.cores if host is not None and host.cores else 1


def _of_pipeline(analysis: Analysis, wait: float) -> list[ProfileFinding]:
    answer = analysis.pipeline
    if answer is None or answer.bottleneck is None:
        return []
    queue = answer.queue(answer.bottleneck)
    where, function = _line(analysis)
    place = f" ({function}, {where})" if where else ""
    workers = max(queue.workers, 1)
    rest = max(analysis.step_s - wait, 1e-9)
    hindered = analysis.breakdown.hindered_s
    beside = ""
    if analysis.share(hindered) > CLAIM_SHARE:
        beside = f" For {milliseconds(hindered)} more its threads run instead of the training."
    needed = min(math.ceil(workers * analysis.step_s / rest / SUFFICIENT), 64)
    return claim(
        analysis,
        "data.slow_operator",
        wait,
        f"Each step waits {milliseconds(wait)} for its data: {queue.name}{place} with {workers} "
        f"workers holds the pipeline up, because {answer.reason}.{beside}",
        f"num_parallel_workers={needed} for this operator, if processors are free (MindSpore "
        "refuses more than there are); or make it faster; or store its result (MindRecord).",
        where=where,
        culprit=queue.name,
        change=together(
            "no wait for data, nor for its threads",
            without_data_wait(),
            without_hindrance(hindered),
        ),
    )


def _line(analysis: Analysis) -> tuple[str | None, str]:
    """The line at which samples found the pipeline's code most, with its function."""
    loader = analysis.profile.loader
    if loader is not None and loader.lines:
        where, function, share = max(loader.lines, key=lambda line: line[2])
        if share >= LINE_SHARE:
            return where, function
    host = analysis.profile.host
    return (None, "") if host is None else _line_of_samples(host.lines)


def _line_of_samples(lines: Sequence[HostLine]) -> tuple[str | None, str]:
    """The line that made the training wait: a worker's before that at which the training waits.

    A worker that holds the training up works most of the time; the training's own line makes the
    samples only where no worker runs Python.
    """
    trained = [line for line in lines if line.is_main_thread]
    workers = [line for line in lines if not line.is_main_thread]
    waited = [line for line in trained if line.phase is Phase.DATA]
    for candidates, among in ((workers, trained), (waited, waited)):
        best = max(candidates, key=lambda line: line.samples, default=None)
        if best and best.samples >= LINE_SHARE * sum(line.samples for line in among):
            return best.where, best.function
    return None, ""


def check_lock(analysis: Analysis) -> Iterable[ProfileFinding]:
    """A thread of Python beside the training keeps the interpreter's lock."""
    host, seconds = analysis.profile.host, analysis.breakdown.locked_s
    lines = host.lines if host is not None else ()
    line = max(lines, key=lambda line: line.lock_s, default=None)
    if line is None or not line.lock_s > 0:
        return []
    advice = "Run it in a process of its own, or with calls that give the lock away (numpy)."
    if analysis.profile.queues:
        advice = (
            "python_multiprocessing=True for this map or generator (each worker is a process then) "
            "or transforms of mindspore.dataset.vision, which need no Python."
        )
    return claim(
        analysis,
        "data.lock" if analysis.profile.queues else "host.lock",
        seconds,
        f"{line.function} ({line.where}) keeps Python's lock beside the training, which waits for "
        f"it {milliseconds(seconds)} of each step.",
        advice,
        where=line.where,
        culprit=line.function,
    )


def check_device_queue(analysis: Analysis) -> Iterable[ProfileFinding]:
    """Ascend's device queue: empty too often although the pipeline may keep up."""
    from isograd.profile.analyse.pipeline import EMPTY_SHARE, empty_share

    found = []
    for queue in analysis.profile.queues:
        share = empty_share(queue)
        if queue.name == "device queue" and share > EMPTY_SHARE and queue.sizes.size >= 3:
            found.append(
                ProfileFinding(
                    "data.device_queue",
                    0.0,
                    0.0,
                    f"The device's queue was empty in {share:.0%} of {queue.sizes.size} samples.",
                    "The pipeline is too slow for the device: look at its operators below.",
                    culprit="device queue",
                )
            )
    return found


RULES = (
    Rule(
        "data.wait",
        "Does the step wait for its data, and which transform, worker count or queue causes it?",
        "5 % of the step, beyond 1.5 ms with a DataLoader (a worker's batch takes as long to get); "
        "MindInsight's pipeline thresholds [0.8, 0.6] and 0.1",
        check_wait,
        (
            made.example("one slow transform, no workers", made.slow_transform, "waits"),
            made.example("workers suffice, queue too short", made.short_queue, "waits"),
            made.example("a slow Map in MindSpore", made.slow_map, "Map"),
            made.example(
                "a worker's line, not the loop's", made.slow_generator, "(rows, data.py:3)"
            ),
        ),
        (
            made.example("data is there at once", made.healthy),
            made.example("a wait as short as a worker's", made.short_wait),
        ),
    ),
    Rule(
        "data.lock",
        "Does another thread's Python code keep the interpreter's lock?",
        "5 % of the step in waits of 5 ms and more, while the training does not run",
        check_lock,
        (
            made.example("a map that parses JSON in MindSpore", made.locking_map, "keeps Python"),
            made.example("a thread beside a training", made.locking_thread, "keeps Python"),
        ),
        (made.example("no other thread", made.healthy),),
    ),
    Rule(
        "data.device_queue",
        "Is the device's queue empty when the device asks?",
        "MindInsight: empty in more than 30 % of the samples",
        check_device_queue,
        (made.example("empty in 4 of 5 samples", made.empty_device_queue, "empty in 80%"),),
        (made.example("a full queue", made.full_device_queue),),
    ),
)

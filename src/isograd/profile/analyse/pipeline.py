"""Which operator of a data pipeline is too slow: queue fill, rates, workers.

An operator whose input queue is full and whose output queue is empty holds the pipeline up: what
it needs is there, what it makes is taken at once. The rule is MindInsight's (child's usage - own
usage > 0.1, leaf's usage < 0.6, all >= 0.8: the consumer is slow), which reads the same files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from isograd.profile.model import PHASES, Marks, Phase, Profile, Queue, Steps

#: MindInsight, minddata_pipeline_analyser.py: [0.8, 0.6] and a difference of 0.1.
FULL = 0.8
LEAF_LOW = 0.6
DIFFERENCE = 0.1
#: A queue below this is empty when it is asked (MindInsight's device queue: empty > 30 %).
EMPTY_SHARE = 0.3
#: By this name the recorder keeps the seconds in which the pipeline makes a batch with nothing
#: else to do.
ALONE = "pipeline alone"
#: A pipeline that is slower than the recorded steps by less is as fast.
SLOWER = 0.05


Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class PipelineAnswer:
    """queues: as read. bottleneck: number of the slow operator, or None.

    is_fine: every queue is full enough that the training never waits. reason: one sentence.
    """

    queues: tuple[Queue, ...]
    bottleneck: int | None
    is_fine: bool
    reason: str

    def queue(self, number: int) -> Queue:
        """The queue of an operator."""
        return next(queue for queue in self.queues if queue.number == number)


def with_drained_queues(profile: Profile) -> tuple[Profile, str]:
    """The plain steps as they are once nothing is left of what was made ahead, and a note.

    A queue of 16 batches that fills while the network compiles hides a slow pipeline from the
    steps that are recorded; later each step lasts as long as a batch takes to make.
    """
    marks, alone_s = profile.marks, profile.queue_waits.get(ALONE, float("nan"))
    if marks is None or not len(plain := marks.take("plain")):
        return profile, ""
    step_s = float(np.median(plain.seconds))
    more_s = alone_s - step_s
    if not more_s > SLOWER * alone_s:
        return profile, ""
    is_plain = np.asarray([window == "plain" for window in marks.window], dtype=bool)
    longer = Marks(marks.window, _waiting(marks.steps, is_plain, more_s), marks.intervals)
    steps = _waiting(profile.steps, np.ones(len(profile.steps), dtype=bool), more_s)
    note = (
        f"The data pipeline makes a batch in {alone_s * 1e3:.1f} ms when nothing else runs, and "
        f"the recorded steps took {step_s * 1e3:.1f} ms because batches had been made ahead; "
        "steps are judged as they are once those are used up."
    )
    return replace(profile, marks=longer, steps=steps), note


def _waiting(steps: Steps, chosen: Mask, more_s: float) -> Steps:
    phases, data = steps.phases_s.copy(), PHASES.index(Phase.DATA)
    phases[chosen, data] = np.nan_to_num(phases[chosen, data]) + more_s
    end = np.where(chosen, steps.end_ns + round(more_s * 1e9), steps.end_ns)
    return replace(steps, end_ns=end, phases_s=phases)


def find_bottleneck(queues: Sequence[Queue]) -> PipelineAnswer | None:
    """The slow operator of a pipeline, or that it is fine; None without samples."""
    inner = [queue for queue in queues if queue.number >= 0]
    if not inner:
        return None
    by_number = {queue.number: queue for queue in inner}
    filled = {queue.number: queue.fill for queue in inner if queue.fill == queue.fill}
    if not filled:
        return None
    if all(fill >= FULL for fill in filled.values()):
        return PipelineAnswer(tuple(queues), None, True, "every queue is at least 80 % full")
    best: tuple[float, int] | None = None
    for queue in inner:
        fed = [filled[child] for child in queue.children if child in filled]
        own = filled.get(queue.number)  # an operator without samples is no bottleneck
        if fed and own is not None and min(fed) - own > DIFFERENCE:
            gain = min(fed) - own
            if best is None or gain > best[0]:
                best = (gain, queue.number)
    if best is not None:
        name = by_number[best[1]].name
        reason = f"the queue that feeds {name} is full and its own is empty"
        return PipelineAnswer(tuple(queues), best[1], False, reason)
    leaves = [q for q in inner if not q.children and filled.get(q.number, 1.0) < LEAF_LOW]
    if leaves:
        leaf = min(leaves, key=lambda queue: filled[queue.number])
        reason = f"{leaf.name}, which reads the data, keeps its queue below 60 %"
        return PipelineAnswer(tuple(queues), leaf.number, False, reason)
    return PipelineAnswer(tuple(queues), None, False, "no operator stands out")


def is_ahead(profile: Profile) -> bool:
    """Whether the training found its batches ready, so that a short wait is their handover."""
    loader = profile.loader
    if loader is not None and loader.ready.size:
        return bool(np.median(loader.ready) >= 1)
    inner = [queue for queue in profile.queues if queue.number >= 0 and queue.sizes.size]
    return bool(inner) and min(inner, key=lambda queue: queue.number).fill >= FULL


def empty_share(queue: Queue) -> float:
    """Share of the samples in which the queue was empty, NaN without samples."""
    if not queue.sizes.size:
        return float("nan")
    return float(np.mean(queue.sizes == 0))

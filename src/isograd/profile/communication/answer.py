"""What the messages of a profile say: segments today and the best, the tail, slow ranks, links."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isograd.profile.communication.cost import fit_affine
from isograd.profile.communication.ranks import (
    SlowLink,
    SlowRank,
    slow_by_times,
    slow_links,
    slow_rank,
)
from isograd.profile.communication.segments import (
    Affine,
    Floats,
    Segments,
    fewest_segments,
    finish,
)
from isograd.profile.model import Collectives, Phase, Profile, RankTimes, Steps


@dataclass(frozen=True)
class SegmentAnswer:
    """segments: proposed. tails: seconds after the last gradient is ready, today and then."""

    segments: Segments
    tail_s: float
    today_tail_s: float
    today_segments: int
    model: Affine
    size_bytes: Floats


@dataclass(frozen=True)
class CommunicationAnswer:
    """segments is None where ready times or sizes are not known. exposed_s: per step."""

    exposed_s: float
    messages_per_step: float
    segments: SegmentAnswer | None
    slow_rank: SlowRank | None
    slow_compute: RankTimes | None
    slow_links: tuple[SlowLink, ...]


def answer_communication(profile: Profile, steps: Steps) -> CommunicationAnswer | None:
    """Everything that can be said of communication; None where there is none."""
    collectives = profile.collectives
    if not len(collectives) and not profile.ranks and not profile.links:
        return None
    count = max(np.unique(collectives.step).size, 1)
    exposed = np.nan_to_num(steps.phase(Phase.COMMUNICATION)) if len(steps) else np.zeros(1)
    own = collectives.rank == collectives.rank.min() if len(collectives) else np.zeros(0)
    return CommunicationAnswer(
        exposed_s=float(np.median(exposed)),
        messages_per_step=float(own.sum()) / count,
        segments=answer_segments(collectives),
        slow_rank=slow_rank(collectives),
        slow_compute=slow_by_times(profile.ranks),
        slow_links=slow_links(profile.links),
    )


def answer_segments(collectives: Collectives) -> SegmentAnswer | None:
    """The best segments of the last step of the lowest rank, from ready times and sizes.

    The messages of that step are today's segments: what was sent at once counts as one gradient,
    so that today's segments can be joined but not cut, unless each gradient was sent alone.
    """
    known = (collectives.size_bytes > 0) & (collectives.ready_ns >= 0)
    if known.sum() < 2:
        return None
    model = fit_affine(collectives.size_bytes[known], collectives.duration_ns[known] / 1e9)
    rank = collectives.rank[known].min()
    step = collectives.step[known & (collectives.rank == rank)].max()
    rows = np.flatnonzero(known & (collectives.rank == rank) & (collectives.step == step))
    if rows.size < 2 or model is None:
        return None
    rows = rows[np.argsort(collectives.ready_ns[rows], kind="stable")]
    ready = (collectives.ready_ns[rows] - collectives.ready_ns[rows].min()) / 1e9
    size = collectives.size_bytes[rows].astype(np.float64)
    best = fewest_segments(ready, size, model)
    last = float(ready[-1])
    today = finish(range(1, rows.size + 1), ready, size, model)
    return SegmentAnswer(best, best.finish_s - last, today - last, int(rows.size), model, size)

"""Which rank and which link are slow: by votes of many messages, never by one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from isograd.profile.model import Collectives, Link, RankTimes

#: Share of the messages that must name the same rank (a fair vote of two gives one half).
MAJORITY = 0.6
#: msprof-analyze: slow where (max - min) / mean >= 5 %.
SPREAD = 0.05
#: MindInsight's parallel proposer: interval above 1.2 of the mean, bandwidth below 0.8 of it.
SLOW_INTERVAL = 1.2
SLOW_BANDWIDTH = 0.8


@dataclass(frozen=True)
class SlowRank:
    """rank; how many of how many messages named it; the seconds per step others wait for it."""

    rank: int
    votes: int
    messages: int
    wait_s: float


@dataclass(frozen=True)
class SlowLink:
    """A link whose bandwidth is below 0.8 of the mean of its kind."""

    link: Link
    mean_bytes_per_s: float


def slow_rank(collectives: Collectives) -> SlowRank | None:
    """The rank that arrives last: it waits least, so its message takes shortest.

    Messages of different ranks are one where step, name and occurrence agree.
    """
    groups = _messages(collectives)
    votes: Counter[int] = Counter()
    waits: defaultdict[int, float] = defaultdict(float)
    ranks = {rank for group in groups for rank in group}
    if len(ranks) < 2:
        return None
    for group in groups:
        durations = np.asarray(list(group.values()), dtype=np.float64)
        mean = durations.mean()
        if mean <= 0 or (durations.max() - durations.min()) / mean < SPREAD:
            continue
        fastest = min(group, key=lambda rank: group[rank])
        votes[fastest] += 1
        waits[fastest] += float(np.median(durations) - durations.min()) / 1e9
    voted = sum(votes.values())
    if voted < 3:
        return None
    rank, count = votes.most_common(1)[0]
    steps = max(np.unique(collectives.step).size, 1)
    if count / voted < max(MAJORITY, 1.5 / len(ranks)):
        return None
    return SlowRank(rank, count, voted, waits[rank] / steps)


def _messages(collectives: Collectives) -> list[dict[int, int]]:
    seen: Counter[tuple[int, int, str]] = Counter()
    groups: defaultdict[tuple[int, str, int], dict[int, int]] = defaultdict(dict)
    for row in np.argsort(collectives.start_ns, kind="stable"):
        rank, step = int(collectives.rank[row]), int(collectives.step[row])
        name = collectives.name[row]
        occurrence = seen[(rank, step, name)]
        seen[(rank, step, name)] += 1
        groups[(step, name, occurrence)][rank] = int(collectives.duration_ns[row])
    return [group for group in groups.values() if len(group) > 1]


def slow_by_times(ranks: Sequence[RankTimes]) -> RankTimes | None:
    """The rank whose own computing takes above 1.2 of the mean, where steps are all alike."""
    known = [times for times in ranks if times.compute_s == times.compute_s]
    if len(known) < 2:
        return None
    mean = float(np.mean([times.compute_s for times in known]))
    worst = max(known, key=lambda times: times.compute_s)
    return worst if mean > 0 and worst.compute_s > SLOW_INTERVAL * mean else None


def slow_links(links: Sequence[Link]) -> tuple[SlowLink, ...]:
    """Links between ranks below 0.8 of the mean bandwidth of their kind, slowest first."""
    kinds: defaultdict[str, list[Link]] = defaultdict(list)
    for link in links:
        if link.source != link.target and link.bytes_per_s == link.bytes_per_s:
            kinds[link.kind].append(link)
    slow = []
    for same in kinds.values():
        mean = float(np.mean([link.bytes_per_s for link in same]))
        if len(same) > 2:
            slow += [
                SlowLink(link, mean) for link in same if link.bytes_per_s < SLOW_BANDWIDTH * mean
            ]
    return tuple(sorted(slow, key=lambda found: found.link.bytes_per_s))

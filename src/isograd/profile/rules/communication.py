"""Rules about messages between ranks."""

from __future__ import annotations

from collections.abc import Iterable

from isograd.profile.analyse.analysis import Analysis
from isograd.profile.analyse.breakdown import Limit
from isograd.profile.communication.settings import mindspore_settings, torch_settings
from isograd.profile.rules import examples as made
from isograd.profile.rules.rule import ProfileFinding, Rule, claim, milliseconds
from isograd.profile.whatif.changes import with_overlap


def check_segments(analysis: Analysis) -> Iterable[ProfileFinding]:
    """Segments of the AllReduce that leave less of it exposed."""
    answer = analysis.communication
    if answer is None or answer.segments is None:
        return []
    proposed = answer.segments
    won = proposed.today_tail_s - proposed.tail_s
    settings = (
        mindspore_settings(proposed.segments)
        if analysis.profile.framework == "mindspore"
        else torch_settings(proposed.segments, proposed.size_bytes)
    )
    return claim(
        analysis,
        "communication.segments",
        won,
        f"{proposed.today_segments} messages leave {milliseconds(proposed.today_tail_s)} after the "
        f"last gradient; {len(proposed.segments.ends)} segments would leave "
        f"{milliseconds(proposed.tail_s)}.",
        settings,
        culprit="AllReduce",
    )


def check_slow_rank(analysis: Analysis) -> Iterable[ProfileFinding]:
    """One rank that the others wait for."""
    answer = analysis.communication
    if answer is None or answer.slow_rank is None:
        return []
    slow = answer.slow_rank
    return claim(
        analysis,
        "communication.slow_rank",
        slow.wait_s,
        f"Rank {slow.rank} arrives last at {slow.votes} of {slow.messages} messages; the others "
        f"wait {milliseconds(slow.wait_s)} of each step for it.",
        "Look at what this rank alone does (data, logging, its processor's clock).",
        culprit=f"rank {slow.rank}",
    )


def check_slow_compute(analysis: Analysis) -> Iterable[ProfileFinding]:
    """One rank whose own computing takes longer."""
    answer = analysis.communication
    if answer is None or answer.slow_compute is None:
        return []
    times = answer.slow_compute
    others = [r.compute_s for r in analysis.profile.ranks if r.rank != times.rank]
    mean = sum(others) / len(others)
    return [
        ProfileFinding(
            "communication.uneven_ranks",
            times.compute_s - mean,
            analysis.share(times.compute_s - mean),
            f"Rank {times.rank} computes for {milliseconds(times.compute_s)} per step, the others "
            f"for {milliseconds(mean)} on average.",
            "Move layers or samples from this rank to the others.",
            culprit=f"rank {times.rank}",
        )
    ]


def check_slow_links(analysis: Analysis) -> Iterable[ProfileFinding]:
    """Links far below the others of their kind."""
    answer = analysis.communication
    found = []
    for slow in answer.slow_links if answer is not None else ():
        link = slow.link
        found.append(
            ProfileFinding(
                "communication.slow_link",
                0.0,
                0.0,
                f"Link {link.source} to {link.target} ({link.kind}) carries "
                f"{link.bytes_per_s / 1e9:.2f} GB/s; the mean of its kind is "
                f"{slow.mean_bytes_per_s / 1e9:.2f}.",
                "Check this link and what else uses it.",
                culprit=f"{link.source}-{link.target}",
                is_note=True,
            )
        )
    return found


def check_exposed(analysis: Analysis) -> Iterable[ProfileFinding]:
    """Messages during which nothing is computed, where segments are not known."""
    answer = analysis.communication
    if answer is not None and answer.segments is not None:
        return []
    exposed = analysis.breakdown.of(Limit.COMMUNICATION)
    return claim(
        analysis,
        "communication.exposed",
        exposed,
        f"Each step waits {milliseconds(exposed)} for messages between ranks while nothing is "
        "computed.",
        "Let messages overlap with the backward pass: AllReduce in segments (torch: DDP's "
        "bucket_cap_mb; MindSpore: comm_fusion), gradients accumulated under no_sync().",
        culprit="communication",
        change=with_overlap(),
    )


RULES = (
    Rule(
        "communication.segments",
        "Would other AllReduce segments leave a shorter tail?",
        "5 % of the step; the optimum of docs/profile.md",
        check_segments,
        (made.example("160 messages with high latency", made.many_messages, "segments would"),),
        (made.example("no messages", made.healthy),),
    ),
    Rule(
        "communication.exposed",
        "Does the step wait for messages?",
        "5 % of the step",
        check_exposed,
        (made.example("a third of the step is exposed", made.exposed, "waits"),),
        (made.example("no messages", made.healthy),),
    ),
    Rule(
        "communication.slow_rank",
        "Do the ranks wait for one of them?",
        "60 % of the votes; a vote counts where the ranks differ by 5 % (msprof-analyze)",
        check_slow_rank,
        (made.example("rank 2 is late", made.slow_rank, "Rank 2"),),
        (made.example("ranks in turn", made.even_ranks),),
    ),
    Rule(
        "communication.uneven_ranks",
        "Does one rank compute longer than the others?",
        "1.2 of the mean (MindInsight's parallel proposer)",
        check_slow_compute,
        (made.example("rank 1 computes twice as long", made.uneven_ranks, "Rank 1"),),
        (made.example("ranks alike", made.even_ranks),),
    ),
    Rule(
        "communication.slow_link",
        "Is one link slower than its like?",
        "0.8 of the mean of its kind (MindInsight's parallel proposer)",
        check_slow_links,
        (made.example("one link at a tenth", made.slow_link, "Link 0 to 1"),),
        (made.example("links alike", made.even_links),),
    ),
)

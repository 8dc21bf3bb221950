"""Which step is looked at how."""

from __future__ import annotations

from isograd.errors import UsageError

LEAST_STEPS = 8
LEAST_WITH_MEMORY = 10
DEFAULT_STEPS = 30
DONE = "done"


def windows(steps: int, *, has_queues: bool = False) -> tuple[str, ...]:
    """The window of each step, in order; raise UsageError for fewer than LEAST_STEPS.

    A sixth warms up, a fifth is profiled, at least one step each gives module times and lines;
    one step of LEAST_WITH_MEMORY or more gives the memory. has_queues: an eighth, after the plain
    steps, gives the queues of the data pipeline, which cannot be sampled without loss of time.
    """
    if steps < LEAST_STEPS:
        raise UsageError(
            f"{steps} steps are too few to profile",
            f"Give at least {LEAST_STEPS}: warm-up, plain, profiled, modules and lines.",
        )
    warm, profiled, modules = max(2, steps // 6), max(2, steps // 5), max(1, steps // 10)
    memory = int(steps >= LEAST_WITH_MEMORY)
    queues = max(1, steps // 8) if has_queues else 0
    plain = steps - warm - queues - profiled - modules - memory - 1
    counts = {
        "warm-up": warm, "plain": plain, "queues": queues, "profiled": profiled,
        "modules": modules, "memory": memory, "source": 1,
    }  # fmt: skip
    return tuple(name for name, count in counts.items() for _ in range(count))

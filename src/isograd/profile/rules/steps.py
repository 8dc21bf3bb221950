"""Rules about steps and memory over time."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from isograd.profile.analyse.analysis import Analysis
from isograd.profile.model import Phase
from isograd.profile.rules import examples as made
from isograd.profile.rules.rule import ProfileFinding, Rule, claim, milliseconds

#: Fewer compilations are those of a last batch, or of a second way through the step.
RECOMPILED = 3
#: A line through the memory after each step must explain this share of its variance.
STRAIGHT = 0.9
#: … and rise by this share of the peak from the first step to the last.
RISE = 0.05


def check_jitter(analysis: Analysis) -> Iterable[ProfileFinding]:
    """Slow steps that come regularly, or whose time lies in one phase."""
    jitter = analysis.jitter
    if len(jitter.slow) < 3 or not jitter.period:
        return []
    seconds = jitter.per_step_s(len(analysis.steps))
    phase = jitter.phase
    place = f", most of it in the {phase.value} phase" if phase is not None else ""
    host = analysis.profile.host
    lines = [] if host is None else [line for line in host.lines if line.phase is phase]
    where = max(lines, key=lambda line: line.samples).where if lines else None
    what = "what runs after the update" if phase is Phase.OTHER else "this phase"
    return claim(
        analysis,
        "step.jitter",
        seconds,
        f"Every {jitter.period} steps one takes {milliseconds(jitter.extra_s)} longer{place} "
        f"(steps {', '.join(map(str, jitter.slow[:5]))}).",
        f"Look at {what} in these steps: logging, checkpoints, evaluation, a drained queue.",
        where=where,
        culprit=phase.value if phase is not None else "",
    )


def check_compilations(analysis: Analysis) -> Iterable[ProfileFinding]:
    """Functions that are compiled anew in step after step."""
    host, steps = analysis.profile.host, len(analysis.steps)
    found: list[ProfileFinding] = []
    for one in () if host is None else host.compilations:
        if one.count < RECOMPILED:
            continue
        found += claim(
            analysis,
            "step.recompilation",
            one.seconds / max(steps, 1),
            f"`{one.function}` was compiled {one.count} more times in {steps} steps, "
            f"{milliseconds(one.seconds / one.count)} each.",
            "MindSpore compiles anew for each new shape or dtype and each new Python number among "
            "the arguments, and for each new call of jit. Keep shapes alike "
            "(batch(…, drop_remainder=True), padding to a few lengths), give numbers that change "
            "as tensors, call jit once before the loop, or compile for all shapes: "
            "ms.jit(…, dynamic=1).",
            where=one.where,
            culprit=one.function,
        )
    return found


def check_growth(analysis: Analysis) -> Iterable[ProfileFinding]:
    """Memory that grows from step to step."""
    memory, steps = analysis.profile.memory, analysis.steps
    if memory is None or len(steps) < 5 or analysis.profile.marks is not None:
        return []
    at = np.searchsorted(memory.time_ns, steps.end_ns, side="right") - 1
    if (at < 0).any():
        return []
    held = memory.total_bytes[at].astype(np.float64)
    number = np.arange(held.size, dtype=np.float64)
    slope, start = np.polyfit(number, held, 1)
    rest = held - (start + slope * number)
    variance = float(np.var(held))
    peak = float(memory.total_bytes.max())
    is_straight = variance > 0 and 1.0 - float(np.var(rest)) / variance > STRAIGHT
    if not is_straight or slope * (held.size - 1) < RISE * peak:
        return []
    return [
        ProfileFinding(
            "memory.growth",
            0.0,
            0.0,
            f"Each step leaves {slope / 1e6:.2f} MB more allocated, over {held.size} steps.",
            "Something keeps tensors alive: a list of losses that still hold their graph "
            "(append loss.detach()), or a cache without a bound.",
            culprit="memory",
        )
    ]


RULES = (
    Rule(
        "step.jitter",
        "Are some steps regularly slower?",
        "1.25 of the median and 3.5 median absolute deviations (Iglewicz and Hoaglin, 1993)",
        check_jitter,
        (made.example("every fifth step is twice as long", made.jitter, "Every 5 steps"),),
        (made.example("steps alike", made.healthy),),
    ),
    Rule(
        "step.recompilation",
        "Is a compiled function compiled again and again?",
        f"{RECOMPILED} compilations after the warm-up, 5 % of the step",
        check_compilations,
        (made.example("each step compiles", made.recompiling, "was compiled 10 more times"),),
        (
            made.example("one compilation for the last batch", made.last_batch),
            made.example("nothing compiled", made.healthy),
        ),
    ),
    Rule(
        "memory.growth",
        "Does memory grow from step to step?",
        "a straight line (R² above 0.9) that rises by 5 % of the peak",
        check_growth,
        (made.example("1 MB more after each step", made.growing, "more allocated"),),
        (made.example("memory that returns", made.steady_memory),),
    ),
)

"""One profile, analysed: everything that findings, tables and pages are made of."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from isograd.profile.analyse.breakdown import (
    Breakdown,
    Limit,
    break_down,
    delayed_share,
    prolongation,
    waits,
)
from isograd.profile.analyse.delays import without_delays
from isograd.profile.analyse.jitter import Jitter, find_jitter
from isograd.profile.analyse.kernels import with_launchers
from isograd.profile.analyse.marks import find_steps, of_one_process
from isograd.profile.analyse.memory import peak_of_trace
from isograd.profile.analyse.modules import as_run, with_places
from isograd.profile.analyse.nesting import crossings
from isograd.profile.analyse.operators import (
    Window,
    operator_rows,
    summarise,
    tiny_types,
    type_of,
)
from isograd.profile.analyse.pipeline import PipelineAnswer, find_bottleneck, with_drained_queues
from isograd.profile.communication.answer import CommunicationAnswer, answer_communication
from isograd.profile.model import MemoryPeak, Operator, Profile, Steps, no_steps
from isograd.profile.spans import Ints
from isograd.profile.whatif.lines import dispatch_of_lines
from isograd.profile.whatif.predict import Answer, Model, model_of, standard_answers

#: From this share on the reader learns that other processes had the processor.
MENTIONED_DELAY = 0.05


@dataclass(frozen=True)
class Analysis:
    """One profile with what was computed of it.

    operators: seconds per step, or of the whole recording unless is_per_step. model: the tasks of
    its steps, None where a profile has no spans or no steps among them. answers: what the usual
    changes would leave. dispatched_s: seconds per step that lines of Python dispatch operators, by
    the trace; empty where it does not tell. delayed_s: seconds for which others had the processor
    in a profiled step.
    """

    profile: Profile
    steps: Steps
    breakdown: Breakdown
    limit: Limit
    confidence: float
    operators: tuple[Operator, ...]
    jitter: Jitter
    pipeline: PipelineAnswer | None
    communication: CommunicationAnswer | None
    memory: MemoryPeak | None
    notes: tuple[str, ...]
    is_per_step: bool = True
    model: Model | None = None
    answers: tuple[Answer, ...] = ()
    dispatched_s: dict[str, float] = field(default_factory=dict)
    delayed_s: float = 0.0

    @property
    def step_s(self) -> float:
        """Median step in seconds, NaN without steps."""
        return self.breakdown.median_s

    @property
    def noise_s(self) -> float:
        """Standard error of the median step: 1.253 sigma / sqrt(n), sigma from the deviations."""
        count = len(self.breakdown.step_s)
        if count < 2 or self.jitter.spread != self.jitter.spread:
            return self.step_s
        return 1.253 * self.jitter.spread * self.step_s / float(np.sqrt(count))

    def share(self, seconds: float) -> float:
        """Seconds per step as a share of the step, 0 without steps."""
        return seconds / self.step_s if self.step_s > 0 else 0.0


def analyse(profile: Profile) -> Analysis:
    """Analyse one profile; pure."""
    profile, drained = with_drained_queues(profile)
    notes = [*profile.notes, *([drained] if drained else [])]
    delayed_s = _delayed_s(profile)
    if profile.spans is not None:
        run = {type_of(text) for text in profile.spans.texts}
        sources = as_run(profile.source_operators, run)
        spans, several = of_one_process(profile.spans)
        spans = with_launchers(spans)
        notes += [several] if several else []
        profile = without_delays(replace(profile, source_operators=sources, spans=spans))
    steps, has_marks = _steps(profile, notes)
    operators, self_ns = _operators(profile, steps if has_marks else no_steps(), notes)
    breakdown = break_down(profile, steps, self_ns, has_marks=has_marks)
    limit, confidence = breakdown.verdict()
    if not len(breakdown.step_s):
        notes.append(
            "No steps are marked, so shares are of the whole recording and nothing is said to "
            "limit the step. Call prof.step() after each step (torch), or record with "
            "isograd.profile."
        )
    delayed = delayed_share(steps)
    if delayed > MENTIONED_DELAY:
        notes.append(
            f"Other processes had the processor for {delayed:.0%} of the time; that time is taken "
            "off all steps and phases."
        )
    windows = (steps.start_ns, steps.end_ns) if has_marks else None
    model = model_of(profile, breakdown.median_s, self_ns, windows)
    return Analysis(
        profile=profile,
        steps=steps,
        breakdown=breakdown,
        limit=limit,
        confidence=confidence,
        operators=operators,
        jitter=find_jitter(steps),
        pipeline=find_bottleneck(profile.queues),
        communication=answer_communication(profile, steps),
        memory=_memory(profile),
        notes=tuple(dict.fromkeys(notes)),
        is_per_step=has_marks or len(steps) == 1,
        model=model,
        answers=() if model is None else standard_answers(model, profile, operators),
        dispatched_s=_dispatched_s(profile, model, operators),
        delayed_s=delayed_s,
    )


def _delayed_s(profile: Profile) -> float:
    profiled = no_steps() if profile.marks is None else profile.marks.take("profiled")
    if profiled.delayed_ns is None or not len(profiled):
        return 0.0
    return float(np.median(profiled.delayed_ns)) / 1e9


def _dispatched_s(
    profile: Profile, model: Model | None, operators: tuple[Operator, ...]
) -> dict[str, float]:
    """Of lines of a torch training on a CPU, whose trace has shapes and no work beside."""
    is_plain = (profile.framework, profile.device) == ("torch", "CPU")
    if model is None or profile.spans is None or profile.marks is None or not is_plain:
        return {}
    return dispatch_of_lines(model.work, profile.spans, operators, profile.source_operators)


def _memory(profile: Profile) -> MemoryPeak | None:
    """The peak by blocks; what the allocator held beyond the known blocks was there before."""
    peak, record = profile.memory_peak, profile.memory
    if peak is None or record is None:
        return peak or peak_of_trace(profile)
    more = int(record.total_bytes.max()) - peak.peak_bytes
    if more <= 0:
        return peak
    return replace(peak, peak_bytes=peak.peak_bytes + more, before_bytes=peak.before_bytes + more)


def _steps(profile: Profile, notes: list[str]) -> tuple[Steps, bool]:
    """The steps, and whether they were found among the spans."""
    if profile.marks is not None:
        return profile.steps, True
    steps, how = (no_steps(), "") if profile.spans is None else find_steps(profile.spans)
    if how == "updates":
        notes.append("No steps are marked; a step is taken from one update to the next.")
    if not len(steps):
        steps = profile.steps
        if len(steps) and profile.spans is not None:
            notes.append("Steps and operators come from different files, whose clocks differ.")
    is_real = steps.end_ns > steps.start_ns
    if not is_real.all():
        dropped = int((~is_real).sum())
        notes.append(
            f"{dropped} of {len(steps)} steps have no length or end before they begin; they are "
            "left out."
        )
        steps = steps.rows(is_real)
    return steps, bool(how) and len(steps) > 0


def _operators(
    profile: Profile, steps: Steps, notes: list[str]
) -> tuple[tuple[Operator, ...], Ints | None]:
    """Operators in seconds per step, worst first, with lines where they are known."""
    if profile.spans is None:
        found, self_ns, count = profile.operators, None, 1
    else:
        window, count = _window(profile, steps)
        if crossing := crossings(profile.spans, operator_rows(profile.spans)):
            notes.append(
                f"{crossing} operators begin within another of their thread and end after it, as "
                "where a clock goes back; each counts its whole time."
            )
        found, self_ns = summarise(profile.spans, window, tiny_types(profile.source_operators))
        if not any(operator.shapes for operator in found) and profile.source_operators:
            found = _with_only_shapes(found, profile)
    factor = 1.0 / prolongation(profile)
    if count > 1:
        found = tuple(
            replace(
                operator,
                calls=max(1, round(operator.calls / count)),
                self_s=operator.self_s / count * factor,
                total_s=operator.total_s / count * factor,
            )
            for operator in found
        )
    return with_places(found, profile.source_operators), self_ns


def _window(profile: Profile, steps: Steps) -> tuple[Window | None, int]:
    """The steps whose operators count, and how many there are."""
    nothing = np.zeros(0, dtype=np.int64)
    if profile.marks is not None:
        profiled = profile.marks.take("profiled")
        if not len(profiled):
            return None, 1
        begin = int(profiled.start_ns.min()) - profile.base_ns
        end = int(profiled.end_ns.max()) - profile.base_ns
        return Window(begin, end, waits(profile)), len(profiled)
    if not len(steps) or profile.spans is None:
        return None, 1
    window = Window(int(steps.start_ns.min()), int(steps.end_ns.max()), (nothing, nothing))
    return window, len(steps)


def _with_only_shapes(found: tuple[Operator, ...], profile: Profile) -> tuple[Operator, ...]:
    """Shapes for traces that have none (MindSpore's), where a name occurs with one shape only."""
    shapes: dict[str, set[tuple[str, str]]] = {}
    for source in profile.source_operators:
        shapes.setdefault(source.name, set()).add((source.shapes, source.dtypes))
    filled = []
    for operator in found:
        known = shapes.get(operator.name, set())
        if len(known) == 1:
            ((text, dtypes),) = known
            operator = replace(operator, shapes=text, dtypes=dtypes)
        filled.append(operator)
    return tuple(filled)

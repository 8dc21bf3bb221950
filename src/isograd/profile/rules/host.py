"""Rules about the host: Python, small operators, synchronisation, garbage collection."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from isograd.profile.analyse.analysis import Analysis
from isograd.profile.analyse.breakdown import Limit, limit_of, plain_lines_s
from isograd.profile.analyse.kinds import Kind, kind_of
from isograd.profile.model import HostLine, Phase
from isograd.profile.rules import examples as made
from isograd.profile.rules.rule import ProfileFinding, Rule, claim, milliseconds
from isograd.profile.whatif.changes import (
    Change,
    together,
    with_operators,
    with_phase,
    without_dispatch,
    without_host,
)
from isograd.profile.whatif.predict import operators_factor

#: Fewer samples than this at a line say nothing (a share of 5 % of 200 samples is 10).
LEAST_SAMPLES = 8
#: The times of samples and of the system's waits do not meet exactly: so much of the time in which
#: others had the processor may still be in a line's.
DOUBT = 0.1
#: Calls on a line that make the host wait for the device, or copy one element to Python.
SYNCHRONISING = frozenset(
    {"item", "tolist", "numpy", "asnumpy", "cpu", "synchronize", "sync", "is_nonzero"}
)
#: Calls on a line that write for people.
LOGGING = frozenset(
    {"print", "log", "info", "debug", "warning", "error", "write", "add_scalar", "add_histogram",
     "savefig", "dump", "save", "flush", "write_text", "add_scalars", "to_csv", "writerow", "fsync"}
)  # fmt: skip
COLLECTING = frozenset({"collect"})
#: A kernel that takes less than its launch (5 to 10 µs: CUDA, Ascend) is dispatch.
SHORT_KERNEL_S = 10e-6
#: So many small calls per step make a network wait for its dispatch.
MANY_CALLS = 100
#: What dispatching one operator takes at most: torch 2 to 10 µs; eager MindSpore 20 to 50 µs, with
#: `launch_blocking` and gradients 85 µs and more (2.10, 2 cores).
DISPATCH_S = {"mindspore": 200e-6}
USUAL_DISPATCH_S = 50e-6
#: Healthy networks of 8 to 17 layers spend up to 24 % of steps of 5 to 10 ms between their
#: operators (2 cores, torch 2.13); torch.compile wins none of it.
DISPATCH_SHARE = 0.3


def _works_beside(analysis: Analysis) -> bool:
    """Whether a device works beside the host, so that dispatching operators is the host's time."""
    return any(operator.device for operator in analysis.operators)


def host_lines(analysis: Analysis) -> list[tuple[HostLine, float]]:
    """Lines with their seconds per step that no operator explains, greatest first.

    Lines of the backward pass are left out: its operators have no line. The sum is at most what
    the step spends on the host.
    """
    profile = analysis.profile
    host = profile.host
    if host is None or not host.sampled_steps:
        return []
    in_operators: defaultdict[str, float] = defaultdict(float)
    for operator in () if _works_beside(analysis) else analysis.operators:
        is_work = limit_of(operator.name) is not Limit.HOST and not operator.is_dispatch
        if operator.where is not None and is_work:
            in_operators[operator.where] += operator.self_s
    left = analysis.breakdown.of(Limit.HOST)
    found = []
    lines = tuple(_merged(host.lines))
    traced = _traced(analysis)
    for line, seconds in zip(lines, plain_lines_s(profile, lines), strict=True):
        doubt = DOUBT * (line.delayed_s or 0.0) / host.sampled_steps
        seconds = min(seconds - in_operators[line.where] - doubt, left)
        if line.samples < LEAST_SAMPLES:
            seconds = 0.0
        seconds = max(seconds, traced.pop(line.where, (line, 0.0))[1])
        if seconds > 0:
            found.append((line, seconds))
    return sorted([*found, *traced.values()], key=lambda entry: -entry[1])


def _traced(analysis: Analysis) -> dict[str, tuple[HostLine, float]]:
    """Lines that call MANY_CALLS operators and what these take, however few samples met them."""
    calls: defaultdict[str, int] = defaultdict(int)
    phases: dict[str, Phase] = {}
    for source in analysis.profile.source_operators:
        if source.phase not in (Phase.BACKWARD, Phase.DATA):
            calls[source.where] += source.count
            phases.setdefault(source.where, source.phase)
    return {
        where: (HostLine(where, "", phases[where], True, 0, 0.0), seconds)
        for where, seconds in analysis.dispatched_s.items()
        if calls[where] >= MANY_CALLS
    }


def _merged(lines: Iterable[HostLine]) -> Iterable[HostLine]:
    """One entry for each line of the main thread: of the function and phase seen there most."""
    by_place: defaultdict[str, list[HostLine]] = defaultdict(list)
    for line in lines:
        if line.is_main_thread and line.phase not in (Phase.BACKWARD, Phase.DATA):
            by_place[line.where].append(line)
    for same in by_place.values():
        most = max(same, key=lambda line: line.samples)
        yield replace(
            most,
            samples=sum(line.samples for line in same),
            seconds=sum(line.seconds for line in same),
            waited_s=sum(line.waited_s for line in same),
            calls=tuple(dict.fromkeys(call for line in same for call in line.calls)),
            delayed_s=None
            if most.delayed_s is None
            else sum(line.delayed_s or 0.0 for line in same),
        )


def _group(analysis: Analysis, line: HostLine) -> str:
    calls = set(line.calls)
    if calls & COLLECTING:
        return "host.garbage_collection"
    if calls & SYNCHRONISING:
        return "host.synchronisation"
    if calls & LOGGING:
        return "host.logging"
    # float(), bool() and `if` read an element, too.
    called = (s.name for s in analysis.profile.source_operators if s.where == line.where)
    is_reading = any(kind_of(name) is Kind.SYNCHRONISATION for name in called)
    return "host.synchronisation" if is_reading else "host.python"


_ADVICE = {
    "host.garbage_collection": "Collect less often: gc.freeze() after set-up, gc.disable() inside "
    "of the loop and one gc.collect() every few hundred steps.",
    "host.synchronisation": "Keep the values on the device and read them together once in a while.",
    "host.logging": "Write less often, or in a thread of its own.",
    "host.python": "Move this work out of the step, or compute it with operators on whole tensors.",
}


def check_lines(analysis: Analysis) -> Iterable[ProfileFinding]:
    """Lines of Python that take the step's time without an operator running."""
    found: list[ProfileFinding] = []
    for line, seconds in host_lines(analysis):
        code = _group(analysis, line)
        if code == "host.python" and _dispatches(analysis, line):
            continue  # host.small_operators
        found += claim(
            analysis,
            code,
            seconds,
            f"{_named(line)} takes {milliseconds(seconds)} of each step on the host "
            f"({line.phase.value} phase), while no operator runs.",
            _ADVICE[code],
            where=line.where,
            culprit=line.function,
            change=_without_line(analysis, line, seconds),
        )
    return found


def _named(line: HostLine) -> str:
    return f"{line.where} in {line.function}" if line.function else line.where


def _without_line(analysis: Analysis, line: HostLine, seconds: float) -> Change:
    """The line's Python gone; beside a device all of it, with the short kernels that it launches.

    A device that works meanwhile hides a part of the line's time, but not of what goes with it.
    """
    host, spans = analysis.profile.host, analysis.profile.spans
    if not _works_beside(analysis) or host is None or spans is None:
        return without_host(seconds, line.phase)
    (whole,) = plain_lines_s(analysis.profile, [line])
    short = [
        (one, 1.0)
        for one in analysis.operators
        if one.where == line.where and one.device and one.self_s < one.calls * SHORT_KERNEL_S
    ]
    return together(
        "less time in Python",
        with_operators("no short kernels", operators_factor(spans, short)),
        without_host(whole, line.phase),
    )


def check_pauses(analysis: Analysis) -> Iterable[ProfileFinding]:
    """Python's garbage collector inside of the step."""
    host = analysis.profile.host
    if host is None or not host.pauses:
        return []
    return claim(
        analysis,
        "host.garbage_collection",
        host.pause_s,
        f"Python's garbage collector takes {milliseconds(host.pause_s)} of each step "
        f"({host.pauses} collections were seen).",
        _ADVICE["host.garbage_collection"],
        where=_line_calling(analysis, COLLECTING),
        culprit="gc",
        change=without_host(host.pause_s),
    )


def _line_calling(analysis: Analysis, names: frozenset[str]) -> str | None:
    host = analysis.profile.host
    lines = [line for line in host.lines if set(line.calls) & names] if host is not None else []
    return max(lines, key=lambda line: line.samples).where if lines else None


def check_small_operators(analysis: Analysis) -> Iterable[ProfileFinding]:
    """Operators too small to keep the machine busy: dispatch takes longer than they do."""
    if analysis.breakdown.small_calls < MANY_CALLS:
        return []
    elsewhere = sum(s for line, s in host_lines(analysis) if _is_elsewhere(analysis, line))
    host = analysis.profile.host
    elsewhere += host.pause_s if host is not None else 0.0
    doubt = analysis.breakdown.work_noise_s + DOUBT * analysis.delayed_s
    left = analysis.breakdown.of(Limit.HOST) - elsewhere - doubt
    most = DISPATCH_S.get(analysis.profile.framework, USUAL_DISPATCH_S)
    seconds = min(left, analysis.breakdown.small_calls * most)
    if not analysis.share(seconds) > DISPATCH_SHARE:
        return _small_operators_of_a_line(analysis)
    if analysis.model is not None:
        seconds = min(seconds, analysis.model.dispatch_s)
    busiest = _busiest_line(analysis)
    place = f", most of them at {busiest[0]}" if busiest[0] else ""
    return _claim_small_operators(
        analysis,
        seconds,
        f"{analysis.breakdown.small_calls:.0f} operators per step take under 10 µs each{place}; "
        f"the step spends {milliseconds(seconds)} on dispatching.",
        busiest,
    )


def _small_operators_of_a_line(analysis: Analysis) -> list[ProfileFinding]:
    """One line of one module that calls many: its time is known, whatever the others take."""
    found: list[ProfileFinding] = []
    lines = {line.where: seconds for line, seconds in host_lines(analysis)}
    for (where, module), calls in _calls_by_line(analysis, (Phase.FORWARD,)).items():
        # Only what the trace saw between small operators: a sample may have met anything.
        seconds = min(analysis.dispatched_s.get(where, 0.0), lines.get(where, 0.0))
        if calls < MANY_CALLS:
            continue
        found += _claim_small_operators(
            analysis,
            seconds,
            f"{calls} operators per step are called at {where}, most of them for under 10 µs each; "
            f"the line spends {milliseconds(seconds)} on dispatching.",
            (where, module or None, calls),
        )
    return found


def _claim_small_operators(
    analysis: Analysis, seconds: float, message: str, busiest: tuple[str | None, str | None, int]
) -> list[ProfileFinding]:
    where, module, calls = busiest
    advice = "Compile this part (torch.compile, mindspore.jit) or compute it on whole tensors."
    if analysis.profile.framework == "mindspore":
        advice += (
            " Eager MindSpore also waits actively between operators: "
            "mindspore.runtime.launch_blocking() has made small networks 3 to 6 times faster; try "
            "it with --try."
        )
    return claim(
        analysis,
        "host.small_operators",
        seconds,
        message,
        advice,
        where=where,
        culprit=f"{calls} calls" if where else "",
        module=module,
        change=without_dispatch(seconds),
    )


def _is_elsewhere(analysis: Analysis, line: HostLine) -> bool:
    return _group(analysis, line) != "host.python" or not _dispatches(analysis, line)


def _dispatches(analysis: Analysis, line: HostLine) -> bool:
    """Whether a line of a pass or the update calls operators; where none are known, it does."""
    if line.phase not in (Phase.FORWARD, Phase.UPDATE):
        return False
    sources = analysis.profile.source_operators
    return not sources or any(source.where == line.where for source in sources)


def _busiest_line(analysis: Analysis) -> tuple[str | None, str | None, int]:
    passes = (Phase.FORWARD, Phase.UPDATE, Phase.COMMUNICATION, Phase.OTHER)
    calls = _calls_by_line(analysis, passes)
    if not calls:
        return None, None, 0
    where, module = max(calls, key=lambda key: calls[key])
    return where, module or None, calls[(where, module)]


def _calls_by_line(
    analysis: Analysis, phases: tuple[Phase, ...]
) -> defaultdict[tuple[str, str], int]:
    """Operators per step by the line and the module that call them, in these phases."""
    calls: defaultdict[tuple[str, str], int] = defaultdict(int)
    for source in analysis.profile.source_operators:
        if source.where and source.phase in phases:
            calls[(source.where, source.module)] += source.count
    return calls


def check_update(analysis: Analysis) -> Iterable[ProfileFinding]:
    """The optimizer takes more than the passes: too often, or one operator per parameter."""
    seconds = analysis.steps.phase(Phase.UPDATE)
    if not len(seconds) or analysis.profile.marks is None:
        return []
    import numpy as np

    update = float(np.nanmedian(seconds))
    where = _line_in(analysis, Phase.UPDATE)
    is_issued = analysis.profile.framework == "mindspore"
    return claim(
        analysis,
        "update.dominates",
        0.75 * update,
        f"The update takes {milliseconds(update)}, {analysis.share(update):.0%} of the step.",
        "Update after several batches (accumulate gradients outside of the optimizer; 4 batches "
        "save three quarters of this), or use a fused optimizer (torch: fused=True).",
        where=where,
        culprit="update",
        least_share=0.75 * 0.35,
        # Eager MindSpore only issues the update in its phase; its operators run later.
        change=None if is_issued else with_phase(Phase.UPDATE, 0.25),
    )


def _line_in(analysis: Analysis, phase: Phase) -> str | None:
    host = analysis.profile.host
    lines = [line for line in host.lines if line.phase is phase] if host is not None else []
    lines = [line for line in lines if line.is_main_thread]
    return max(lines, key=lambda line: line.samples).where if lines else None


RULES = (
    Rule(
        "host.line",
        "Which line of Python takes the step's time while no operator runs?",
        "5 % of the step, at least 8 samples",
        check_lines,
        (
            made.example("a loop of .item()", made.synchronising, "train.py:20"),
            made.example("reads that few samples meet", made.reading_quickly, "train.py:34"),
            made.example("logging each step", made.logging, "train.py:30"),
        ),
        (made.example("lines that only call operators", made.healthy),),
    ),
    Rule(
        "host.garbage_collection",
        "Does Python's garbage collector stop the training?",
        "5 % of the step; msprof-analyze reports collections above 1 ms",
        check_pauses,
        (made.example("a collection in each step", made.collecting, "garbage collector"),),
        (made.example("no collection", made.healthy),),
    ),
    Rule(
        "host.small_operators",
        "Are the operators too small for the machine?",
        "10 µs per call (torch's dispatch on a CPU takes 2 to 8 µs), 100 calls, 30 % of the step; "
        "of one line in one module 5 %",
        check_small_operators,
        (
            made.example("2000 tiny operators", made.small_operators, "operators per step"),
            made.example("400 at one line", made.small_operators_of_a_line, "at net.py:9"),
        ),
        (
            made.example("few large operators", made.healthy),
            made.example("400 tiny operators beside large ones", made.some_small_operators),
        ),
    ),
    Rule(
        "update.dominates",
        "Does the optimizer take more than the passes?",
        "35 % of the step; SGD and Adam move 3 to 7 values per parameter, a pass much more",
        check_update,
        (made.example("an update longer than the pass", made.long_update, "The update takes"),),
        (made.example("a short update", made.healthy),),
    ),
)

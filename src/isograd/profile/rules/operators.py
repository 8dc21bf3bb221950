"""Rules about operators: conversions, layouts, slow shapes and dtypes, alignment."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from isograd.profile.analyse.analysis import Analysis
from isograd.profile.analyse.kinds import Kind, kind_of
from isograd.profile.analyse.operators import UPLOAD
from isograd.profile.analyse.work import dense_flops, tensors
from isograd.profile.model import Operator, Peaks, Phase, SourceOperator
from isograd.profile.rules import examples as made
from isograd.profile.rules.rule import CLAIM_SHARE, ProfileFinding, Rule, claim, milliseconds
from isograd.profile.whatif.changes import Change, with_operators
from isograd.profile.whatif.predict import operators_factor

#: The same operator is slow in one shape where it does this many times less work per second.
SLOWER = 4.0
#: Below this, overheads and not the shape decide how fast an operator is.
LEAST_FLOPS = 1e6
#: A shorter call is mostly memory and dispatch, whose rate says nothing of its shape.
LEAST_CALL_S = 1e-3
#: Ascend's cube unit computes blocks of 16.
BLOCK = 16
_LAYOUT = ("aten::contiguous", "aten::clone", "Transpose", "Contiguous", "TransData")


def check_conversions(analysis: Analysis) -> Iterable[ProfileFinding]:
    """Casts between dtypes, with their line, and whether they cancel."""
    conversions = [
        operator
        for operator in analysis.operators
        if kind_of(operator.name) is Kind.CONVERSION
        and operator.is_outer
        and not operator.is_upload
        and "TransData" not in operator.name
    ]
    if not conversions:
        return []
    seconds, calls = _time_and_calls(conversions)
    where, module, pair = _line_of_conversions(analysis.profile.source_operators)
    worst = max(conversions, key=lambda operator: operator.self_s)
    where = where or worst.where
    place = f", most of them at {where}" if where else ""
    cancel = f" There {pair[0]} becomes {pair[1]} and {pair[0]} again." if pair else ""
    return claim(
        analysis,
        "operators.conversion",
        seconds,
        f"{calls} conversions of dtypes take {milliseconds(seconds)} of each step{place} "
        f"({worst.name}, {worst.shapes or 'shape unknown'}).{cancel}",
        "Convert once, where the value is made; where both directions follow one another, neither.",
        where=where,
        culprit=worst.name,
        module=module or worst.module,
        change=_faster(analysis, "no conversions", [(one, 1.0) for one in conversions]),
    )


def _time_and_calls(operators: Iterable[Operator]) -> tuple[float, int]:
    """Seconds and calls: of a device's kernels or of the host, whichever take longer."""
    sides = [[o for o in operators if o.device is device] for device in (True, False)]
    times = [(sum(o.self_s for o in side), sum(o.calls for o in side)) for side in sides]
    return max(times)


def check_uploads(analysis: Analysis) -> Iterable[ProfileFinding]:
    """Copies from the host's memory to the device, for which the host waits."""
    operators = analysis.operators
    sending = [one for one in operators if one.is_upload]
    copies = [one for one in operators if one.device and one.name.startswith(UPLOAD)]
    if not sending:
        return []
    seconds = sum(one.self_s for one in sending)
    worst = max(sending, key=lambda one: one.self_s)
    place = f", most of them at {worst.where}" if worst.where else ""
    is_pageable = any("Pageable" in one.name for one in copies)
    kind = "pageable memory" if is_pageable else "the host's memory"
    advice = "Keep on the device what does not change. "
    advice += (
        "Load batches with pin_memory=True and copy them with non_blocking=True, so that the copy "
        "runs beside the step before."
        if is_pageable
        else "Copy with non_blocking=True, one step ahead."
    )
    return claim(
        analysis,
        "operators.upload",
        seconds,
        f"{sum(one.calls for one in sending)} copies from {kind} to the device take "
        f"{milliseconds(seconds)} of each step{place} ({worst.name}, "
        f"{worst.shapes or 'shape unknown'}).",
        advice,
        where=worst.where,
        culprit=worst.name,
        module=worst.module,
        change=_faster(analysis, "no copies to the device", [(o, 1.0) for o in sending + copies]),
    )


def _line_of_conversions(
    sources: Iterable[SourceOperator],
) -> tuple[str | None, str | None, tuple[str, str] | None]:
    """The line that converts most elements; and the dtypes where it goes there and back."""
    sizes: defaultdict[str, float] = defaultdict(float)
    modules: dict[str, str] = {}
    directions: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
    for source in sources:
        if kind_of(source.name) is not Kind.CONVERSION or not source.where:
            continue
        if source.phase is Phase.BACKWARD:
            continue
        shapes = tensors(source.shapes)
        sizes[source.where] += source.count * (math.prod(shapes[0]) if shapes else 1)
        modules[source.where] = source.module
        directions[source.where].add((source.dtypes, source.results))
    if not sizes:
        return None, None, None
    where = max(sizes, key=lambda key: sizes[key])
    pairs = [(a, b) for a, b in directions[where] if a != b and (b, a) in directions[where]]
    return where, modules[where] or None, min(pairs) if pairs else None


def check_layout(analysis: Analysis) -> Iterable[ProfileFinding]:
    """Copies that only change the order in memory."""
    copies = [o for o in analysis.operators if o.is_outer and o.name.startswith(_LAYOUT)]
    copies = [one for one in copies if not one.is_upload]
    if not copies:
        return []
    seconds, _ = _time_and_calls(copies)
    worst = max(copies, key=lambda operator: operator.self_s)
    place = f" at {worst.where}" if worst.where else ""
    return claim(
        analysis,
        "operators.layout",
        seconds,
        f"Copies into another order in memory take {milliseconds(seconds)} of each step; the "
        f"greatest is {worst.name} of {worst.shapes or 'an unknown shape'}{place}.",
        "Keep one layout through the network (torch: memory_format=torch.channels_last), and do "
        "not call contiguous() where the next operator takes strides.",
        where=worst.where,
        culprit=worst.name,
        module=worst.module,
        change=_faster(analysis, "no copies", [(one, 1.0) for one in copies]),
    )


def check_slow_shape(analysis: Analysis) -> Iterable[ProfileFinding]:
    """The same operator, slow in one shape or dtype."""
    groups: defaultdict[str, list[tuple[Operator, float]]] = defaultdict(list)
    on_device = [operator for operator in analysis.operators if operator.device]
    for operator in on_device or analysis.operators:  # beside a device the host only launches
        flops = dense_flops(operator.name, operator.shapes)
        if flops is not None and flops >= LEAST_FLOPS and operator.self_s > 0:
            groups[operator.name].append((operator, flops * operator.calls / operator.self_s))
    found: list[ProfileFinding] = []
    for name, rated in groups.items():
        for operator, rate in rated:
            others = [(other, r) for other, r in rated if other is not operator]
            if not others:
                continue
            usual = _usual_rate(others)
            is_long = operator.self_s >= operator.calls * LEAST_CALL_S
            # Calls that differ among themselves tell less of their shape.
            spread = 0.0 if math.isnan(operator.spread) else operator.spread
            if rate * SLOWER * (1.0 + spread) > usual or not is_long:
                continue
            found += claim(
                analysis,
                "operators.slow_shape",
                operator.self_s * (1.0 - rate / usual),
                f"{name} of {operator.shapes} ({operator.dtypes or 'dtype unknown'}) does "
                f"{rate / 1e9:.2f} GFLOP/s, in other shapes {usual / 1e9:.2f}"
                + (f" ({operator.where})." if operator.where else "."),
                "Give this layer a shape or dtype for which a fast kernel exists.",
                where=operator.where,
                culprit=name,
                module=operator.module,
                least_share=0.1,
                change=_faster(analysis, "a fast shape", [(operator, 1.0 - rate / usual)]),
            )
    return found


def _usual_rate(rated: Sequence[tuple[Operator, float]]) -> float:
    """FLOP per second of the median FLOP: short calls of small matrices weigh little."""
    left = sum(operator.self_s * rate for operator, rate in rated) / 2
    for operator, rate in sorted(rated, key=lambda entry: entry[1]):
        left -= operator.self_s * rate
        if left <= 0:
            return rate
    return rated[-1][1]


def check_float64(analysis: Analysis) -> Iterable[ProfileFinding]:
    """Operators that compute in float64."""
    sources = analysis.profile.source_operators
    ratio = _times_slower_in_float64(analysis.profile.peaks)
    slow = [
        (operator, share)
        for operator in analysis.operators
        if kind_of(operator.name) is not Kind.CONVERSION
        and (share := _share_in_float64(operator, sources, ratio)) > 0
    ]
    seconds = sum(operator.self_s * share for operator, share in slow)
    if not slow:
        return []
    won = [(operator, share * _won(operator, ratio)) for operator, share in slow]
    worst = max(slow, key=lambda entry: entry[0].self_s * entry[1])[0]
    if not worst.where:
        worst = _as_called(worst, sources)
    place = f" at {worst.where}" if worst.where else ""
    return claim(
        analysis,
        "operators.float64",
        sum(operator.self_s * share for operator, share in won),
        f"Operators in float64 take {milliseconds(seconds)} of each step; the greatest is "
        f"{worst.name} of {worst.shapes}{place}.",
        f"Compute in float32: half of the bytes, and {ratio:.2g} times the arithmetic per second.",
        where=worst.where,
        culprit=worst.name,
        module=worst.module,
        change=_faster(analysis, "float32", won),
    )


def _times_slower_in_float64(peaks: Peaks | None) -> float:
    """Of products: MindSpore's on a CPU take five times as long, those of a library twice."""
    if peaks is None or not peaks.float64_flops_per_s > 0:
        return 2.0
    return max(peaks.flops_per_s / peaks.float64_flops_per_s, 1.0)


def _won(operator: Operator, ratio: float) -> float:
    """Share of its time in float64 that float32 saves: what only moves bytes moves half."""
    # Without dtypes in the trace its arithmetic has told what is float64.
    is_dense = not operator.dtypes or dense_flops(operator.name, operator.shapes) is not None
    return 1.0 - 1.0 / ratio if is_dense else 0.5


def _share_in_float64(operator: Operator, sources: Iterable[SourceOperator], ratio: float) -> float:
    """How much of its time is float64; by arithmetic where the trace has no dtypes.

    ratio: how many times as long an operation takes in float64.
    """
    if operator.dtypes:
        return float("float64" in operator.dtypes)
    work = {True: 0.0, False: 0.0}
    for source in sources:
        if source.name == operator.name:
            flops = dense_flops(source.name, source.shapes) or 0.0
            is_slow = "float64" in source.dtypes
            work[is_slow] += flops * source.count * (ratio if is_slow else 1.0)
    total = sum(work.values())
    return work[True] / total if total > 0 else 0.0


def _as_called(operator: Operator, sources: Iterable[SourceOperator]) -> Operator:
    """The operator with line and shapes of its largest call in float64."""
    calls = [one for one in sources if one.name == operator.name and "float64" in one.dtypes]
    if not calls:
        return operator
    largest = max(calls, key=lambda one: (dense_flops(one.name, one.shapes) or 0.0) * one.count)
    return replace(
        operator, where=largest.where, module=largest.module or None, shapes=largest.shapes
    )


def _faster(analysis: Analysis, name: str, removed: list[tuple[Operator, float]]) -> Change | None:
    """The change in which these operators lose these shares of their time."""
    spans = analysis.profile.spans
    return None if spans is None else with_operators(name, operators_factor(spans, removed))


_DENSE_ON_ASCEND = re.compile(r"(Batch)?MatMul|Conv2D|Conv3D|BatchMatMulV2")


def check_alignment(analysis: Analysis) -> Iterable[ProfileFinding]:
    """Ascend computes in blocks of 16: other sizes are padded."""
    if analysis.profile.device != "Ascend":
        return []
    wasted, worst = 0.0, None
    for operator in analysis.operators:
        if not _DENSE_ON_ASCEND.match(operator.name):
            continue
        sizes = [size for shape in tensors(operator.shapes) for size in shape[-2:]]
        if not sizes:
            continue
        needed = math.prod(size / (math.ceil(size / BLOCK) * BLOCK) for size in sizes if size > 0)
        lost = operator.self_s * (1.0 - needed ** (1.0 / 2))
        wasted += lost
        if worst is None or lost > worst[1]:
            worst = (operator, lost)
    if worst is None:
        return []
    operator, total = worst[0], sum(one.self_s for one in analysis.operators)
    if wasted <= CLAIM_SHARE * total:
        return []
    return [
        ProfileFinding(
            "operators.unaligned",
            0.0,
            0.0,
            f"Matrix operators with sizes that are no multiples of {BLOCK} compute padding for "
            f"{milliseconds(wasted)} of {milliseconds(total)}; the worst is {operator.name} of "
            f"{operator.shapes}.",
            f"Multiples of {BLOCK} (batch, channels, hidden sizes, vocabulary) do more work in the "
            "same time.",
            where=operator.where,
            culprit=operator.name,
            module=operator.module,
            is_note=True,
        )
    ]


RULES = (
    Rule(
        "operators.conversion",
        "Are dtypes converted to and fro?",
        "5 % of the step",
        check_conversions,
        (
            made.example("float32 to float64 and back", made.casting, "net.py:12"),
            made.example("kernels of conversions on a device", made.casting_on_a_device, "dtypes"),
        ),
        (
            made.example("no conversion", made.healthy),
            made.example("a copy to the device", made.uploading),
        ),
        needs_operators=True,
    ),
    Rule(
        "operators.upload",
        "Does the host wait for copies to the device?",
        "5 % of the step",
        check_uploads,
        (made.example("a batch in pageable memory", made.uploading, "pageable memory"),),
        (
            made.example("no copy to the device", made.on_a_device),
            made.example("no device", made.healthy),
        ),
        needs_operators=True,
    ),
    Rule(
        "operators.layout",
        "Is memory rearranged?",
        "5 % of the step",
        check_layout,
        (made.example("contiguous() of a large tensor", made.rearranging, "another order"),),
        (made.example("no copy", made.healthy),),
        needs_operators=True,
    ),
    Rule(
        "operators.slow_shape",
        "Is the same operator slow in one shape or dtype?",
        "a factor of 4 in work per second, from 1 MFLOP and 1 ms per call on; 10 % of the step",
        check_slow_shape,
        (
            made.example("one matrix is 20 times slower", made.slow_shape, "GFLOP/s"),
            made.example(
                "short calls do not say what is usual",
                made.slow_shape_among_short_calls,
                "other shapes 88.8",
            ),
        ),
        (
            made.example("rates that are alike", made.healthy),
            made.example("a call that was slow once", made.slow_at_times),
        ),
        needs_operators=True,
    ),
    Rule(
        "operators.float64",
        "Does the network compute in float64?",
        "5 % of the step; half of the time is in the width of the numbers",
        check_float64,
        (
            made.example("a float64 product", made.in_float64, "float64"),
            made.example("dtypes known by the line only", made.in_float64_by_line, "net.py:31"),
        ),
        (made.example("all float32", made.healthy),),
        needs_operators=True,
    ),
    Rule(
        "operators.unaligned",
        "Do sizes fit the blocks of Ascend's cube unit?",
        "blocks of 16 (Ascend's documentation of the cube unit); 5 % of the step",
        check_alignment,
        (made.example("sizes 17 and 33", made.unaligned, "multiples of 16"),),
        (made.example("sizes 256", made.aligned),),
        needs_operators=True,
    ),
)

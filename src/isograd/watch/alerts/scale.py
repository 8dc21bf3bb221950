"""The loss scale of mixed precision: overflows are usual, a scale that never fits is not."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from isograd.watch.alerts.rule import Check, Hit, Limit, Limits, Rule, Severity, Streak, number
from isograd.watch.alerts.training import example
from isograd.watch.observation import Network, ScaleFacts, StepRecord


def _overflow(limits: Limits, network: Network) -> Check:
    def check(record: StepRecord) -> Iterator[Hit]:
        if record.scale is not None and record.scale.is_overflow:
            first = record.scale.first
            where = f", first in {first[-1]}" if first else ""
            yield Hit(record.scale.scale, facts={"where": where})

    return check


def _stuck(limits: Limits, network: Network) -> Check:
    streak, smallest = Streak(limits["steps"]), number(limits, "smallest")

    def check(record: StepRecord) -> Iterator[Hit]:
        scale = record.scale
        if scale is None:
            return
        is_row = streak.holds("", scale.is_overflow)
        if scale.is_overflow and (is_row or scale.scale <= smallest):
            yield Hit(scale.scale, facts={"steps": int(number(limits, "steps"))})

    return check


def _static(limits: Limits, network: Network) -> Check:
    window: deque[bool] = deque(maxlen=int(number(limits, "window")))

    def check(record: StepRecord) -> Iterator[Hit]:
        scale = record.scale
        if scale is None or scale.is_dynamic:
            return
        window.append(scale.is_overflow)
        share = sum(window) / len(window)
        if len(window) == window.maxlen and share >= number(limits, "share"):
            yield Hit(share, scale.scale, facts={"window": len(window)})

    return check


def _underflow(limits: Limits, network: Network) -> Check:
    streak = Streak(limits["looks"])

    def check(record: StepRecord) -> Iterator[Hit]:
        scale = record.scale
        if scale is None or scale.largest_exponent is None or scale.is_overflow:
            return
        # float16 ends at 2^-24; where even the greatest gradient is near it, most are lost.
        small = scale.largest_exponent < number(limits, "exponent")
        if streak.holds("", small):
            fitting = 2.0 ** (14 - scale.largest_exponent) * scale.scale
            yield Hit(scale.scale, facts={"exponent": scale.largest_exponent, "fitting": fitting})

    return check


def _over(step: int) -> ScaleFacts:
    return ScaleFacts(65536.0 / 2**step, is_overflow=True)


RULES = (
    Rule(
        code="scale.overflow",
        severity=Severity.NOTICE,
        message="the gradients overflowed at a loss scale of {value:g}{where}; the update was left "
        "out",
        advice="None, while it happens in the first steps and about once per growth interval.",
        make=_overflow,
        source="torch.amp.GradScaler starts at 2^16, MindSpore's DynamicLossScaleManager at 2^24; "
        "both find the fitting scale by overflowing",
        examples=(example("step 0 overflows", 2, scale=lambda s: _over(0) if s == 0 else None),),
        counterexamples=(
            example("there is no scaling", 9),
            example("the scale fits", 9, scale=ScaleFacts(1024.0, is_overflow=False)),
        ),
    ),
    Rule(
        code="scale.stuck",
        severity=Severity.ALERT,
        message="the gradients overflow at every step, now at a loss scale of {value:g}",
        advice="A smaller scale does not help: look at the origin, and keep the operator that "
        "overflows in float32.",
        make=_stuck,
        source="halving 2^24 (MindSpore's start) 20 times leaves 16; a forward pass that overflows "
        "does so at every scale",
        limits=(
            Limit("steps", 20, "overflows in a row"),
            Limit("smallest", 1.0, "scale at which an overflow cannot come from it"),
        ),
        examples=(
            example("every step overflows", 25, scale=_over),
            example("a scale of 1 overflows", 2, scale=ScaleFacts(1.0, is_overflow=True)),
        ),
        counterexamples=(
            example(
                "the first 8 steps overflow",
                60,
                scale=lambda s: ScaleFacts(2.0 ** (24 - min(s, 8)), is_overflow=s < 8),
            ),
        ),
    ),
    Rule(
        code="scale.too_large",
        severity=Severity.ALERT,
        message="{value:.0%} of the last {window} updates were left out at the static scale "
        "{limit:g}",
        advice="Take a smaller scale or a dynamic one; `loss_scale.advice` says which would fit.",
        make=_static,
        source="an update that is left out is a step that is lost",
        limits=(Limit("share", 0.5, "of the steps"), Limit("window", 5, "steps")),
        examples=(
            example(
                "a static scale overflows always",
                12,
                scale=ScaleFacts(2.0**24, is_overflow=True, is_dynamic=False),
            ),
        ),
        counterexamples=(
            example(
                "it overflows once",
                30,
                scale=lambda s: ScaleFacts(1024.0, s == 4, is_dynamic=False),
            ),
        ),
    ),
    Rule(
        code="scale.too_small",
        severity=Severity.NOTICE,
        message="the greatest scaled gradient is 2^{exponent} at a scale of {value:g}: most are "
        "lost below float16's 2^-24",
        advice="A scale of {fitting:.3g} would use the dtype's range.",
        make=_underflow,
        source="float16: smallest subnormal 2^-24, greatest 65504",
        limits=(Limit("exponent", -10.0, "power of two"), Limit("looks", 3, "looks in a row")),
        examples=(
            example(
                "gradients are below 2^-14",
                5,
                scale=ScaleFacts(1.0, is_overflow=False, largest_exponent=-14),
            ),
        ),
        counterexamples=(
            example(
                "gradients are about 2^5",
                9,
                scale=ScaleFacts(1024.0, is_overflow=False, largest_exponent=5),
            ),
        ),
    ),
)
